"""Shapes of moldable jobs: fewer processors for a longer time, or more processors for a shorter time."""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np

from shadowtime.services.scheduler.tables import NEVER
from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.kernels import IntegerCube, Integers, IntegerTable
from shadowtime.shared.messages import Event, JobEnded, JobSubmitted, JobWithdrawn, ratio, reshaped_time

Mode = Literal["requested", "half", "quarter", "greedy", "greedy-narrow"]

LONG = 10_800
"""Request in seconds above which `greedy-narrow` does not reshape a job (the paper's median estimate)."""


class JobShape(NamedTuple):
    """Processors of a job, and the factor `times` / `over` by which its run time changes on them."""

    processors: int
    times: int
    over: int

    def seconds(self, run_time: int) -> int:
        """Return the run time in this shape of a job that takes `run_time` on the requested processors, in seconds."""
        return run_time if run_time >= NEVER else reshaped_time(run_time, (self.times, self.over))

    def own_seconds(self, seconds: int) -> int:
        """Return the seconds on the requested processors that equal `seconds` in this shape, rounded down."""
        return seconds * self.over // self.times


def shape_of(job: JobSubmitted, processors: int) -> JobShape:
    """Return the shape of a job on this number of processors.

    >>> job = JobSubmitted(time=0, job_number=1, requested_processors=8, requested_time=4000)
    >>> [(shape_of(job, n).processors, shape_of(job, n).seconds(4000)) for n in (4, 2, 16)]
    [(4, 8000), (2, 16000), (16, 2000)]
    """
    return JobShape(processors, *ratio(job.requested_processors, processors, job.speedup))


def sizes(mode: Mode, processors: int, requested_time: int | None) -> tuple[int, ...]:
    """Return the processor counts in which a moldable job is planned. Trials take the first. Halves are rounded up.

    >>> [sizes(mode, 5, 3600) for mode in ("requested", "half", "quarter", "greedy", "greedy-narrow")]
    [(5,), (3,), (2,), (5, 3, 10), (5, 3, 2)]
    >>> sizes("quarter", 4, 3600), sizes("half", 1, 3600), sizes("greedy-narrow", 8, 36_000)
    ((2,), (1,), (8,))

    References: docs/algorithms.md#shapes (Perković 2000, section 7.1).
    """
    half = -(-processors // 2)
    quarter = -(-processors // 4) if processors > 4 else half
    if mode == "greedy-narrow" and requested_time is not None and requested_time > LONG:
        return (processors,)
    every = {
        "requested": (processors,),
        "half": (half,),
        "quarter": (quarter,),
        "greedy": (processors, half, 2 * processors),
        "greedy-narrow": (processors, half, quarter),
    }
    return tuple(dict.fromkeys(every[mode]))


class Shapes:
    """Shapes of the moldable jobs in the system. Memory is bounded by these jobs.

    Parameters
    ----------
    mode
        Choice of the shapes in which jobs are planned.
    widen
        Whether jobs may be widened as they start.
    """

    def __init__(self, mode: Mode, *, widen: bool) -> None:
        self.mode = mode
        self.widen = widen
        self.jobs: dict[int, JobSubmitted] = {}
        self.shapes: dict[int, tuple[JobShape, ...]] = {}

    def observe(self, event: Event) -> None:
        """Apply an event: record a moldable job, drop one that has ended for good or was withdrawn."""
        if self.mode == "requested" and not self.widen:
            return
        if isinstance(event, JobSubmitted) and event.moldable:
            self.add(event)
        elif isinstance(event, JobWithdrawn) or (isinstance(event, JobEnded) and not event.requeued):
            self.jobs.pop(event.job_number, None)
            self.shapes.pop(event.job_number, None)

    def add(self, job: JobSubmitted) -> None:
        """Record a moldable job."""
        self.jobs[job.job_number] = job
        every = sizes(self.mode, job.requested_processors, job.requested_time)
        if every != (job.requested_processors,):
            self.shapes[job.job_number] = tuple(shape_of(job, shape) for shape in every)

    def of(self, job_number: int, processors: int) -> tuple[JobShape, ...]:
        """Return the shapes of a job; the requested `processors` alone if no other shapes are known."""
        return self.shapes.get(job_number, (JobShape(processors, 1, 1),))

    def columns(
        self, job_numbers: Integers, sizes: IntegerTable, run_times: Integers
    ) -> tuple[IntegerCube, IntegerTable]:
        """Return the resources and the run time in seconds of each shape of each job.

        The arrays have the shapes (shapes, jobs, resources) and (shapes, jobs). A job with fewer shapes has zero
        processors in the others. A job requests the same memory and GPUs in every shape. O(jobs).
        """
        if not self.shapes:
            return sizes[None], run_times[None]
        known = [self.shapes.get(number) for number in job_numbers.tolist()]
        most = max((len(entries) for entries in known if entries), default=1)
        times, over = np.ones((2, most, len(known)), dtype=np.int64)
        every = np.repeat(sizes[None], most, axis=0)
        every[1:, :, 0] = 0
        for job, shapes in enumerate(known):
            for place, shape in enumerate(shapes or ()):
                every[place, job, 0], times[place, job], over[place, job] = shape
        return every, np.where(run_times >= NEVER, NEVER, np.minimum(-(-run_times * times // over), MAX_DURATION))

    def wider(self, job_number: int, shape: JobShape) -> Iterator[JobShape]:
        """Yield ever wider shapes, each double the last, up to twice the request, while doubling shortens the run."""
        job = self.jobs.get(job_number) if self.widen else None
        while job is not None and shape.processors <= job.requested_processors:
            wider = shape_of(job, 2 * shape.processors)
            if wider.times * shape.over >= shape.times * wider.over:
                return
            shape = wider
            yield wider

    def snapshot(self) -> Any:
        """Return the jobs as plain values."""
        return [job.model_dump() for job in self.jobs.values()]

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self.jobs, self.shapes = {}, {}
        for job in state:
            self.add(JobSubmitted.model_validate(job))
