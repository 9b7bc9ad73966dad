"""The protocol of a stage, without I/O: its handler, log, snapshot and predictors."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.shared.stages import topics
    from shadowtime.shared.stages.handler import StageHandler, read_together
    from shadowtime.shared.stages.jobs_in_system import CHANGEABLE, RunningJob, new_request, only_priority
    from shadowtime.shared.stages.predicting_stage import PredictingStage
    from shadowtime.shared.stages.predictor import LastAnswer, Passthrough, Predictor
    from shadowtime.shared.stages.questions import AdvisedStart, BoundsWaits, ForecastsStarts, PredictsRunTimes
    from shadowtime.shared.stages.run_log import CheckedLog
    from shadowtime.shared.stages.stage import Stage, StageRun, chained, described, fingerprint, read_snapshot, rejected
    from shadowtime.shared.stages.topics import DEAD_LETTERS, DECISIONS, FLOW, JOBS, SCORES, WRITTEN_BY

__all__ = [
    "CHANGEABLE",
    "DEAD_LETTERS",
    "DECISIONS",
    "FLOW",
    "JOBS",
    "SCORES",
    "WRITTEN_BY",
    "AdvisedStart",
    "BoundsWaits",
    "CheckedLog",
    "ForecastsStarts",
    "LastAnswer",
    "Passthrough",
    "PredictingStage",
    "Predictor",
    "PredictsRunTimes",
    "RunningJob",
    "Stage",
    "StageHandler",
    "StageRun",
    "chained",
    "described",
    "fingerprint",
    "new_request",
    "only_priority",
    "read_snapshot",
    "read_together",
    "rejected",
    "topics",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "handler": (
            "StageHandler",
            "read_together",
        ),
        "jobs_in_system": (
            "CHANGEABLE",
            "RunningJob",
            "new_request",
            "only_priority",
        ),
        "predicting_stage": ("PredictingStage",),
        "predictor": (
            "LastAnswer",
            "Passthrough",
            "Predictor",
        ),
        "questions": (
            "AdvisedStart",
            "BoundsWaits",
            "ForecastsStarts",
            "PredictsRunTimes",
        ),
        "run_log": ("CheckedLog",),
        "stage": (
            "Stage",
            "StageRun",
            "chained",
            "described",
            "fingerprint",
            "read_snapshot",
            "rejected",
        ),
        "topics": (
            "DEAD_LETTERS",
            "DECISIONS",
            "FLOW",
            "JOBS",
            "SCORES",
            "WRITTEN_BY",
        ),
    },
    modules=("topics",),
)
