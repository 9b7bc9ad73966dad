"""The running jobs of a pass, and those that it has started itself."""

import numpy as np

from shadowtime.services.scheduler.candidates import Candidates
from shadowtime.services.scheduler.expected_end import RunningJobs, expected_ends
from shadowtime.services.scheduler.job_table import Queue, Running
from shadowtime.services.scheduler.terminations import RunningEnds
from shadowtime.shared.arrays import Flags, Integers

NO_CORRECTIONS: Integers = np.empty(0, dtype=np.int64)


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
        self.expected_ends = expected_ends(now, running.jobs(on_requests=False))
        self.limit_times = self._ends_at(running.limit_time) - self.start_times
        self._requested_ends: Integers | None = None

    def add(self, rows: Integers) -> None:
        """Take in waiting jobs, by their rows, as started now."""
        queue, count = self.queue, len(rows)
        self._requested_ends = None
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
        if self._requested_ends is None:
            self._requested_ends = self._ends_at(self.requested_times)
        return self._requested_ends

    def _ends_at(self, times: Integers) -> Integers:
        """Return when each job ends if it runs for these times, in seconds."""
        jobs = RunningJobs(self.sizes, self.start_times, times, times, self.requested_times, NO_CORRECTIONS)
        return expected_ends(self.now, jobs)
