"""The stage: adds an adjusted request to every submission, and learns from every end."""

from services.walltime_adjustment.unadjusted import Unadjusted
from shared.events import ClusterOpened, JobSubmitted
from shared.predicting_stage import PredictingStage
from shared.predictions import WalltimeAdjustment
from shared.predictor import Predictor
from shared.spec import Registry, parse

Adjuster = Predictor[JobSubmitted, int, WalltimeAdjustment]

ADJUSTERS: Registry[Adjuster] = Registry("walltime adjustment", [Unadjusted])


class WalltimeAdjustments(PredictingStage):
    """One run: the scheme that `ClusterOpened.adjustment` names."""

    field = "adjustment"

    def __init__(self, opened: ClusterOpened) -> None:
        super().__init__(opened, ADJUSTERS.build(parse(opened.adjustment)))
