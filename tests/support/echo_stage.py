"""A stage that answers with what it was asked."""

from shadowtime.shared.messages.envelope import JobSubmitted
from shadowtime.shared.messages.predictions import Side, WaitBound, WaitRanges
from shadowtime.shared.stages.handler import StageHandler
from shadowtime.shared.stages.job_start import BoundDoubt, doubt_of
from shadowtime.shared.stages.stage import Stage


class Echo(StageHandler):
    """Answers with what it was asked: a bound of one second for each processor and each second of the request."""

    def bounds_at(
        self, job: JobSubmitted, quantile: float, confidence: float, side: Side = "upper"
    ) -> tuple[WaitBound, ...]:
        assert (job.job_number, job.time) == (0, self.time)
        if self.opened.wait_bound == "none":
            return ()
        if job.user_id == 13:
            raise ZeroDivisionError("a secret of the handler")
        bound = job.requested_processors + (job.requested_time or 0) + (job.user_id or 0)
        return (
            WaitBound(grouping="plain", queue=job.queue_number, quantile=quantile, confidence=confidence, bound=bound),
        )

    def doubt_at(self, bound: WaitBound) -> BoundDoubt | None:
        """Return what the waiting jobs say of a bound; they have none of their own."""
        return doubt_of(bound, ((self.time - job.since, None) for job in self.jobs.waiting.values()))

    def ranges_at(self, job: JobSubmitted) -> tuple[WaitRanges, ...]:
        return ()


STAGE = Stage("wait_bound", "in", "out", Echo)
