"""The stage: adds an adjusted request to every submission, learns from every end, and says what became of it."""

from typing import Any

from shadowtime.services.walltime_adjustment.auto import Auto
from shadowtime.services.walltime_adjustment.percentile import Percentile
from shadowtime.services.walltime_adjustment.unadjusted import Unadjusted
from shadowtime.shared.events import ClusterOpened, Envelope, JobEnded, JobSubmitted
from shadowtime.shared.jobs_in_system import RunningJob
from shadowtime.shared.predicting_stage import PredictingStage
from shadowtime.shared.predictions import WalltimeAdjustment
from shadowtime.shared.predictor import Predictor
from shadowtime.shared.spec import Registry, parse
from shadowtime.shared.walltime_accuracy import adjustment_class

Adjuster = Predictor[JobSubmitted, JobEnded, WalltimeAdjustment]

ADJUSTERS: Registry[Adjuster] = Registry(
    "walltime adjustment",
    [Unadjusted, Percentile, Auto],
    group="adjusters",
    base=Predictor,
)


class WalltimeAdjustments(PredictingStage):
    """One run: the scheme that `ClusterOpened.adjustment` names."""

    field = "adjustment"

    def __init__(self, opened: ClusterOpened) -> None:
        super().__init__(opened, ADJUSTERS.build(parse(opened.adjustment)))
        self.adjustments: dict[int, WalltimeAdjustment] = {}

    def on_submitted(self, envelope: Envelope, job: JobSubmitted) -> Envelope:
        """Add the adjustment, and keep it until the job ends."""
        output = super().on_submitted(envelope, job)
        if output is not envelope and output.adjustment is not None:
            self.adjustments[job.job_number] = output.adjustment
        return output

    def on_ended(self, envelope: Envelope, ended: JobEnded, job: RunningJob) -> Envelope:
        """Learn the end, and add the adjustment with what it turned out to be."""
        if ended.requeued:
            return envelope
        adjustment = self.adjustments.pop(ended.job_number, None)
        if ended.outcome == "killed":  # by the scheduler: that tells nothing of the job's own length
            return envelope
        self.predictor.learn_one(job.submitted, ended)
        requested_time = job.submitted.requested_time
        if adjustment is None or requested_time is None:
            return envelope
        outcome = adjustment_class(ended.own_run_time, requested_time, adjustment.adjusted_time)
        return envelope.model_copy(update={self.field: adjustment.model_copy(update={"outcome": outcome})})

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as plain values."""
        adjustments = [[number, each.model_dump()] for number, each in self.adjustments.items()]
        return super().snapshot() | {"adjustments": adjustments}

    def restore(self, state: dict[str, Any]) -> None:
        """Take on what `snapshot` returned."""
        super().restore(state)
        self.adjustments = {number: WalltimeAdjustment.model_validate(each) for number, each in state["adjustments"]}
