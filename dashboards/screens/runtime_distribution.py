"""Predicted run times: their accuracy and calibration, and the predictions for newly submitted jobs."""

from grafana_foundation_sdk.builders.dashboard import Dashboard

from shadowtime.dashboards.empty_dashboard import Rows, board, with_panels
from shadowtime.dashboards.panel_kinds import COUNT, HOURS, Asks, band, chart, lanes, number, target
from shadowtime.dashboards.queries import ONE, Query, last
from shadowtime.dashboards.screens.moments import bars
from shadowtime.shared import metric_names as names

POINTS_ONLY = "This predictor gives points only: replay with --runtime hmm, empirical or experts"
NONE_ENDED = "No job with a predicted run time has ended yet"
NONE_REQUESTED = "No job with a request has ended yet"


def dashboard() -> Dashboard:
    """Return this dashboard with its panels. `generate` places and numbers the panels."""
    made = board(
        "runtime_distribution",
        "Run times",
        "Can predicted run times be believed, and how long will jobs run? Under one policy, in the time of its log.",
        ("experiment", "cluster", "policy"),
    )
    seen = (
        *(
            number(title, Asks(question, unit, empty), Query(ONE.of(metric)), span=span)
            for title, question, unit, metric, span, empty in (
                (
                    "Error of predictions",
                    "By how much are predicted run times wrong? Mean; the request stands in for a missing prediction.",
                    "dtdhms",
                    names.RUN_TIME_ERROR,
                    5,
                    NONE_ENDED,
                ),
                (
                    "Error of requests",
                    "By how much are requests wrong? What predictions have to beat.",
                    "dtdhms",
                    names.REQUEST_ERROR,
                    5,
                    NONE_REQUESTED,
                ),
                (
                    "Mean run time",
                    "What are these errors to be compared with? The mean run time of the same jobs.",
                    "dtdhms",
                    names.RUN_TIME_MEAN,
                    5,
                    NONE_ENDED,
                ),
                (
                    "Distribution error",
                    "How far are the distributions from what happened? The mean CRPS; lower is better.",
                    "dtdhms",
                    names.RUN_TIME_CRPS,
                    5,
                    POINTS_ONLY,
                ),
                (
                    "Predicted jobs",
                    "On how many ended jobs do these figures rest?",
                    COUNT,
                    names.RUN_TIME_PREDICTIONS,
                    4,
                    NONE_ENDED,
                ),
            )
        ),
        target(
            chart(
                "Error so far",
                Asks("Do predictions get better? Mean errors, against the mean run time.", HOURS, NONE_ENDED),
                [
                    Query(f"{ONE.of(metric)} / 3600", name)
                    for metric, name in (
                        (names.RUN_TIME_ERROR, "predictions"),
                        (names.REQUEST_ERROR, "requests"),
                        (names.RUN_TIME_CRPS, "distributions (CRPS)"),
                        (names.RUN_TIME_MEAN, "mean run time"),
                    )
                ],
            ),
            "mean run time",
        ),
        bars(
            "Run times by tenth of their prediction",
            Asks(
                "Can the distributions be believed? Each tenth then has 10 % of the jobs.", "percentunit", POINTS_ONLY
            ),
            [Query(f"avg by (tenth) ({last(ONE.of(names.RUN_TIME_PIT))})", "share of jobs")],
            "tenth",
        ),
        band(
            chart(
                "Predicted run times of submitted jobs",
                Asks(
                    "How long will submitted jobs run? The median, and a band that should hold 80 % of the run times.",
                    HOURS,
                    POINTS_ONLY,
                ),
                [
                    Query(f"{ONE.of(names.PREDICTED_RUN_TIME, quantile=quantile)} / 3600", name)
                    for quantile, name in (("0.1", "10 %"), ("0.9", "90 %"), ("0.5", "median"))
                ],
                flowing=True,
            ),
            "10 %",
            "90 %",
        ),
    )
    more: Rows = {
        "Distributions in detail": [
            chart(
                "Log score so far",
                Asks("Do distributions get better? In nats, lower is better.", empty=POINTS_ONLY),
                [Query(ONE.of(names.RUN_TIME_LOG_SCORE), "log score")],
            ),
            chart(
                "Outer tenths, over time",
                Asks(
                    "When did run times leave their predictions? The outer tenths should have 10 % each.",
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
        ]
    }
    return with_panels(made, seen, more)
