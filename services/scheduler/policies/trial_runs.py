"""Trial runs: waiting jobs that run for less time than they request, in holes of the plan.

The rules: docs/algorithms.md#speculation, docs/algorithms.md#expected-speculation and docs/algorithms.md#test-runs.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from shadowtime.services.scheduler.kernels import FOREVER, condition, has_room_at
from shadowtime.services.scheduler.tables import NEVER, Running
from shadowtime.shared.kernels import Floats, Integers, IntegerTable, kernel
from shadowtime.shared.messages import Event, JobEnded, JobStarted, JobSubmitted, JobWithdrawn

TEST_ABOVE = 10_800
"""Request in seconds above which jobs get test runs (Perković 2000, section 6.1)."""

MIN_TEST, MAX_TEST = 300, 900
"""Shortest and longest test run, in seconds."""


class SpeculativeRun(NamedTuple):
    """A trial of a job: its limit in seconds, and whether it is a test run."""

    seconds: int
    test_run: bool


def next_time(last: int, run_time: int) -> int:
    """Return the least length of the next trial, in seconds, after a trial of `last` seconds was too short.

    This length is the mean of `last` and the planned run time.

    >>> next_time(7200, 36_000)
    21600
    """
    return (last + run_time) // 2


def attempt(
    hole: int, run_time: int, requested_time: int, least: int, *, speculate: bool, test: bool
) -> SpeculativeRun | None:
    """Return the trial of a job in a hole, or None. Times are in seconds.

    A speculative run fills the hole, but is no longer than the planned run time.

    Parameters
    ----------
    hole
        Time from now on for which the processors of the job stay free in the plan.
    run_time
        Planned run time; a speculative run is no longer.
    requested_time
        Request as submitted, whatever the prediction or shape. It decides whether the job is long enough for a test.
    least
        Shortest hole for a speculative run: a share of the planned run time, or `next_time` after an earlier trial.
    speculate, test
        Whether the job may be run speculatively, and whether it may be tested.

    >>> attempt(20_000, 36_000, 36_000, 7200, speculate=True, test=True)
    SpeculativeRun(seconds=20000, test_run=False)
    >>> attempt(5000, 36_000, 36_000, 7200, speculate=True, test=True)
    SpeculativeRun(seconds=900, test_run=True)
    """
    if speculate and hole >= least:
        return SpeculativeRun(min(hole, run_time), test_run=False)
    if test and requested_time > TEST_ABOVE and hole >= MIN_TEST:
        return SpeculativeRun(min(hole, MAX_TEST), test_run=True)
    return None


@kernel
def worthwhile(hole: int, saved: int, ran: int, request: int, masses: Floats, edges: Floats) -> int:
    """Return the best length of a trial in a hole, by the job's run-time distribution; 0 if none pays off. O(bins).

    A trial saves the wait of the job if the job ends in the trial. Otherwise, the trial wastes its own length. Both
    count once for each processor of the job, so the number of processors cancels out. Only ends of bins are tried,
    since the probability changes only there. Times are in seconds.

    Parameters
    ----------
    hole
        Time from now on for which the processors of the job stay free in the plan.
    saved
        Expected wait of the job without the trial.
    ran, request
        Longest earlier trial that was too short, and requested time. The distribution is conditioned on them.
    masses, edges
        Probability of each bin of run times, shape (bins,), and the edges of these bins, shape (at least bins + 1,).

    >>> import numpy as np
    >>> from shadowtime.shared.distributions.histogram import BINS, EDGES
    >>> masses = np.zeros(BINS)
    >>> masses[[5, 15]] = 0.5, 0.5
    >>> worthwhile(3600, 7200, 0, 36_000, masses, EDGES), worthwhile(3600, 7200, 19, 36_000, masses, EDGES)
    (19, 0)
    """
    times, probabilities = condition(masses, edges, float(ran), float(request), False)
    best, most, ends = 0, 0.0, 0.0
    for k in range(len(times)):
        limit = math.ceil(times[k])
        if limit > hole:
            break
        ends += probabilities[k]
        gain = ends * saved - (1.0 - ends) * limit
        if gain > most and limit > ran:
            best, most = limit, gain

    return best


@kernel
def hole_of(times: Integers, free: IntegerTable, steps: int, size: Integers) -> int:
    """Return the seconds from now on for which `size` of each resource is free; `FOREVER` if always. O(steps).

    >>> import numpy as np
    >>> hole_of(np.array([10, 50, 90]), np.array([[4, 3, 1]]), 3, np.array([2]))
    80
    """
    for step in range(steps):
        if not has_room_at(free, step, size):
            return int(times[step] - times[0])
    return FOREVER


# State of the jobs that were run on trial, for less time than they request.


class TrialJob(NamedTuple):
    """A job in the system: its request, whether it may be killed and run again, and its requeued runs.

    `attempts` is the number of these runs, `last` the longest run time among them, and `tested` whether one was a test
    run. Times are in seconds.
    """

    requested_time: int
    restartable: bool
    attempts: int = 0
    last: int = 0
    tested: bool = False


class Suspended(NamedTuple):
    """Reservation that a job keeps while it runs on trial.

    `start` is the reserved start, `guaranteed` the start first promised, `shape` the index of the planned shape. `size`
    is the amount of each resource that the job takes in this shape.
    """

    start: int
    size: tuple[int, ...]
    run_time: int
    guaranteed: int
    shape: int


class Trials:
    """Trials of the jobs in the system. Memory is bounded by these jobs.

    >>> trials = Trials()
    >>> trials.observe(JobSubmitted(time=0, job_number=1, requested_processors=1, requested_time=36_000))
    >>> trials.decided(1, SpeculativeRun(7200, test_run=False), None)
    >>> trials.observe(JobStarted(time=0, job_number=1, processors=1, limit=7200))
    >>> trials.observe(JobEnded(time=7200, job_number=1, run_time=7200, outcome="limit", requeued=True))
    >>> trials.least(trials.jobs[1], 36_000, share=0.2)
    21600
    """

    def __init__(self) -> None:
        self.jobs: dict[int, TrialJob] = {}
        self.limits: dict[int, int] = {}
        """Latest end of each running trial, in seconds, by job number."""
        self.suspended: dict[int, Suspended] = {}
        """Reservations of the jobs that run on trial, by job number."""
        self._decided: dict[int, tuple[SpeculativeRun, Suspended | None]] = {}
        """Decided trials by job number, each with the reservation that its job keeps if the trial starts."""

    @staticmethod
    def least(known: TrialJob, run_time: int, share: float) -> int:
        """Return the shortest hole for a trial in seconds: `share` of `run_time`, or `next_time` after another one."""
        return next_time(known.last, run_time) if known.last else max(int(share * run_time), 1)

    def decided(self, number: int, attempt: SpeculativeRun, place: Suspended | None) -> None:
        """Record a decided trial, and the reservation that the job keeps during the trial; None without one."""
        self._decided[number] = attempt, place

    def cut_short(self, running: Running, ends: Integers) -> Integers:
        """Return the expected ends of running jobs. A trial ends at its limit at the latest."""
        if not self.limits:
            return ends
        limits = [self.limits.get(number, FOREVER) for number in running.job_number.tolist()]
        return np.minimum(ends, np.array(limits, dtype=np.int64))

    def observe(self, event: Event) -> None:
        """Apply an event: record the length of a trial that was too short, drop jobs that have ended for good."""
        if isinstance(event, JobSubmitted):
            requested_time = NEVER if event.requested_time is None else event.requested_time
            self.jobs[event.job_number] = TrialJob(requested_time, event.restartable)
        elif isinstance(event, JobWithdrawn):
            for kept in (self.jobs, self._decided):
                kept.pop(event.job_number, None)
        elif isinstance(event, JobStarted):
            number, decided = event.job_number, self._decided.get(event.job_number)
            if decided is not None and event.limit == decided[0].seconds:
                self.limits[number] = event.time + decided[0].seconds
                if decided[1] is not None:
                    self.suspended[number] = decided[1]
            else:  # the job did not start as a trial
                self._decided.pop(event.job_number, None)
        elif isinstance(event, JobEnded):
            number, known = event.job_number, self.jobs.get(event.job_number)
            self.limits.pop(number, None)
            decided = self._decided.pop(number, None)
            test_run = decided is not None and decided[0].test_run
            if known is not None and event.requeued:
                self.jobs[number] = known._replace(
                    attempts=known.attempts + 1,
                    last=max(known.last, event.run_time, 1),
                    tested=known.tested or test_run,
                )
            else:
                self.jobs.pop(number, None)

    def snapshot(self) -> Any:
        """Return the whole state as plain values."""
        return {
            "jobs": [[number, *known] for number, known in self.jobs.items()],
            "limits": list(self.limits.items()),
            "suspended": [[number, *place] for number, place in self.suspended.items()],
            "decided": [
                [number, [*attempt], None if place is None else [*place]]
                for number, (attempt, place) in self._decided.items()
            ],
        }

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self.jobs = {number: TrialJob(*known) for number, *known in state["jobs"]}
        self.limits = dict(state["limits"])
        self._decided = {
            number: (SpeculativeRun(*attempt), None if place is None else Suspended(*place))
            for number, attempt, place in state["decided"]
        }
        self.suspended = {number: Suspended(*place) for number, *place in state["suspended"]}
