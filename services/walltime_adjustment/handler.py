"""The stage that adds adjusted requests to submissions, learns from the ends of jobs, and reports the outcomes."""

from typing import Any

from shadowtime.services.walltime_adjustment.auto import Auto
from shadowtime.services.walltime_adjustment.percentile import Percentile
from shadowtime.shared.messages import (
    ClusterOpened,
    Envelope,
    JobEnded,
    JobSubmitted,
    WalltimeAdjustment,
    adjustment_class,
)
from shadowtime.shared.spec import Price, Registry, parse
from shadowtime.shared.stages import Passthrough, PredictingStage, Predictor, RunningJob

# No adjustment: requests stay as they were submitted.


class Unadjusted(Passthrough):
    """Leave every request as it is."""


Adjuster = Predictor[JobSubmitted, JobEnded, WalltimeAdjustment]

ADJUSTERS: Registry[Adjuster] = Registry(
    "walltime adjustment",
    [Unadjusted, Percentile, Auto],
    group="adjusters",
    base=Predictor,
)


class WalltimeAdjustments(PredictingStage):
    """Stage that adjusts the requests of one run, by the scheme that `ClusterOpened.adjustment` names."""

    field = "adjustment"
    answers = WalltimeAdjustment

    def __init__(self, opened: ClusterOpened) -> None:
        super().__init__(opened, ADJUSTERS.build(parse(opened.adjustment)))
        self.adjustments: dict[int, WalltimeAdjustment] = {}

    @staticmethod
    def price(opened: ClusterOpened) -> Price:
        """Return the upper limit of memory and work for the adjuster of a run."""
        return ADJUSTERS.price(parse(opened.adjustment))

    def on_submitted(self, envelope: Envelope, job: JobSubmitted) -> Envelope:
        """Add the adjustment, and keep it until the job ends."""
        output = super().on_submitted(envelope, job)
        if output is not envelope and output.adjustment is not None:
            self.adjustments[job.job_number] = output.adjustment
        return output

    def on_ended(self, envelope: Envelope, ended: JobEnded, job: RunningJob) -> Envelope:
        """Learn from the end, and add the adjustment with its outcome."""
        if ended.requeued:
            return envelope
        adjustment = self.adjustments.pop(ended.job_number, None)
        if ended.outcome == "killed":  # by the scheduler: the job's own run time is unknown
            return envelope
        self.predictor.learn_one(job.submitted, ended)
        requested_time = job.submitted.requested_time
        if adjustment is None or requested_time is None:
            return envelope
        outcome = adjustment_class(ended.own_run_time, requested_time, adjustment.adjusted_time)
        return envelope.model_copy(update={self.field: adjustment.model_copy(update={"outcome": outcome})})

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as plain values."""
        adjustments = [[number, adjustment.model_dump()] for number, adjustment in self.adjustments.items()]
        return super().snapshot() | {"adjustments": adjustments}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        super().restore(state)
        self.adjustments = {
            number: WalltimeAdjustment.model_validate(adjustment) for number, adjustment in state["adjustments"]
        }
