"""Jobs of a cluster and its shadow, by day, until all jobs of the day have ended on both machines."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from shadowtime.shared.distributions import HOUR_AND_EIGHT, shape_of
from shadowtime.shared.formatting import DAY
from shadowtime.shared.messages import JobSubmitted
from shadowtime.shared.statistics import bounded_slowdown

Which = Literal[0, 1]
REAL: Which = 0
SHADOW: Which = 1

PATIENCE = 30 * DAY
"""Longest wait that counts, in seconds. After this time, a day is compared even if some of its jobs have not ended."""


class ComparedJob(NamedTuple):
    """The waits in seconds and the bounded slowdowns of a job, as (real, shadow). `work` is in processor-seconds.

    Slowdowns are None unless the job ended within `PATIENCE` in the real cluster and in the shadow.
    """

    shape: int
    user: int
    work: int
    waits: tuple[int, int]
    slowdowns: tuple[float, float] | None


@dataclass(slots=True)
class OpenJob:
    """A job of a day that is not compared yet, with its starts and run times in the cluster and in the shadow.

    Times in seconds; None if the event has not happened.
    """

    since: int
    shape: int
    user: int
    processors: int
    starts: list[int | None] = field(default_factory=lambda: [None, None])
    run_times: list[int | None] = field(default_factory=lambda: [None, None])

    @property
    def ended(self) -> bool:
        """Whether the job has ended in the cluster and in the shadow."""
        return None not in self.run_times

    def plain(self) -> tuple[int | None, ...]:
        """Return all fields as plain values."""
        return self.since, self.shape, self.user, self.processors, *self.starts, *self.run_times

    def fared(self) -> ComparedJob:
        """Return the waits and slowdowns of the job. Waits are cut at `PATIENCE`."""
        latest = self.since + PATIENCE
        real, shadow = (min(latest if start is None else start, latest) - self.since for start in self.starts)
        real_time, shadow_time = self.run_times
        slowdowns = None
        if real_time is not None and shadow_time is not None:
            slowdowns = bounded_slowdown(real, real_time), bounded_slowdown(shadow, shadow_time)
        work = self.processors * (real_time or shadow_time or 0)
        return ComparedJob(self.shape, self.user, work, (real, shadow), slowdowns)


class OpenDays:
    """The jobs of the days that are not compared yet.

    Days are released in order. A day is released once each of its jobs has ended in the cluster and in the shadow, or
    `PATIENCE` seconds after its end. So the choice of compared days does not depend on any wait
    (docs/twin.md#which-jobs-are-compared). An event costs O(1). Memory is O(jobs of these days): the last 31 days, and
    the lag of an exact shadow.

    >>> days = OpenDays()
    >>> days.submitted(JobSubmitted(time=0, job_number=7, requested_processors=1, requested_time=60))
    >>> for which, start in ((REAL, 20), (SHADOW, 50)):
    ...     days.started(which, 7, start)
    ...     days.ended(which, 7, start + 30, 30, 1)
    >>> list(days.over(DAY - 1)), [[job.waits for job in jobs] for _, jobs in days.over(DAY)]
    ([], [[(20, 50)]])
    """

    def __init__(self) -> None:
        self.first: int | None = None
        self._days: dict[int, dict[int, OpenJob]] = {}
        self._day_of: dict[int, int] = {}
        self._open: dict[int, int] = {}

    def submitted(self, job: JobSubmitted) -> None:
        """Add a job that has arrived. If its day was already released, the job counts for the first open day."""
        self.withdrawn(job.job_number)
        day = job.since // DAY
        if self.first is None:
            self.first = day
        day = max(day, self.first)
        shape = shape_of(job.requested_time or 0, job.requested_processors, HOUR_AND_EIGHT)
        user = -1 if job.user_id is None else job.user_id
        self._days.setdefault(day, {})[job.job_number] = OpenJob(job.since, shape, user, job.requested_processors)
        self._day_of[job.job_number] = day
        self._open[day] = self._open.get(day, 0) + 1

    def started(self, which: Which, number: int, time: int) -> None:
        """Record the start of a job. If it starts again, the last start counts."""
        if (job := self._job(number)) is not None:
            job.starts[which] = time

    def ended(self, which: Which, number: int, time: int, run_time: int, processors: int) -> None:
        """Record the final end of a job. An end more than `PATIENCE` seconds after the wait began is ignored."""
        job = self._job(number)
        if job is None or job.ended or time > job.since + PATIENCE:
            return
        job.processors = processors
        job.run_times[which] = run_time
        if None not in job.run_times:
            self._open[self._day_of[number]] -= 1

    def withdrawn(self, number: int) -> bool:
        """Remove a job from the comparison. Return whether the comparison had the job."""
        job = self._job(number)
        if job is None:
            return False
        day = self._day_of.pop(number)
        del self._days[day][number]
        self._open[day] -= not job.ended
        return True

    def _job(self, number: int) -> OpenJob | None:
        day = self._day_of.get(number)
        return None if day is None else self._days[day][number]

    def over(self, horizon: int) -> Iterator[tuple[int, list[ComparedJob]]]:
        """Yield and forget each day that can be compared at `horizon`: its number and jobs. O(jobs of these days)."""
        while self._days:
            day = min(self._days)
            end = (day + 1) * DAY
            if horizon < end or (self._open[day] and horizon < end + PATIENCE):
                return
            jobs = self._days.pop(day)
            del self._open[day]
            for number in jobs:
                del self._day_of[number]
            self.first = day + 1
            yield day, [job.fared() for job in jobs.values()]

    def waiting(self, horizon: int) -> list[list[int]]:
        """Return the waits at `horizon` of the jobs that have not started: in the cluster, and in the shadow."""
        jobs = [job for day in self._days.values() for job in day.values() if job.since <= horizon]
        return [
            [horizon - job.since for job in jobs if (start := job.starts[which]) is None or start > horizon]
            for which in (REAL, SHADOW)
        ]

    def __len__(self) -> int:
        return len(self._day_of)

    def snapshot(self) -> dict[str, Any]:
        """Return the first open day, and the jobs of each day as plain values."""
        days = [[day, [[number, *job.plain()] for number, job in jobs.items()]] for day, jobs in self._days.items()]
        return {"first": self.first, "days": days}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        self.first = state["first"]
        self._days = {
            day: {
                number: OpenJob(since, shape, user, processors, times[:2], times[2:])
                for number, since, shape, user, processors, *times in jobs
            }
            for day, jobs in state["days"]
        }
        self._day_of = {number: day for day, jobs in self._days.items() for number in jobs}
        self._open = {day: sum(not job.ended for job in jobs.values()) for day, jobs in self._days.items()}
