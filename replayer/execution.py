"""A job on a simulated machine: when it ends, and whether its limit ends it."""

from dataclasses import dataclass

from shadowtime.replayer.logged_job import Job
from shadowtime.shared.speedup import reshaped_time


@dataclass(frozen=True, slots=True)
class Execution:
    """A job on the machine; `row` is its place in the workload, `limit` None where nothing ends it early.

    `by` is what its times are multiplied by, and divided, on this number of processors.
    """

    row: int
    job: Job
    start_time: int
    processors: int
    limit: int | None
    by: tuple[int, int]

    @property
    def run_time(self) -> int:
        """What it runs on its processors, in seconds, if nothing ends it."""
        return reshaped_time(self.job.run_time, self.by)

    @property
    def on_trial(self) -> bool:
        """Whether it has less time than it requests: if it needs more it is to wait again."""
        return self.limit is not None and self.limit < reshaped_time(self.job.requested_time, self.by)

    @property
    def cut(self) -> bool:
        """Whether its limit ends it: on another size rounding may make a cut run as long as the whole."""
        if self.limit is None:
            return False
        rounded = self.limit == self.run_time and self.job.run_time > self.job.requested_time
        return self.limit < self.run_time or rounded

    @property
    def end_time(self) -> int:
        """When it ends, in seconds."""
        return self.start_time + (self.run_time if self.limit is None else min(self.run_time, self.limit))
