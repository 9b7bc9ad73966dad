"""One job on a simulated machine: its run time and the cause of its end (docs/algorithms.md#end-at-the-limit)."""

from typing import NamedTuple

from shadowtime.shared.cluster.job import Job
from shadowtime.shared.cluster.source import OUTCOMES
from shadowtime.shared.messages import JobEnded, JobStarted, construct_unchecked, reshaped_time


class Execution(NamedTuple):
    """A job that started. `limit` is in seconds from the start; None if nothing ends the job early.

    `by` is a fraction (numerator, denominator) that scales the job's times to `processors`.
    """

    job: Job
    start_time: int
    processors: int
    limit: int | None
    by: tuple[int, int]

    @property
    def run_time(self) -> int:
        """Run time on these processors if nothing ends the job, in seconds."""
        return reshaped_time(self.job.run_time, self.by)

    @property
    def on_trial(self) -> bool:
        """Whether the limit is below the requested time. A job on trial that needs more time is requeued."""
        return self.limit is not None and self.limit < reshaped_time(self.job.requested_time, self.by)

    @property
    def cut(self) -> bool:
        """Whether the limit ends the job.

        On another number of processors than requested, limit and run time are rounded, and may become equal. Then the
        unscaled times decide.
        """
        if self.limit is None:
            return False
        run_time = self.run_time
        return self.limit < run_time or (self.limit == run_time and self.job.run_time > self.job.requested_time)

    @property
    def end_time(self) -> int:
        """Time of the end, in seconds, unless the job is killed earlier."""
        run_time = self.run_time
        return self.start_time + (run_time if self.limit is None else min(run_time, self.limit))

    def started(self) -> JobStarted:
        """Return the start as an event."""
        return construct_unchecked(
            JobStarted,
            time=self.start_time,
            job_number=self.job.job_number,
            processors=self.processors,
            limit=self.limit,
            trial=True if self.on_trial else None,
        )

    def ended(self, time: int, *, killed: bool = False, requeue: bool = False) -> JobEnded:
        """Return the end of the job at a time as an event.

        `killed` and `requeue` say whether a decision killed the job, and whether the job waits again. A job on trial
        that its limit ends is always requeued. A requeued job waits again in `replayer/simulation/machine.py` and in
        `services/scheduler/pool_scheduler.py`.
        """
        cut = self.cut
        if cut and not killed and self.on_trial:
            requeue = True
        whole = not (killed or requeue) and self.processors != self.job.processors
        return construct_unchecked(
            JobEnded,
            time=time,
            job_number=self.job.job_number,
            run_time=time - self.start_time,
            outcome="killed" if killed else "limit" if cut else OUTCOMES.get(self.job.status, "completed"),
            requeued=requeue,
            original_run_time=min(self.job.run_time, self.job.requested_time) if whole else None,
        )
