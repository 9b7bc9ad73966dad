"""The stage: adds a run-time prediction to every submission, and learns from every end."""

from shadowtime.services.runtime_distribution.boosted import Boosted
from shadowtime.services.runtime_distribution.class_mean_sigma import ClassMeanSigma
from shadowtime.services.runtime_distribution.class_p90 import ClassP90
from shadowtime.services.runtime_distribution.downey import DowneyMean, DowneyMedian
from shadowtime.services.runtime_distribution.empirical import Empirical
from shadowtime.services.runtime_distribution.empirical_request import EmpiricalRequest
from shadowtime.services.runtime_distribution.experts import Experts
from shadowtime.services.runtime_distribution.gibbons import Gibbons
from shadowtime.services.runtime_distribution.hmm import Hmm
from shadowtime.services.runtime_distribution.last_two import LastTwo
from shadowtime.services.runtime_distribution.mixture import Mixture
from shadowtime.services.runtime_distribution.queue_maximum import QueueMaximum
from shadowtime.services.runtime_distribution.requested import Requested
from shadowtime.services.runtime_distribution.templates import Templates
from shadowtime.shared.events import ClusterOpened, Envelope, JobEnded, JobSubmitted
from shadowtime.shared.jobs_in_system import RunningJob
from shadowtime.shared.predicting_stage import PredictingStage
from shadowtime.shared.predictions import RunTimePrediction
from shadowtime.shared.predictor import Predictor
from shadowtime.shared.spec import Registry, parse

RunTimePredictor = Predictor[JobSubmitted, int, RunTimePrediction]
"""A prediction is at least one second and at most the request (docs/algorithms.md#limits-of-a-prediction)."""

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
    """One run: the predictor that `ClusterOpened.runtime` names."""

    field = "run_time"

    def __init__(self, opened: ClusterOpened) -> None:
        super().__init__(opened, PREDICTORS.build(parse(opened.runtime)))

    def on_ended(self, envelope: Envelope, ended: JobEnded, job: RunningJob) -> Envelope:
        """Learn the run time, unless the scheduler cut the job short, which tells nothing of its length.

        The rule: docs/algorithms.md#known-live.
        """
        if not ended.requeued and ended.outcome != "killed":
            self.predictor.learn_one(job.submitted, ended.own_run_time)
        return envelope

    def run_time_of(self, job: JobSubmitted) -> RunTimePrediction | None:
        """Return what would be predicted of a job if it were submitted now; None for nothing."""
        prediction: RunTimePrediction | None = self.predictor.predict_one(job)
        return prediction
