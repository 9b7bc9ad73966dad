"""A job of a log, and which of its fields only some logs have."""

from collections.abc import Sequence
from typing import NamedTuple

from shadowtime.shared.bounds import MAX_DURATION

UNKNOWN = -1
"""In the place of a number that the log does not say."""


class Job(NamedTuple):
    """One job of a trace; times in seconds, None where the log does not say.

    `processors` is what was requested if that is positive, else what was allocated
    (docs/algorithms.md#processors). As in the log, a `run_time` may be longer than the `requested_time`, and a
    `wait_time` negative. It waits from its `submit_time` on; what has no limit requests `MAX_DURATION`.
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

    @property
    def limit(self) -> int | None:
        """The requested time; None where nothing limits the job."""
        return None if self.requested_time >= MAX_DURATION else self.requested_time


OF_ACCOUNTING = tuple(Job._field_defaults)
"""Fields of a job that only accounting tells: when its user handed it in, if that was before its wait began, when it
left the queue without having started, for how many seconds it was suspended, what it asked for beside processors."""

OF_ANY_LOG = len(Job._fields) - len(OF_ACCOUNTING)
"""Fields before those."""


def job_of(row: Sequence[int], more: Sequence[str]) -> Job:
    """Return a job of the values of its fields, those of any log and then those of the names in `more`; -1 is None."""
    job_number, submit_time, wait_time, run_time, requested_time, processors, *labels = row
    known = [None if value == UNKNOWN else value for value in labels]
    further = dict(zip(more, known[OF_ANY_LOG - 6 :], strict=True)) if more else {}
    own = known[: OF_ANY_LOG - 6]
    return Job(job_number, submit_time, _known(wait_time), run_time, requested_time, processors, *own, **further)


def _known(value: int) -> int | None:
    return None if value == UNKNOWN else value
