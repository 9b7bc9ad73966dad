"""The stage that adds a run-time prediction to every submission and learns from every end."""

from shadowtime.services.runtime_distribution.downey import DowneyMean, DowneyMedian
from shadowtime.services.runtime_distribution.empirical import Empirical, EmpiricalRequest
from shadowtime.services.runtime_distribution.ensembles import Boosted, Experts, Mixture
from shadowtime.services.runtime_distribution.gibbons import Gibbons
from shadowtime.services.runtime_distribution.hmm import Hmm
from shadowtime.services.runtime_distribution.simple import ClassMeanSigma, ClassP90, LastTwo, QueueMaximum, Requested
from shadowtime.services.runtime_distribution.templates import Templates
from shadowtime.shared.messages import ClusterOpened, Envelope, JobEnded, JobSubmitted, RunTimePrediction
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


class RuntimeDistribution(PredictingStage):
    """Run-time predictions of one run, by the predictor that `ClusterOpened.runtime` names."""

    field = "run_time"

    def __init__(self, opened: ClusterOpened) -> None:
        super().__init__(opened, PREDICTORS.build(parse(opened.runtime)))

    @staticmethod
    def price(opened: ClusterOpened) -> Price:
        """Return the upper limit of memory and work for the predictor of a run."""
        return PREDICTORS.price(parse(opened.runtime))

    def on_ended(self, envelope: Envelope, ended: JobEnded, job: RunningJob) -> Envelope:
        """Learn the run time, unless the scheduler requeued or killed the job: its full run time is unknown then.

        See docs/algorithms.md#known-live.
        """
        if not ended.requeued and ended.outcome != "killed":
            self.predictor.learn_one(job.submitted, ended.own_run_time)
        return envelope

    def run_time_of(self, job: JobSubmitted) -> RunTimePrediction | None:
        """Return the prediction for a job as if it were submitted now, or None if there is none."""
        prediction: RunTimePrediction | None = self.predictor.predict_one(job)
        return prediction
