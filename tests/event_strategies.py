"""Events and envelopes of every kind, drawn at random."""

from typing import Any, get_args

from hypothesis import strategies as st

from shadowtime.shared.bounds import MAX_DURATION, MAX_INTEGER, MAX_TIME
from shadowtime.shared.decisions import Evaluated, Kill, Start
from shadowtime.shared.events import (
    CapacityChanged,
    ClusterClosed,
    ClusterOpened,
    Decided,
    Envelope,
    Event,
    JobEnded,
    JobStarted,
    JobSubmitted,
    Outcome,
    Rejected,
    SchedulingPoint,
)
from shadowtime.shared.predictions import (
    ChangePoint,
    Coverage,
    RunTimePrediction,
    WaitBound,
    WaitForecast,
    WalltimeAdjustment,
)
from shadowtime.shared.reasons import Backfilled, FitsNow, ProbablyHarmless, Risk
from shadowtime.shared.run_time_bins import BINS
from shadowtime.shared.scores import (
    AdjustmentScores,
    CalibrationScores,
    PolicyScores,
    Reliability,
    ReliabilityBin,
    RunTimeScores,
    Scores,
    WaitBoundScores,
    WaitForecastScores,
)

EVENT_TYPES: tuple[type[Event], ...] = get_args(Event)

TIMES = st.integers(-MAX_TIME, MAX_TIME)
COUNTS = st.integers(0, MAX_INTEGER)
SPANS = st.integers(0, MAX_DURATION)
SIZES = st.integers(1, 2**31 - 1)
LABELS = st.none() | st.integers(-MAX_INTEGER, MAX_INTEGER)
WORDS = st.text(max_size=20)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
SHARES = st.none() | NUMBERS
PROBABILITIES = st.floats(0, 1)
INNER = st.floats(0, 1, exclude_min=True, exclude_max=True)


def some(each: st.SearchStrategy[Any], most: int = 3) -> st.SearchStrategy[tuple[Any, ...]]:
    """Return tuples of up to `most`."""
    return st.lists(each, max_size=most).map(tuple)


def as_distribution(counts: list[int]) -> tuple[float, ...]:
    """Return shares that add up to 1."""
    return tuple(count / sum(counts) for count in counts)


STARTS = st.builds(
    Start,
    job_number=COUNTS,
    processors=SIZES,
    limit=st.none() | SIZES,
    reason=st.builds(FitsNow)
    | st.builds(
        Backfilled,
        head=COUNTS,
        shadow_time=st.none() | TIMES,
        extra_processors=TIMES,
        ends_by_shadow_time=st.booleans(),
    )
    | st.builds(
        ProbablyHarmless,
        head=COUNTS,
        criterion=st.sampled_from(["exact", "paper", "gain"]),
        probability=PROBABILITIES,
        bound=PROBABILITIES,
        tau=PROBABILITIES,
        cost_of_gain=st.none() | PROBABILITIES,
        budget_left=PROBABILITIES,
        riskiest=some(st.builds(Risk, job_number=COUNTS, time=TIMES, probability=PROBABILITIES)),
        resolution=st.none() | COUNTS,
    ),
)
EVALUATED = st.lists(st.tuples(COUNTS, PROBABILITIES, PROBABILITIES), min_size=1, max_size=3).flatmap(
    lambda rows: st.builds(
        Evaluated,
        head=COUNTS,
        needed=COUNTS,
        after=COUNTS,
        job_numbers=st.just(tuple(row[0] for row in rows)),
        probabilities=st.just(tuple(row[1] for row in rows)),
        bounds=st.just(tuple(row[2] for row in rows)),
        recalibrated=st.none() | st.just(tuple(row[1] for row in rows)),
        accepted=st.booleans(),
    )
)
KILLS = st.builds(Kill, job_number=COUNTS, requeue=st.booleans(), reason=WORDS)

BY_TYPE: dict[type[Any], st.SearchStrategy[Any]] = {
    ClusterOpened: st.builds(
        ClusterOpened,
        time=TIMES,
        cluster=WORDS,
        processors=SIZES,
        mode=st.sampled_from(["closed", "recorded"]),
        policy=WORDS,
        runtime=WORDS,
        adjustment=WORDS,
        wait_bound=WORDS,
        seed=COUNTS,
    ),
    JobSubmitted: st.builds(
        JobSubmitted,
        time=TIMES,
        job_number=COUNTS,
        requested_processors=SIZES,
        requested_time=st.none() | SIZES,
        user_id=LABELS,
        group_id=LABELS,
        executable_number=LABELS,
        queue_number=LABELS,
        partition_number=LABELS,
        restartable=st.booleans(),
        moldable=st.booleans(),
    ),
    JobStarted: st.builds(JobStarted, time=TIMES, job_number=COUNTS, processors=SIZES, limit=st.none() | SIZES),
    JobEnded: st.builds(
        JobEnded,
        time=TIMES,
        job_number=COUNTS,
        run_time=SPANS,
        outcome=st.sampled_from(get_args(Outcome)),
        requeued=st.booleans(),
    ),
    CapacityChanged: st.builds(CapacityChanged, time=TIMES, processors=SIZES),
    SchedulingPoint: st.builds(SchedulingPoint, time=TIMES),
    Decided: st.builds(
        Decided,
        time=TIMES,
        starts=some(STARTS),
        kills=some(KILLS),
        evaluated=some(EVALUATED),
    ),
    Rejected: st.builds(Rejected, time=TIMES, reason=WORDS),
    ClusterClosed: st.builds(ClusterClosed, time=TIMES),
}

PREDICTIONS = st.builds(
    RunTimePrediction,
    point=st.floats(0, MAX_DURATION),
    observations=COUNTS,
    histogram=st.just(()) | st.lists(st.integers(1, 1000), min_size=1, max_size=BINS).map(as_distribution),
)
ADJUSTMENTS = st.builds(WalltimeAdjustment, adjusted_time=SIZES, observations=COUNTS)
BOUNDS = st.builds(
    WaitBound,
    grouping=WORDS,
    queue=LABELS,
    quantile=INNER,
    confidence=INNER,
    bound=st.none() | SPANS,
    observations=COUNTS,
    reason=st.none() | WORDS,
    starts_within=some(st.tuples(PROBABILITIES, SPANS)),
)
COVERAGES = st.builds(
    Coverage,
    grouping=WORDS,
    queue=LABELS,
    quantile=PROBABILITIES,
    revealed=COUNTS,
    covered=PROBABILITIES,
    low=PROBABILITIES,
    high=PROBABILITIES,
)
CHANGE_POINTS = st.builds(
    ChangePoint, grouping=WORDS, queue=LABELS, lowest=LABELS, highest=LABELS, misses=COUNTS, kept=COUNTS
)
WAIT_BOUND_SCORES = st.builds(
    WaitBoundScores,
    grouping=WORDS,
    queue=LABELS,
    quantile=INNER,
    confidence=INNER,
    predictions=COUNTS,
    without=COUNTS,
    coverage=st.none() | PROBABILITIES,
    over_rms=SHARES,
    windows=COUNTS,
    windows_within=COUNTS,
)
RELIABILITIES = st.builds(
    Reliability,
    candidates=COUNTS,
    brier_score=SHARES,
    calibration_error=SHARES,
    bins=some(
        st.builds(
            ReliabilityBin, from_probability=NUMBERS, candidates=COUNTS, mean_probability=NUMBERS, delayed=NUMBERS
        )
    ),
)
WHICH = ("", "_started", "_not_started")
SCORES = st.builds(
    Scores,
    policy=st.builds(
        PolicyScores,
        jobs=COUNTS,
        **dict.fromkeys(
            (
                "mean_wait",
                "geometric_mean_wait",
                "zero_wait_share",
                "mean_bounded_slowdown",
                "mean_bounded_slowdown_unclamped",
                "mean_response",
                "weighted_mean_wait",
                "utilization",
            ),
            SHARES,
        ),
        max_wait=st.none() | COUNTS,
        makespan=COUNTS,
        ended_at_limit=COUNTS,
        killed=COUNTS,
        wasted_processor_seconds=COUNTS,
        scheduling_points=COUNTS,
    ),
    run_time=st.builds(
        RunTimeScores,
        jobs=COUNTS,
        predictions=COUNTS,
        **dict.fromkeys(("mean_absolute_error", "mean_run_time", "log_score", "crps"), SHARES),
        pit=some(NUMBERS, most=10),
    ),
    calibration=st.none()
    | st.builds(
        CalibrationScores,
        open_candidates=COUNTS,
        **dict.fromkeys((f"{of}{which}" for of in ("exact", "bound") for which in WHICH), RELIABILITIES),
        **dict.fromkeys((f"recalibrated{which}" for which in WHICH), st.none() | RELIABILITIES),
    ),
    adjustment=st.builds(AdjustmentScores, **dict.fromkeys(AdjustmentScores.model_fields, SHARES)),
    wait_bounds=some(WAIT_BOUND_SCORES),
    wait_forecast=st.none()
    | st.builds(
        WaitForecastScores,
        forecasts=COUNTS,
        without=COUNTS,
        **dict.fromkeys(list(WaitForecastScores.model_fields)[2:], SHARES),
    ),
)


def envelopes(event_type: type[Any]) -> st.SearchStrategy[Envelope]:
    """Return envelopes of events of one type, with and without what stages add."""
    return st.builds(
        Envelope,
        run=st.text(min_size=1, max_size=20),
        cluster=WORDS,
        sequence=COUNTS,
        event=BY_TYPE[event_type],
        run_time=st.none() | PREDICTIONS,
        adjustment=st.none() | ADJUSTMENTS,
        wait_bounds=some(BOUNDS),
        forecast=st.none() | st.builds(WaitForecast, wait=st.none() | SPANS, reason=st.none() | WORDS),
        coverage=some(COVERAGES),
        change_points=some(CHANGE_POINTS),
        scores=st.none() | SCORES,
    )
