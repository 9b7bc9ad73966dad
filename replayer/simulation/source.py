"""Where the events of a run come from: the seam between a cluster, or a log of one, and the pipeline."""

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from pydantic import ValidationError

from shadowtime.replayer.logs import Workload
from shadowtime.shared.cluster import OF_ANY_LOG, UNKNOWN, Job, Source, job_of
from shadowtime.shared.errors import ReplayError, ShadowtimeError
from shadowtime.shared.kernels import Integers
from shadowtime.shared.messages import CapacityChanged, Decided, Event, JobSubmitted, SpeedUp, construct_unchecked
from shadowtime.shared.stages import described


class JobTraits(NamedTuple):
    """Traits that a replay may give to every job of a log."""

    restartable: bool = True
    moldable: bool = True
    speedup: SpeedUp | None = None


DEFAULT_TRAITS = JobTraits()


class ReplaySource(Source, Protocol):
    """A log; what is to come of it lies there.

    Parameters
    ----------
    workload
        The jobs.
    capacity
        Changes of the machine's size, in order of time.
    traits
        What may be done to its jobs.
    """

    closed_loop: ClassVar[bool]
    """Whether it does what is decided; if not, decisions are advice, and jobs run as they did."""

    def __init__(
        self, workload: Workload, capacity: Sequence[CapacityChanged] = (), traits: JobTraits = DEFAULT_TRAITS
    ) -> None: ...

    def apply(self, decided: Decided) -> Sequence[Event]:
        """Do what was decided at the last instant, and return what that caused."""
        ...

    def can_start(self) -> bool:
        """Return whether any waiting job would fit on the free processors at the last instant told."""
        ...


class named_errors:  # noqa: N801 - reads as a verb; a class, entered twice an event, costs less than a generator
    """Let whatever a source raises name it: it may be a plug-in."""

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
    """Return what the pipeline is told of a job at its submission: everything but its future.

    `make` makes it: `unchecked` of jobs of a workload that is `in_bounds`.
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
        whole_nodes=True if job.whole_nodes else None,
    )


REQUIRED = ("job_number", "submit_time", "run_time", "requested_time", "processors")
"""Fields of a job that it cannot be without."""


def unchecked(**fields: Any) -> JobSubmitted:
    """Return a submission whose fields were checked together with those of all others."""
    return construct_unchecked(JobSubmitted, **fields)


def in_bounds(columns: Mapping[str, Integers], traits: JobTraits) -> bool:
    """Return whether all submissions of the jobs in columns are messages that can be sent. O(jobs), of arrays.

    What each field may be is all between two numbers: so it is where the least and the largest of each are.
    """
    known = [column if name in REQUIRED else column[column != UNKNOWN] for name, column in columns.items()]
    try:
        for extreme in (np.min, np.max):
            values = [int(extreme(column)) if len(column) else UNKNOWN for column in known]
            submission(job_of(values, tuple(columns)[OF_ANY_LOG:]), traits)
    except ValidationError:
        return False

    return True
