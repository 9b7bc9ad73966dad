"""A job of a log, and the fields that only some logs have."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from shadowtime.shared.bounds import MAX_DURATION

UNKNOWN = -1
"""Placeholder for a number that the log does not have."""


class Job(NamedTuple):
    """One job of a trace. Times are in seconds; a value that the log does not have is None.

    `processors` is the requested number if that is positive, else the allocated number
    (docs/algorithms.md#processors). As in the log, a `run_time` may be longer than the `requested_time`, and a
    `wait_time` may be negative. The job waits from its `submit_time` on. A `requested_time` of `MAX_DURATION` means no
    limit. `gpu_type` is as in `JobSubmitted`. `gpu_got` are the GPUs that it got by type, as Slurm writes them.
    """

    job_number: int
    submit_time: int
    wait_time: int | None
    run_time: int
    requested_time: int
    processors: int
    user_id: int | None
    group_id: int | None
    executable_number: int | None
    queue_number: int | None
    partition_number: int | None
    status: int | None
    handed_in: int | None = None
    left_time: int | None = None
    suspended: int | None = None
    qos_number: int | None = None
    pool: int | None = None
    nodes: int | None = None
    memory: int | None = None
    gpus: int | None = None
    whole_nodes: int | None = None
    gpu_type: str | None = None
    gpu_got: str | None = None

    @property
    def limit(self) -> int | None:
        """The requested time; None if nothing limits the job."""
        return None if self.requested_time >= MAX_DURATION else self.requested_time


OF_ACCOUNTING = tuple(Job._field_defaults)
"""Fields of a job that only accounting files have. `handed_in` is the time of its submission, if that was before its
wait began. `left_time` is the time at which it left the queue without a start. `suspended` is in seconds."""

TEXTS_OF_JOB = ("gpu_type", "gpu_got")
"""Fields that are texts. In a log, their numbers are indices of a list of texts."""

OF_ANY_LOG = len(Job._fields) - len(OF_ACCOUNTING)
"""Number of the fields that any log has. They come before the fields of accounting."""


def job_of(row: Sequence[int], more: Sequence[str], texts: Sequence[str] = ()) -> Job:
    """Return a job from the values of its fields: the fields of any log, then the fields named in `more`.

    An optional field with the value -1 becomes None. A field of `TEXTS_OF_JOB` becomes one of the `texts`.
    """
    job_number, submit_time, wait_time, run_time, requested_time, processors, *labels = row
    known: list[Any] = [None if value == UNKNOWN else value for value in labels]
    further: dict[str, Any] = dict(zip(more, known[OF_ANY_LOG - 6 :], strict=True)) if more else {}
    for name in TEXTS_OF_JOB if texts else ():
        if (code := further.get(name)) is not None:
            further[name] = texts[code]
    own = known[: OF_ANY_LOG - 6]
    return Job(job_number, submit_time, _known(wait_time), run_time, requested_time, processors, *own, **further)


def _known(value: int) -> int | None:
    return None if value == UNKNOWN else value
