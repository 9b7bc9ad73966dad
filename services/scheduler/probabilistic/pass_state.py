"""Running jobs during a pass, and the jobs that the pass has started itself."""

from functools import cached_property

import numpy as np

from shadowtime.services.scheduler.kernels import RunningEnds
from shadowtime.services.scheduler.probabilistic.acceptance import Candidates
from shadowtime.services.scheduler.tables import Queue, Running, RunningJobs, expected_ends
from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.kernels import Flags, Integers, kernel, shadow_of

NONE: Integers = np.empty(0, dtype=np.int64)


@kernel
def planned_ends(now: int, running: RunningJobs, limits: Integers) -> tuple[Integers, Integers]:
    """Return the expected end of each running job, and the limit of its run time in seconds. O(jobs).

    The limit exceeds the time that the job has run so far by at least a second.
    """
    starts, none = running.start_times, running.corrections[:0]
    at_limits = expected_ends(now, RunningJobs(running.sizes, starts, limits, limits, running.requested_times, none))
    return expected_ends(now, running), at_limits - starts


class PassState:
    """Columns of the running jobs, and of the jobs that this pass has started."""

    def __init__(self, now: int, queue: Queue, running: Running) -> None:
        self.now = now
        self.queue = queue
        self.running = running
        self.rows = NONE
        """Rows in the queue of the jobs that the pass has started."""
        self.numbers = running.job_number
        self.sizes = running.sizes
        self.start_times = running.start_time
        self.requested_times = running.requested_time
        self.slots = running.slot
        self.requested_ends: Integers = np.maximum(self.start_times + self.requested_times, now + 1)
        """Latest end of each job, by its request; in one second if it has outlived its request."""

    @property
    def started(self) -> int:
        """Number of jobs that the pass has started."""
        return len(self.rows)

    def add(self, rows: Integers) -> None:
        """Add waiting jobs, given by their rows in the queue, as started now."""
        queue, requested = self.queue, self.queue.requested_time[rows]
        self.rows = np.concatenate((self.rows, rows))
        self.numbers = np.concatenate((self.numbers, queue.job_number[rows]))
        self.sizes = np.concatenate((self.sizes, queue.sizes[rows]))
        self.start_times = np.concatenate((self.start_times, np.full(len(rows), self.now)))
        self.requested_times = np.concatenate((self.requested_times, requested))
        self.slots = np.concatenate((self.slots, queue.slot[rows]))
        self.requested_ends = np.concatenate((self.requested_ends, self.now + requested))

    @cached_property
    def _planned(self) -> tuple[Integers, Integers]:
        """Expected ends and limits of the jobs that ran before the pass, computed on demand: few passes need them."""
        return planned_ends(self.now, self.running.jobs(on_requests=False), self.running.limit_time)

    @property
    def expected_ends(self) -> Integers:
        """Expected end of each job."""
        return np.concatenate((self._planned[0], self.now + self.queue.predicted_time[self.rows]))

    @property
    def limit_times(self) -> Integers:
        """Upper end of the run time of each job, in seconds."""
        return np.concatenate((self._planned[1], self.queue.limit_time[self.rows]))

    @property
    def processors(self) -> Integers:
        """Processors that each job holds."""
        return np.ascontiguousarray(self.sizes[:, 0])

    def fits_at(self, needed: Integers, idle: Integers) -> int | None:
        """Return the first time from now on, in seconds, at which `needed` is expected to be free; None if never.

        `needed` and `idle` are amounts of each resource, in the order of `Running.free`. O(running log running).
        """
        time, _ = shadow_of(needed, idle, self.sizes, self.expected_ends)
        return int(max(time, self.now)) if time - self.now <= MAX_DURATION else None

    def ends(self) -> RunningEnds:
        """Return the columns from which a walk derives when each job may end."""
        return RunningEnds(self.processors, self.start_times, self.expected_ends, self.limit_times, self.slots)

    def candidates(self, rows: Integers, free_pass: Flags) -> Candidates:
        """Return waiting jobs, given by their rows in the queue, as candidates."""
        queue = self.queue
        columns = queue.processors, queue.predicted_time, queue.limit_time, queue.slot
        return Candidates._make((*(column[rows] for column in columns), free_pass))
