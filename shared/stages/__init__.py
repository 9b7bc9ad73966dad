"""The protocol of a stage, without I/O: its handler, log, snapshot and predictors."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.shared.stages import topics
    from shadowtime.shared.stages.handler import StageHandler, read_together
    from shadowtime.shared.stages.job_start import (
        HIGH,
        NOT_YET,
        BoundDoubt,
        StartPredictions,
        doubt_of,
        expected_start,
        wait_given,
    )
    from shadowtime.shared.stages.jobs_in_system import CHANGEABLE, JobsInSystem, RunningJob, new_request, only_priority
    from shadowtime.shared.stages.predicting_stage import PredictingStage
    from shadowtime.shared.stages.predictor import LastValue, Passthrough, Predictor
    from shadowtime.shared.stages.questions import (
        AdvisedStart,
        BoundsWaits,
        ForecastsStarts,
        ListsJobs,
        PredictsRunTimes,
        RiskOfRequests,
    )
    from shadowtime.shared.stages.run_log import RunLog
    from shadowtime.shared.stages.snapshot_head import fingerprint, read_snapshot
    from shadowtime.shared.stages.stage import Stage, StageRun, chained, described, rejected
    from shadowtime.shared.stages.topics import DEAD_LETTERS, DECISIONS, FLOW, JOBS, SCORES, WRITTEN_BY

__getattr__ = lazy_exports(__name__)
