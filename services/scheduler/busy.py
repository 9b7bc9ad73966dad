"""The running jobs of a pass, and those that it has started itself."""

import numpy as np

from shadowtime.services.scheduler.candidates import Candidates
from shadowtime.services.scheduler.expected_end import RunningJobs, expected_ends
from shadowtime.services.scheduler.job_table import Queue, Running
from shadowtime.services.scheduler.terminations import RunningEnds
from shadowtime.shared.arrays import Flags, Integers
from shadowtime.shared.kernel import kernel

NO_CORRECTIONS: Integers = np.empty(0, dtype=np.int64)


@kernel
def all_ends(now: int, running: RunningJobs, limits: Integers) -> tuple[Integers, Integers, Integers]:
    """Return of each running job when it is expected to end, its limit in seconds, and when it ends at its request.

    The limit is at least as long as it has run already, and a second more. O(jobs).
    """
    starts, requested = running.start_times, running.requested_times
    none = running.corrections[:0]
    at_limits = expected_ends(now, RunningJobs(running.sizes, starts, limits, limits, requested, none))
    at_requests = expected_ends(now, RunningJobs(running.sizes, starts, requested, requested, requested, none))
    return expected_ends(now, running), at_limits - starts, at_requests


class Busy:
    """The running jobs, and those that this pass has started, as columns."""

    def __init__(self, now: int, queue: Queue, running: Running) -> None:
        self.now = now
        self.queue = queue
        self.started = 0
        self.numbers = running.job_number
        self.sizes = running.sizes
        self.start_times = running.start_time
        self.requested_times = running.requested_time
        self.slots = running.slot
        planned = running.jobs(on_requests=False)
        self.expected_ends, self.limit_times, self._requested_ends = all_ends(now, planned, running.limit_time)
        self._known = True  # whether those at the requests are of all

    def add(self, rows: Integers) -> None:
        """Take in waiting jobs, by their rows, as started now."""
        queue, count = self.queue, len(rows)
        self._known = False
        self.started += count
        self.numbers = np.concatenate((self.numbers, queue.job_number[rows]))
        self.sizes = np.concatenate((self.sizes, queue.sizes[rows]))
        self.start_times = np.concatenate((self.start_times, np.full(count, self.now)))
        self.requested_times = np.concatenate((self.requested_times, queue.requested_time[rows]))
        self.limit_times = np.concatenate((self.limit_times, queue.limit_time[rows]))
        self.slots = np.concatenate((self.slots, queue.slot[rows]))
        self.expected_ends = np.concatenate((self.expected_ends, self.now + queue.predicted_time[rows]))

    @property
    def processors(self) -> Integers:
        """Processors that each holds."""
        return np.ascontiguousarray(self.sizes[:, 0])

    def ends(self) -> RunningEnds:
        """Return when each job may end, as a walk takes it."""
        return RunningEnds(self.processors, self.start_times, self.expected_ends, self.limit_times, self.slots)

    def candidates(self, rows: Integers, free_pass: Flags) -> Candidates:
        """Return waiting jobs, by their rows, as candidates."""
        queue = self.queue
        columns = queue.processors, queue.predicted_time, queue.limit_time, queue.slot
        return Candidates._make((*(column[rows] for column in columns), free_pass))

    def requested_ends(self) -> Integers:
        """Return when each job ends at the latest; one that has outlived its request, in a second."""
        if not self._known:
            times = self.requested_times
            jobs = RunningJobs(self.sizes, self.start_times, times, times, times, NO_CORRECTIONS)
            self._requested_ends, self._known = expected_ends(self.now, jobs), True
        return self._requested_ends
