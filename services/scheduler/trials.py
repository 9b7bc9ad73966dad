"""What is known of the jobs that were run on trial, for less time than they ask for."""

from typing import Any, NamedTuple

import numpy as np

from shadowtime.services.scheduler.job_table import NEVER, Running
from shadowtime.services.scheduler.profile import FOREVER
from shadowtime.services.scheduler.speculation import Attempt, next_time
from shadowtime.shared.arrays import Integers
from shadowtime.shared.events import Event, JobEnded, JobStarted, JobSubmitted, JobWithdrawn


class Known(NamedTuple):
    """A job in the system: its request in seconds, whether it may be killed and run again, and its trials so far."""

    requested_time: int
    restartable: bool
    attempts: int = 0
    last: int = 0
    tested: bool = False


class Suspended(NamedTuple):
    """The place in the plan of a job that runs on trial: as it is, as first promised, and in which of its shapes.

    `size` is what the job takes of each resource.
    """

    start: int
    size: tuple[int, ...]
    run_time: int
    guaranteed: int
    shape: int


class Trials:
    """Trials by job; memory is bounded by the jobs in the system.

    >>> trials = Trials()
    >>> trials.observe(JobSubmitted(time=0, job_number=1, requested_processors=1, requested_time=36_000))
    >>> trials.decided(1, Attempt(7200, test_run=False), None)
    >>> trials.observe(JobStarted(time=0, job_number=1, processors=1, limit=7200))
    >>> trials.observe(JobEnded(time=7200, job_number=1, run_time=7200, outcome="limit", requeued=True))
    >>> trials.least(trials.jobs[1], 36_000, share=0.2)
    21600
    """

    def __init__(self) -> None:
        self.jobs: dict[int, Known] = {}
        self.limits: dict[int, int] = {}
        """When each trial that runs ends at the latest."""
        self.suspended: dict[int, Suspended] = {}
        """Places in the plan of the jobs that run on trial."""
        self._decided: dict[int, tuple[Attempt, Suspended | None]] = {}
        """Trials that were decided, with the places that their jobs keep if they do start."""

    @staticmethod
    def least(known: Known, run_time: int, share: float) -> int:
        """Return the hole that a job needs to be speculated on, in seconds."""
        return next_time(known.last, run_time) if known.last else max(int(share * run_time), 1)

    def decided(self, number: int, attempt: Attempt, place: Suspended | None) -> None:
        """Take note of a decision, and of the place in the plan that the job keeps meanwhile."""
        self._decided[number] = attempt, place

    def cut_short(self, running: Running, ends: Integers) -> Integers:
        """Return when running jobs are expected to end, trials at their limits at the latest."""
        if not self.limits:
            return ends
        limits = [self.limits.get(number, FOREVER) for number in running.job_number.tolist()]
        return np.minimum(ends, np.array(limits, dtype=np.int64))

    def observe(self, event: Event) -> None:
        """Keep what a trial taught; forget jobs that have ended for good."""
        if isinstance(event, JobSubmitted):
            requested_time = NEVER if event.requested_time is None else event.requested_time
            self.jobs[event.job_number] = Known(requested_time, event.restartable)
        elif isinstance(event, JobWithdrawn):
            for kept in (self.jobs, self._decided):
                kept.pop(event.job_number, None)
        elif isinstance(event, JobStarted):
            number, decided = event.job_number, self._decided.get(event.job_number)
            if decided is not None and event.limit == decided[0].seconds:
                self.limits[number] = event.time + decided[0].seconds
                if decided[1] is not None:
                    self.suspended[number] = decided[1]
            else:  # it did not start as a trial
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
        """Return jobs, limits and places as plain values."""
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
        """Take on what `snapshot` returned."""
        self.jobs = {number: Known(*known) for number, *known in state["jobs"]}
        self.limits = dict(state["limits"])
        self._decided = {
            number: (Attempt(*attempt), None if place is None else Suspended(*place))
            for number, attempt, place in state["decided"]
        }
        self.suspended = {number: Suspended(*place) for number, *place in state["suspended"]}
