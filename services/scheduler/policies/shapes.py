"""In which shapes a moldable job may be planned: on fewer processors or more, for a longer or shorter time."""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np

from shadowtime.services.scheduler.tables import NEVER
from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.kernels import IntegerCube, Integers, IntegerTable
from shadowtime.shared.messages import Event, JobEnded, JobSubmitted, JobWithdrawn, ratio, reshaped_time

Mode = Literal["requested", "half", "quarter", "greedy", "greedy-narrow"]

LONG = 10_800
"""Seconds; `greedy-narrow` leaves a job that asks for more as it is (the paper's median estimate)."""


class JobShape(NamedTuple):
    """Processors, and what run times are multiplied by and then divided by on them."""

    processors: int
    times: int
    over: int

    def seconds(self, run_time: int) -> int:
        """Return how long a job of this run time, in seconds, takes in this shape."""
        return run_time if run_time >= NEVER else reshaped_time(run_time, (self.times, self.over))

    def own_seconds(self, seconds: int) -> int:
        """Return how much of its own run time, in seconds, a job has run after so long in this shape."""
        return seconds * self.over // self.times


def shape_of(job: JobSubmitted, processors: int) -> JobShape:
    """Return a job on so many processors.

    >>> job = JobSubmitted(time=0, job_number=1, requested_processors=8, requested_time=4000)
    >>> [(shape_of(job, n).processors, shape_of(job, n).seconds(4000)) for n in (4, 2, 16)]
    [(4, 8000), (2, 16000), (16, 2000)]
    """
    return JobShape(processors, *ratio(job.requested_processors, processors, job.speedup))


def sizes(mode: Mode, processors: int, requested_time: int | None) -> tuple[int, ...]:
    """Return the sizes in which a moldable job is planned, the first of which its trials take; halves are rounded up.

    >>> [sizes(mode, 5, 3600) for mode in ("requested", "half", "quarter", "greedy", "greedy-narrow")]
    [(5,), (3,), (2,), (5, 3, 10), (5, 3, 2)]
    >>> sizes("quarter", 4, 3600), sizes("half", 1, 3600), sizes("greedy-narrow", 8, 36_000)
    ((2,), (1,), (8,))

    References
    ----------
    docs/algorithms.md#shapes (Perković 2000, section 7.1).
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
    """The shapes of the jobs in the system that have others than the one requested; memory is bounded by these jobs.

    Parameters
    ----------
    mode
        Which shapes jobs are planned in.
    widen
        Whether jobs may be widened as they start.
    """

    def __init__(self, mode: Mode, *, widen: bool) -> None:
        self.mode = mode
        self.widen = widen
        self.jobs: dict[int, JobSubmitted] = {}
        self.shapes: dict[int, tuple[JobShape, ...]] = {}

    def observe(self, event: Event) -> None:
        """Take note of a moldable job; forget one that has ended for good."""
        if self.mode == "requested" and not self.widen:
            return
        if isinstance(event, JobSubmitted) and event.moldable:
            self.add(event)
        elif isinstance(event, JobWithdrawn) or (isinstance(event, JobEnded) and not event.requeued):
            self.jobs.pop(event.job_number, None)
            self.shapes.pop(event.job_number, None)

    def add(self, job: JobSubmitted) -> None:
        """Take note of a moldable job."""
        self.jobs[job.job_number] = job
        every = sizes(self.mode, job.requested_processors, job.requested_time)
        if every != (job.requested_processors,):
            self.shapes[job.job_number] = tuple(shape_of(job, shape) for shape in every)

    def of(self, job_number: int, processors: int) -> tuple[JobShape, ...]:
        """Return the shapes of a job that requests so many processors."""
        return self.shapes.get(job_number, (JobShape(processors, 1, 1),))

    def columns(
        self, job_numbers: Integers, sizes: IntegerTable, run_times: Integers
    ) -> tuple[IntegerCube, IntegerTable]:
        """Return what each shape takes of each resource and run times in seconds; no processors: no such shape.

        Shapes (shapes, jobs, resources) and (shapes, jobs). A job asks for the same memory and GPUs on every size.
        O(jobs).
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
        """Yield ever wider shapes in which a job is done sooner: doubled, up to twice the processors requested."""
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
        """Take on what `snapshot` returned."""
        self.jobs, self.shapes = {}, {}
        for job in state:
            self.add(JobSubmitted.model_validate(job))
