"""The messages of a run: events, decisions, predictions, scores, and their envelope."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.shared.messages.base import (
        Amount,
        Count,
        Finite,
        FrozenModel,
        Processors,
        Request,
        Seconds,
        Whole,
        construct_unchecked,
    )
    from shadowtime.shared.messages.decisions import Again, Chosen, CutShort, Decision, Evaluated, Kill, Standing, Start
    from shadowtime.shared.messages.drifts import (
        DESCRIPTIONS,
        HALF,
        LONGER,
        OFF,
        OUTSIDE,
        SHORTER,
        TOO_SHORT,
        TWICE,
        Drift,
        DriftEpisode,
        DriftScores,
        Predicted,
        Scope,
        describe_drift,
        whose,
    )
    from shadowtime.shared.messages.envelope import (
        EVENTS,
        FOLLOWED,
        SCHEMA_VERSION,
        SHADOW,
        ClusterClosed,
        ClusterOpened,
        Decided,
        Envelope,
        Event,
        Refusal,
        Rejected,
        current_run,
        run_name,
    )
    from shadowtime.shared.messages.explanation import (
        MAX_NAMED_JOBS,
        Ahead,
        Ending,
        Endings,
        Explains,
        Explanation,
        Refused,
        Shadow,
        Sooner,
        StartOutlook,
        StartSource,
    )
    from shadowtime.shared.messages.gpu_types import (
        MAX_GPU_TYPES,
        OR,
        GpuType,
        after_change,
        allotted,
        by_type,
        needed,
        of_types,
    )
    from shadowtime.shared.messages.job_events import (
        CapacityChanged,
        GpuTypes,
        JobChanged,
        JobEnded,
        JobExpected,
        JobResumed,
        JobStarted,
        JobSubmitted,
        JobSuspended,
        JobWithdrawn,
        OfJob,
        Outcome,
        SchedulingPoint,
        moment,
    )
    from shadowtime.shared.messages.machine_capacity import (
        UNITS,
        MachineCapacity,
        Pool,
        PoolCapacity,
        units_of,
    )
    from shadowtime.shared.messages.predictions import (
        BAD_GAP,
        DIGITS,
        WITHOUT_CONFIDENCE,
        AdjustmentClass,
        ChangePoint,
        Coverage,
        Histogram,
        Probability,
        RunTimePrediction,
        RunTimeRevision,
        Side,
        WaitBound,
        WaitForecast,
        WaitRanges,
        WalltimeAdjustment,
        adjustment_class,
        bound_to_show,
        published,
    )
    from shadowtime.shared.messages.reasons import (
        Backfilled,
        FitsNow,
        ProbablyHarmless,
        Reason,
        Reserved,
        Risk,
        Speculated,
    )
    from shadowtime.shared.messages.samples import Figure, Sample, label, name_label
    from shadowtime.shared.messages.scores import (
        TENTHS,
        AdjustmentScores,
        CalibrationScores,
        ExpectedStartScores,
        Happenings,
        IntervalScores,
        MemberChange,
        PairedStartScores,
        PolicyScores,
        PortfolioScores,
        PredictionWorkloadScores,
        ProbabilityBin,
        ProbabilityScores,
        Reliability,
        ReliabilityBin,
        RunTimeScores,
        Scores,
        StartDistributionScores,
        StartErrorScores,
        StartProbabilityScores,
        StartsByScores,
        WaitBoundScores,
        WaitForecastScores,
        WorkloadErrors,
    )
    from shadowtime.shared.messages.speedup import SpeedUp, ratio, reshaped_time

__getattr__ = lazy_exports(__name__)
