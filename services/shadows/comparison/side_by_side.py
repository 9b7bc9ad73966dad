"""Comparison of a cluster and its shadow on the same jobs."""

from typing import Any

from shadowtime.services.shadows.comparison.day_sums import PARTS, DayAreas, DaySums, parts_of
from shadowtime.services.shadows.comparison.estimates import Parts, estimate
from shadowtime.services.shadows.comparison.evidence import Evidence
from shadowtime.services.shadows.comparison.extremes import ShapeExtremes
from shadowtime.services.shadows.comparison.open_days import REAL, SHADOW, OpenDays, Which
from shadowtime.services.shadows.comparison.schema import Comparison
from shadowtime.services.shadows.comparison.users import UserSums
from shadowtime.shared.messages import JobSubmitted

__all__ = ["REAL", "SHADOW", "SideBySide", "Which"]


class SideBySide:
    """The comparison of a cluster and its shadow, updated event by event; an event costs O(1).

    Rules for the caller:

    1. Call `submitted` once for each job when it arrives. Call `running` for each job that runs at the takeover.
    2. Report the starts and ends of each machine in the order of time. Call `at` with the time up to which both logs
       are known.
    3. Call `started` again when a job starts again, as after a requeue. Call `ended` only for the final end. Call
       `withdrawn` for a job that leaves the real queue without having run. The job is not compared.

    >>> both = SideBySide()
    >>> both.capacity(0, 4)
    >>> both.submitted(JobSubmitted(time=0, job_number=7, requested_processors=2, requested_time=60))
    >>> for which, start in ((REAL, 600), (SHADOW, 0)):
    ...     both.started(which, 7, start)
    ...     both.ended(which, 7, start + 60, 60, 2)
    >>> both.at(86_400)
    >>> result = both.report(86_400).all
    >>> result.wait.real, result.wait.shadow, result.sooner.share
    (600.0, 0.0, 1.0)
    """

    def __init__(self) -> None:
        self.horizon: int | None = None
        self.withdrawn_jobs = 0
        self._days = OpenDays()
        self._sums, self._extremes, self._users = DaySums(), ShapeExtremes(), UserSums()
        self._wait, self._slowdown = Evidence(), Evidence()
        self._busy, self._machine = (DayAreas(), DayAreas()), DayAreas()
        self._held: tuple[dict[int, int], dict[int, int]] = ({}, {})
        self._asked: dict[int, list[int]] = {}  # processors, and number of machines (0 to 2) on which it has ended

    def capacity(self, time: int, processors: int) -> None:
        """Record the number of processors that both machines have from `time` on."""
        self._machine.add(time, processors - self._machine.level)

    def running(self, job_number: int, processors: int, time: int) -> None:
        """Add a job that runs on both machines at the takeover. It holds processors, but is not compared."""
        for which in (REAL, SHADOW):
            self._hold(which, job_number, time, processors)

    def submitted(self, job: JobSubmitted) -> None:
        """Add a job that arrives in the cluster and in the shadow."""
        self._days.submitted(job)
        self._asked[job.job_number] = [job.requested_processors, 0]

    def knows(self, job_number: int) -> bool:
        """Return whether there is a job of this number that has not ended on both machines."""
        return job_number in self._asked

    def started(self, which: Which, job_number: int, time: int, processors: int | None = None) -> None:
        """Record a start. `processors` defaults to the request of a compared job.

        A job that is not compared, such as a job that waited at the takeover, also holds `processors`.
        """
        self._days.started(which, job_number, time)
        if processors is None and job_number in self._asked:
            processors = self._asked[job_number][0]
        if processors is not None:
            self._hold(which, job_number, time, processors)

    def resized(self, which: Which, job_number: int, time: int, processors: int) -> None:
        """Record the number of processors that a running job holds from `time` on; 0 while it is suspended."""
        if job_number in self._held[which]:
            self._hold(which, job_number, time, processors)

    def ended(self, which: Which, job_number: int, time: int, run_time: int, processors: int) -> None:
        """Record the final end of a job, after `run_time` seconds on `processors`."""
        self._days.ended(which, job_number, time, run_time, processors)
        self._let_go(which, job_number, time)
        if job_number in self._asked:
            self._asked[job_number][1] += 1
            if self._asked[job_number][1] == len(self._held):
                del self._asked[job_number]

    def requeued(self, which: Which, job_number: int, time: int) -> None:
        """Record that a running job has released its processors and waits again."""
        self._let_go(which, job_number, time)

    def withdrawn(self, job_number: int, time: int) -> None:
        """Record that a waiting job has left the real queue. The job also leaves the shadow, and is not compared."""
        self.withdrawn_jobs += self._days.withdrawn(job_number)
        for which in (REAL, SHADOW):
            self._let_go(which, job_number, time)
        self._asked.pop(job_number, None)

    def at(self, time: int) -> None:
        """Record the time up to which both logs are known. Add the days that can be compared now. O(their jobs)."""
        self.horizon = time if self.horizon is None else max(time, self.horizon)
        for level in (*self._busy, self._machine):
            level.upto(self.horizon)
        for day, jobs in self._days.over(self.horizon):
            self._sums.add(day, jobs)
            for job in jobs:
                self._extremes.add(job)
                self._users.add(job)
            if jobs:
                columns = zip(*map(parts_of, jobs), strict=True)
                sums = dict(zip(PARTS, map(sum, columns), strict=True))
                self._wait.add(day, sums["shadow_wait"] - sums["real_wait"], sums["jobs"])
                self._slowdown.add(day, sums["shadow_slowdown"] - sums["real_slowdown"], sums["ended"])

    def _hold(self, which: Which, job_number: int, time: int, processors: int) -> None:
        held = self._held[which]
        self._busy[which].add(time, processors - held.get(job_number, 0))
        held[job_number] = processors

    def _let_go(self, which: Which, job_number: int, time: int) -> None:
        self._busy[which].add(time, -self._held[which].pop(job_number, 0))

    def report(self, time: int, key: int = 0) -> Comparison:
        """Return the comparison as of `time`, or of the last `at` if that is earlier.

        `key` is the key of seeded random numbers (`shared/chance.py`).
        """
        horizon = time if self.horizon is None else min(time, self.horizon)
        parts = Parts(self._sums, self._extremes, self._users, self._busy, self._machine)
        evidence = self._wait, self._slowdown
        return estimate(parts, self._days, evidence, horizon, self.withdrawn_jobs, key)

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as plain values."""
        return {
            "horizon": self.horizon,
            "withdrawn": self.withdrawn_jobs,
            "open": self._days.snapshot(),
            "sums": self._sums.snapshot(),
            "extremes": self._extremes.snapshot(),
            "users": self._users.snapshot(),
            "wait": self._wait.snapshot(),
            "slowdown": self._slowdown.snapshot(),
            "busy": [counter.snapshot() for counter in self._busy],
            "machine": self._machine.snapshot(),
            "held": [list(jobs.items()) for jobs in self._held],
            "asked": [[number, *asked] for number, asked in self._asked.items()],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        self.horizon, self.withdrawn_jobs = state["horizon"], state["withdrawn"]
        self._days.restore(state["open"])
        self._sums.restore(state["sums"])
        self._extremes.restore(state["extremes"])
        self._users.restore(state["users"])
        self._wait.restore(state["wait"])
        self._slowdown.restore(state["slowdown"])
        for level, saved in zip(self._busy, state["busy"], strict=True):
            level.restore(saved)
        self._machine.restore(state["machine"])
        real, shadow = (dict(map(tuple, pairs)) for pairs in state["held"])
        self._held = real, shadow
        self._asked = {number: asked for number, *asked in state["asked"]}
