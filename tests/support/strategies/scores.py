"""Scores of every kind, at random."""

from hypothesis import strategies as st

from shadowtime.shared.messages.scores import (
    AdjustmentScores,
    CalibrationScores,
    ExpectedStartScores,
    IntervalScores,
    PairedStartScores,
    PolicyScores,
    ProbabilityBin,
    ProbabilityScores,
    Reliability,
    ReliabilityBin,
    RunTimeScores,
    Scores,
    StartDistributionScores,
    StartErrorScores,
    StartProbabilityScores,
    WaitBoundScores,
    WaitForecastScores,
)
from tests.support.strategies.numbers import COUNTS, INNER, LABELS, NUMBERS, PROBABILITIES, SHARES, WORDS, some

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
FORETOLD = st.builds(
    StartErrorScores,
    jobs=COUNTS,
    mean_error=st.none() | NUMBERS,
    **dict.fromkeys(("mean_absolute_error", "median_absolute_error", "late_share", "mean_ahead"), SHARES),
)
EXPECTED_STARTS = st.builds(
    ExpectedStartScores,
    queue=LABELS,
    first=FORETOLD,
    last=FORETOLD,
    paired=st.none() | st.builds(PairedStartScores, first=FORETOLD, last=FORETOLD, forecast=FORETOLD),
    bounded=COUNTS,
    bound_coverage=SHARES,
    bound_quantile=SHARES,
    mean_bound=st.none() | NUMBERS,
    within=st.none()
    | st.builds(
        StartProbabilityScores,
        jobs=COUNTS,
        **dict.fromkeys(("mean_probability", "started_share", "brier", "site_brier"), st.floats(0, 1)),
    ),
)
PROBABILITIES_SAID = st.builds(
    ProbabilityScores,
    said=COUNTS,
    **dict.fromkeys(("mean_probability", "came_share", "brier", "calibration_error"), NUMBERS),
    bins=some(
        st.builds(ProbabilityBin, from_probability=NUMBERS, said=COUNTS, mean_probability=NUMBERS, came_share=NUMBERS)
    ),
)
STARTS = st.builds(
    StartDistributionScores,
    by=st.sampled_from(["sampled", "point", "bounds"]),
    jobs=COUNTS,
    without=COUNTS,
    **dict.fromkeys(("crps", "sampled_crps", "mean_wait"), SHARES),
    intervals=some(st.builds(IntervalScores, level=NUMBERS, covered=NUMBERS, covered_by_chance=NUMBERS)),
    within=st.none() | PROBABILITIES_SAID,
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
                "mean_slowdown",
                "mean_response",
                "weighted_mean_wait",
                "wait_weighted_mean_wait",
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
    starts=st.none() | some(STARTS),
    cuts=st.none() | PROBABILITIES_SAID,
    expected_starts=st.none() | some(EXPECTED_STARTS),
)
