"""Adjusted requests: their accuracy, and their outcomes."""

from grafana_foundation_sdk.builders.dashboard import Dashboard

from shadowtime.dashboards.empty_dashboard import board
from shadowtime.dashboards.panels import Asks, chart, number
from shadowtime.dashboards.queries import ONE, Query
from shadowtime.shared import metric_names as names

UNADJUSTED = "Requests are not adjusted: replay with --adjustment auto"
NONE_ENDED = "No job with a request has ended yet"
CLASSES = {
    "over": "still enough",
    "under": "too short, by less than 30 min",
    "bad": "too short, by 30 min or more",
    "none": "not adjusted",
}


def dashboard() -> Dashboard:
    """Return the dashboard."""
    made = board(
        "walltime_adjustment",
        "Requested times",
        "Are adjusted requests closer to the truth, and how often too short? Under one policy, in the time of its log.",
        ("experiment", "cluster", "policy"),
        window=True,
    )
    of_all = f"ignoring (outcome) group_left () sum without (outcome) ({ONE.of(names.ADJUSTMENTS)})"
    for panel in (
        number(
            "As requested",
            Asks(
                "How accurate are requests? The smaller over the larger of run time and request.",
                "percentunit",
                NONE_ENDED,
            ),
            Query(ONE.of(names.ACCURACY, of="requested")),
            span=8,
        ),
        number(
            "As adjusted",
            Asks("How accurate are they once adjusted? On average.", "percentunit", UNADJUSTED),
            Query(ONE.of(names.ACCURACY, of="adjusted")),
            span=8,
        ),
        number(
            "As adjusted, median",
            Asks("How accurate is the adjusted request of every second job at least?", "percentunit", UNADJUSTED),
            Query(ONE.of(names.MEDIAN_ACCURACY)),
            span=8,
        ),
        chart(
            "Accuracy so far",
            Asks("Does adjusting help? 100 %: the request is the run time.", "percentunit", NONE_ENDED),
            [
                Query(ONE.of(names.ACCURACY), "mean, as {{of}}"),
                Query(ONE.of(names.MEDIAN_ACCURACY), "median, as adjusted"),
            ],
        ),
        chart(
            "Adjusted requests that were too short",
            Asks("How often would a job have been cut? Share of ended jobs.", "percentunit", UNADJUSTED),
            [
                Query(f"{ONE.of(names.ADJUSTMENTS, outcome=outcome)} / {of_all}", CLASSES[outcome])
                for outcome in ("under", "bad")
            ],
        ),
        chart(
            "What became of requests",
            Asks(
                "How many jobs ended, and what had their adjustment been? Over the time chosen above.", empty=NONE_ENDED
            ),
            [Query(ONE.grown(names.ADJUSTMENTS, outcome=outcome), name) for outcome, name in CLASSES.items()],
            stacked=True,
            span=24,
        ),
    ):
        made = made.with_panel(panel)
    return made
