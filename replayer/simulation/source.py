"""Event sources of replays: the interface between a cluster, or a log of one, and the pipeline."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, ClassVar, NamedTuple, Protocol, cast

import numpy as np
from pydantic import ValidationError

from shadowtime.replayer.logs import Workload
from shadowtime.shared.cluster import OF_ANY_LOG, TEXTS_OF_JOB, UNKNOWN, Job, Source, job_of
from shadowtime.shared.errors import ReplayError, ShadowtimeError
from shadowtime.shared.kernels import Integers
from shadowtime.shared.messages import CapacityChanged, Decided, Event, JobSubmitted, SpeedUp, construct_unchecked
from shadowtime.shared.stages import described


class JobTraits(NamedTuple):
    """Traits that a replay assigns to every job of a log. Without `speedup`, processors times run time is constant."""

    restartable: bool = True
    moldable: bool = True
    speedup: SpeedUp | None = None


DEFAULT_TRAITS = JobTraits()


class ReplaySource(Source, Protocol):
    """A source whose events come from a log, so that all later events are known.

    Parameters
    ----------
    workload
        The jobs.
    capacity
        Changes of the machine's size, in order of time.
    traits
        Whether jobs may be restarted or run on other processor counts, and how their run times then scale.
    """

    closed_loop: ClassVar[bool]
    """Whether decisions are applied. If not, decisions are only advice, and jobs run as recorded."""

    def __init__(
        self, workload: Workload, capacity: Sequence[CapacityChanged] = (), traits: JobTraits = DEFAULT_TRAITS
    ) -> None: ...

    def apply(self, decided: Decided) -> Sequence[Event]:
        """Apply the decision at the last instant, and return the events that it caused."""
        ...

    def can_start(self) -> bool:
        """Return whether any waiting job fits into the free resources at the last emitted instant."""
        ...


class named_errors:  # noqa: N801 - reads as a verb; a class, entered twice an event, costs less than a generator
    """Raise unexpected exceptions of a source as `ReplayError` with its name, because the source may be a plug-in."""

    def __init__(self, source: ReplaySource | type[ReplaySource]) -> None:
        self.source = source

    def __enter__(self) -> None:
        return

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        if failure is None or isinstance(failure, ShadowtimeError | ValidationError):
            return
        if isinstance(failure, Exception | SystemExit):
            raise ReplayError(f"source {self.source.name!r} failed: {described(failure)}") from failure


def submission(
    job: Job, traits: JobTraits = DEFAULT_TRAITS, make: Callable[..., JobSubmitted] = JobSubmitted
) -> JobSubmitted:
    """Return the submission event of a job, with all fields that are known at submission.

    `make` creates the event. Use `unchecked` for the jobs of a workload that is `in_bounds`.
    """
    return make(
        time=job.submit_time,
        job_number=job.job_number,
        submit_time=job.handed_in,
        requested_processors=job.processors,
        requested_time=job.limit,
        user_id=job.user_id,
        group_id=job.group_id,
        executable_number=job.executable_number,
        queue_number=job.queue_number,
        partition_number=job.partition_number,
        restartable=traits.restartable,
        moldable=traits.moldable,
        speedup=traits.speedup,
        qos_number=job.qos_number,
        pool=job.pool,
        nodes=job.nodes,
        memory=job.memory,
        gpus=job.gpus,
        gpu_type=job.gpu_type,
        whole_nodes=True if job.whole_nodes else None,
    )


REQUIRED = ("job_number", "submit_time", "run_time", "requested_time", "processors")
"""Fields that every job must have."""


unchecked: Callable[..., JobSubmitted] = partial(cast("Any", construct_unchecked), JobSubmitted)
"""Returns a submission without validation: `in_bounds` has checked the fields of all jobs together."""


def in_bounds(columns: Mapping[str, Integers], traits: JobTraits) -> bool:
    """Return whether the submissions of all jobs in columns are valid messages. O(jobs), vectorised.

    The valid values of each field are an interval. So it suffices to check the minimum and the maximum of the column.
    """
    columns = {name: column for name, column in columns.items() if name not in TEXTS_OF_JOB}
    known = [column if name in REQUIRED else column[column != UNKNOWN] for name, column in columns.items()]
    try:
        for extreme in (np.min, np.max):
            values = [int(extreme(column)) if len(column) else UNKNOWN for column in known]
            submission(job_of(values, tuple(columns)[OF_ANY_LOG:]), traits)
    except ValidationError:
        return False

    return True
