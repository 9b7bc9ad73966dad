"""The stage that adds a run-time prediction to every submission and learns from every end."""

from typing import Any

from shadowtime.services.runtime_distribution.cut_risks import PRICE as PRICE_OF_RISKS
from shadowtime.services.runtime_distribution.cut_risks import CutRisk, CutRisks
from shadowtime.services.runtime_distribution.downey import DowneyMean, DowneyMedian
from shadowtime.services.runtime_distribution.empirical import Empirical, EmpiricalRequest
from shadowtime.services.runtime_distribution.ensembles import Boosted, Experts, Mixture
from shadowtime.services.runtime_distribution.gibbons import Gibbons
from shadowtime.services.runtime_distribution.hmm import Hmm
from shadowtime.services.runtime_distribution.revisable import Conditioned, Revisable
from shadowtime.services.runtime_distribution.revisions import PRICE as PRICE_OF_REVISIONS
from shadowtime.services.runtime_distribution.revisions import Revisions
from shadowtime.services.runtime_distribution.simple import ClassMeanSigma, ClassP90, LastTwo, QueueMaximum, Requested
from shadowtime.services.runtime_distribution.templates import Templates
from shadowtime.shared.messages import (
    ClusterOpened,
    Envelope,
    JobEnded,
    JobResumed,
    JobStarted,
    JobSubmitted,
    JobWithdrawn,
    RunTimePrediction,
    SchedulingPoint,
)
from shadowtime.shared.spec import Price, Registry, parse
from shadowtime.shared.stages import PredictingStage, Predictor, RunningJob

RunTimePredictor = Predictor[JobSubmitted, int, RunTimePrediction]
"""A predictor of run times: at least one second, at most the request (docs/algorithms.md#limits-of-a-prediction)."""

PREDICTORS: Registry[RunTimePredictor] = Registry(
    "run-time predictor",
    [
        Requested,
        LastTwo,
        Hmm,
        Empirical,
        EmpiricalRequest,
        Experts,
        Templates,
        Boosted,
        Mixture,
        Gibbons,
        DowneyMean,
        DowneyMedian,
        QueueMaximum,
        ClassP90,
        ClassMeanSigma,
    ],
    group="predictors",
    base=Predictor,
)


def is_anew(opened: ClusterOpened) -> bool:
    """Return whether the predictor of a run predicts the jobs in the system anew (`RunTimeSettings.predict`)."""
    return parse(opened.runtime).keys.get("predict") == "anew"


class RuntimeDistribution(PredictingStage):
    """Run-time predictions of one run, by the predictor that `ClusterOpened.runtime` names."""

    field = "run_time"
    answers = RunTimePrediction

    def __init__(self, opened: ClusterOpened) -> None:
        super().__init__(opened, PREDICTORS.build(parse(opened.runtime)))
        self.cut_risks = CutRisks()
        self.revisions: Revisions | None = None
        """The predictions of the jobs in the system, if they are made anew; None if each is made once."""
        if is_anew(opened):
            self.revisions = Revisions(
                self.predictor if isinstance(self.predictor, Revisable) else Conditioned(self.predictor)
            )

    @staticmethod
    def price(opened: ClusterOpened) -> Price:
        """Return the upper limit of memory and work for the predictor of a run."""
        price = PREDICTORS.price(parse(opened.runtime)).plus(PRICE_OF_RISKS)
        return price.plus(PRICE_OF_REVISIONS) if is_anew(opened) else price

    def on_submitted(self, envelope: Envelope, job: JobSubmitted) -> Envelope:
        """Add the prediction of the job, if there is one, and the predictions of other jobs that have changed."""
        if self.revisions is not None:
            envelope = self._revised(envelope, self.revisions)
        envelope = super().on_submitted(envelope, job)
        if self.revisions is not None:
            self.revisions.add(job.job_number, envelope.run_time)
        self.cut_risks.submit(job, envelope.run_time)
        return envelope

    def on_scheduling_point(self, envelope: Envelope, point: SchedulingPoint) -> Envelope:
        """Add the predictions that have changed before the pass."""
        return envelope if self.revisions is None else self._revised(envelope, self.revisions)

    def _revised(self, envelope: Envelope, revisions: Revisions) -> Envelope:
        revised = revisions.take(envelope.event.time, self.jobs)
        return envelope if revised is None else envelope.replaced(revisions=revised)

    def on_withdrawn(self, envelope: Envelope, withdrawn: JobWithdrawn, job: JobSubmitted) -> Envelope:
        """Forget the job's prediction."""
        self.cut_risks.forget(withdrawn.job_number)
        if self.revisions is not None:
            self.revisions.forget(job.job_number)
        return envelope

    def on_started(self, envelope: Envelope, started: JobStarted, job: JobSubmitted) -> Envelope:
        """Record that the job runs, so its prediction depends on the elapsed time."""
        if self.revisions is not None:
            self.revisions.touch(started.job_number)
        return envelope

    def on_resumed(self, envelope: Envelope, resumed: JobResumed, job: RunningJob) -> Envelope:
        """Record that the job runs again."""
        if self.revisions is not None:
            self.revisions.touch(resumed.job_number)
        return envelope

    def on_ended(self, envelope: Envelope, ended: JobEnded, job: RunningJob) -> Envelope:
        """Learn the run time, unless the scheduler requeued or killed the job: its full run time is unknown then.

        See docs/algorithms.md#known-live.
        """
        if self.revisions is not None:
            if ended.requeued:
                self.revisions.touch(ended.job_number)
            else:
                self.revisions.forget(ended.job_number)
        if ended.outcome == "killed" and not ended.requeued:
            self.cut_risks.forget(ended.job_number)
        elif not ended.requeued:
            self.cut_risks.learn(job.submitted, ended.own_run_time, cut=ended.outcome == "limit")
            if self.revisions is not None:
                self.revisions.learn(job.submitted)
            self.predictor.learn_one(job.submitted, ended.own_run_time)
        return envelope

    def run_time_of(self, job: JobSubmitted) -> RunTimePrediction | None:
        """Return the prediction for a job as if it were submitted now, or None if there is none."""
        prediction: RunTimePrediction | None = self.predicted(job)
        return prediction

    def cut_risk_of(self, job: JobSubmitted) -> CutRisk | None:
        """Return the risk of being cut of a job that is submitted now; None without a request or a histogram."""
        return self.cut_risks.of(job, self.run_time_of(job))

    def longest_request(self, job: JobSubmitted) -> int:
        """Return the longest request so far in the job's pool, partition and queue, in seconds (`CutRisks.longest`)."""
        return self.cut_risks.longest(job)

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as plain values."""
        state = super().snapshot() | {"cut_risks": self.cut_risks.snapshot()}
        return state if self.revisions is None else state | {"revisions": self.revisions.snapshot()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        super().restore(state)
        self.cut_risks.restore(state["cut_risks"])
        if self.revisions is not None:
            self.revisions.restore(state["revisions"])
