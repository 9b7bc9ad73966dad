"""Predicted run times: whether they can be taken at their word, and what is expected of the jobs that come in."""

from grafana_foundation_sdk.builders.dashboard import Dashboard

from shadowtime.dashboards.parts import Query, bars, board, chart, lanes, last, number, of
from shadowtime.shared import metric_names as names

DISTRIBUTIONS = "Empty for predictors that know a point only."


def dashboard() -> Dashboard:
    """Return the dashboard."""
    made = board(
        "runtime_distribution",
        "Run-time distributions",
        "Calibration and accuracy of predicted run times.",
        ("cluster", "policy", "run"),
    )
    for panel in (
        number("Jobs predicted", Query(of(names.RUN_TIME_PREDICTIONS), "{{run}}"), names.RUN_TIME_PREDICTIONS.meaning),
        number("Log score", Query(of(names.RUN_TIME_LOG_SCORE), "{{run}}"), _about(names.RUN_TIME_LOG_SCORE)),
        number("CRPS", Query(of(names.RUN_TIME_CRPS), "{{run}}"), _about(names.RUN_TIME_CRPS), "s"),
        bars(
            "PIT",
            [Query(f"avg by (tenth) ({last(names.RUN_TIME_PIT)})", "share", instant=True)],
            f"Tenths of the probability integral transform, all 10 % where distributions hold. {DISTRIBUTIONS}",
            "tenth",
        ),
        chart(
            "PIT over time",
            [Query(of(names.RUN_TIME_PIT), "{{tenth}} {{run}}")],
            f"The same, as the jobs ended. {DISTRIBUTIONS}",
            "percentunit",
        ),
        chart(
            "What is expected of the jobs that come in",
            [Query(of(names.PREDICTED_RUN_TIME), "{{quantile}} {{run}}")],
            "Quantiles of the run times predicted for the jobs of each interval between samples. Gaps where no job "
            f"came. {DISTRIBUTIONS}",
            "s",
            span=24,
        ),
        lanes(
            "Hidden state",
            [Query(of(names.RUN_TIME_STATE), "{{run}}")],
            "The state of the hidden Markov model that was the likeliest when the last job came. A state keeps its "
            "number from one model to the next. Empty for other predictors, and for the first week of this one.",
        ),
        chart(
            "Scores",
            [Query(of(names.RUN_TIME_LOG_SCORE), "log score {{run}}")],
            f"{names.RUN_TIME_LOG_SCORE.meaning} In nats, lower is better. {DISTRIBUTIONS}",
        ),
        chart(
            "Errors",
            [
                Query(of(names.RUN_TIME_ERROR), "mean absolute error {{run}}"),
                Query(of(names.RUN_TIME_CRPS), "CRPS {{run}}"),
                Query(of(names.RUN_TIME_MEAN), "mean run time {{run}}"),
            ],
            "Error of the points, the request standing in where nothing was predicted, beside the mean run time.",
            "s",
        ),
    ):
        made = made.with_panel(panel)
    return made


def _about(metric: names.Metric) -> str:
    return f"{metric.meaning} {DISTRIBUTIONS}"
