"""The running jobs of a pass, and those that it has started itself."""

import numpy as np

from shadowtime.services.scheduler.expected_end import Column, expected_ends
from shadowtime.services.scheduler.job_table import Queue, Running

NO_CORRECTIONS: Column = np.empty(0, dtype=np.int64)


class Busy:
    """The running jobs, and those that this pass has started, as columns."""

    def __init__(self, now: int, queue: Queue, running: Running) -> None:
        self.now = now
        self.queue = queue
        self.started = 0
        self.numbers = running.job_number
        self.processors = running.processors
        self.start_times = running.start_time
        self.requested_times = running.requested_time
        self.slots = running.slot
        starts, requested, limits = running.start_time, running.requested_time, running.limit_time
        self.expected_ends = expected_ends(
            now, starts, running.predicted_time, running.adjusted_time, requested, running.corrections
        )
        self.limit_times = expected_ends(now, starts, limits, limits, requested, NO_CORRECTIONS) - starts

    def add(self, first: int, last: int) -> None:
        """Take in waiting jobs, from one row to before another, as started now."""
        queue, rows = self.queue, slice(first, last)
        self.started += last - first
        self.numbers = np.concatenate((self.numbers, queue.job_number[rows]))
        self.processors = np.concatenate((self.processors, queue.processors[rows]))
        self.start_times = np.concatenate((self.start_times, np.full(last - first, self.now)))
        self.requested_times = np.concatenate((self.requested_times, queue.requested_time[rows]))
        self.limit_times = np.concatenate((self.limit_times, queue.limit_time[rows]))
        self.slots = np.concatenate((self.slots, queue.slot[rows]))
        self.expected_ends = np.concatenate((self.expected_ends, self.now + queue.predicted_time[rows]))

    def requested_ends(self) -> Column:
        """Return when each job ends at the latest; one that has outlived its request, in a second."""
        requested = self.requested_times
        return expected_ends(self.now, self.start_times, requested, requested, requested, NO_CORRECTIONS)
