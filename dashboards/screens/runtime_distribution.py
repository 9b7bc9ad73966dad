"""Predicted run times: their accuracy and calibration, and the predictions for newly submitted jobs."""

from grafana_foundation_sdk.builders.dashboard import Dashboard

from shadowtime.dashboards.empty_dashboard import board
from shadowtime.dashboards.panels import Asks, band, chart, lanes, number, target
from shadowtime.dashboards.queries import ONE, Query, last
from shadowtime.dashboards.screens.moments import bars
from shadowtime.shared import metric_names as names
from shadowtime.shared.text import POLICY_COLOURS

POINTS_ONLY = "This predictor gives points only: replay with --runtime hmm, empirical or experts"
NONE_ENDED = "No job with a predicted run time has ended yet"
EXPECTED = Query(ONE.of(names.PREDICTED_RUN_TIME, quantile="0.5"), "median")


def dashboard() -> Dashboard:
    """Return the dashboard."""
    made = board(
        "runtime_distribution",
        "Run times",
        "Can predicted run times be believed, and how long will jobs run? Under one policy, in the time of its log.",
        ("experiment", "cluster", "policy"),
    )
    for panel in (
        number(
            "Mean error",
            Asks(
                "By how much are predicted run times wrong? The request stands in where nothing was predicted.",
                "s",
                NONE_ENDED,
            ),
            Query(ONE.of(names.RUN_TIME_ERROR)),
            span=6,
        ),
        number(
            "Mean run time",
            Asks("What is that error to be compared with? The mean run time of the same jobs.", "s", NONE_ENDED),
            Query(ONE.of(names.RUN_TIME_MEAN)),
            span=6,
        ),
        number(
            "CRPS",
            Asks("How far are the distributions from what happened? Lower is better.", "s", POINTS_ONLY),
            Query(ONE.of(names.RUN_TIME_CRPS)),
            span=6,
        ),
        number(
            "Jobs predicted",
            Asks("On how many ended jobs do these figures rest?", empty=NONE_ENDED),
            Query(ONE.of(names.RUN_TIME_PREDICTIONS)),
            span=6,
        ),
        bars(
            "Run times by tenth of what was predicted",
            Asks(
                "Can the distributions be believed? Each tenth then has 10 % of the jobs.", "percentunit", POINTS_ONLY
            ),
            [Query(f"avg by (tenth) ({last(ONE.of(names.RUN_TIME_PIT))})", "share of jobs", instant=True)],
            "tenth",
        ),
        band(
            chart(
                "Run times expected of the jobs that come in",
                Asks(
                    "How long will the jobs run that come in? Median, and 80 % of them within the band.",
                    "s",
                    POINTS_ONLY,
                ),
                [
                    Query(ONE.of(names.PREDICTED_RUN_TIME, quantile="0.1"), "10 %"),
                    Query(ONE.of(names.PREDICTED_RUN_TIME, quantile="0.9"), "90 %"),
                    EXPECTED,
                ],
            ),
            "10 %",
            "90 %",
            POLICY_COLOURS["easy"],
        ),
        target(
            chart(
                "Error so far",
                Asks("Do predictions get better? Mean error and CRPS, against the mean run time.", "s", NONE_ENDED),
                [
                    Query(ONE.of(names.RUN_TIME_ERROR), "mean error"),
                    Query(ONE.of(names.RUN_TIME_CRPS), "CRPS"),
                    Query(ONE.of(names.RUN_TIME_MEAN), "mean run time"),
                ],
            ),
            "mean run time",
        ),
        chart(
            "Log score so far",
            Asks("Do distributions get better? In nats, lower is better.", empty=POINTS_ONLY),
            [Query(ONE.of(names.RUN_TIME_LOG_SCORE), "log score")],
        ),
        chart(
            "Run times by tenth, over time",
            Asks(
                "When did run times leave what was predicted? The outer tenths are to hold 10 % each.",
                "percentunit",
                POINTS_ONLY,
            ),
            [
                Query(ONE.of(names.RUN_TIME_PIT, tenth=tenth), name)
                for tenth, name in (("0", "shortest tenth"), ("0.9", "longest tenth"))
            ],
        ),
        lanes(
            "Hidden state",
            Asks(
                "In which state does the hidden Markov model believe the jobs to be?",
                "none",
                "Only of --runtime hmm, after its first week",
            ),
            [Query(ONE.of(names.RUN_TIME_STATE), "state")],
        ),
    ):
        made = made.with_panel(panel)
    return made
