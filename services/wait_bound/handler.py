"""The stage: adds bounds on the wait to every submission, and learns from every start."""

from services.wait_bound.unbounded import Unbounded
from shared.events import ClusterOpened, Envelope, JobStarted, JobSubmitted
from shared.predicting_stage import PredictingStage
from shared.predictions import WaitBound
from shared.predictor import Predictor
from shared.spec import Registry, parse

Bounder = Predictor[JobSubmitted, int, tuple[WaitBound, ...]]

BOUNDERS: Registry[Bounder] = Registry("wait bound", [Unbounded])


class WaitBounds(PredictingStage):
    """One run: the bound that `ClusterOpened.wait_bound` names."""

    field = "wait_bounds"

    def __init__(self, opened: ClusterOpened) -> None:
        super().__init__(opened, BOUNDERS.build(parse(opened.wait_bound)))

    def on_started(self, envelope: Envelope, started: JobStarted, job: JobSubmitted) -> Envelope:
        """Learn the wait, which is known from now on."""
        self.predictor.learn_one(job, started.time - job.time)
        return envelope
