"""Adjusted requests: their accuracy, and their outcomes."""

from grafana_foundation_sdk.builders import timeseries
from grafana_foundation_sdk.builders.dashboard import Dashboard

from shadowtime.dashboards.empty_dashboard import board, with_panels
from shadowtime.dashboards.panel_kinds import Asks, chart, fixed, number
from shadowtime.dashboards.queries import ONE, Query
from shadowtime.shared import metric_names as names
from shadowtime.shared.text import OUTCOME_COLOURS

UNADJUSTED = "Requests are not adjusted: replay with --adjustment auto"
NONE_ENDED = "No job with a request has ended yet"
CLASSES = {
    "over": "still enough",
    "under": "too short, by less than 30 min",
    "bad": "too short, by 30 min or more",
    "none": "not adjusted",
}


def dashboard() -> Dashboard:
    """Return this dashboard with its panels. `generate` places and numbers the panels."""
    made = board(
        "walltime_adjustment",
        "Requested times",
        "Are adjusted requests closer to the truth, and how often too short? Under one policy, in the time of its log.",
        ("experiment", "cluster", "policy"),
        window=True,
    )
    of_all = f"ignoring (outcome) group_left () sum without (outcome) ({ONE.of(names.ADJUSTMENTS)})"
    seen = (
        *(
            number(title, Asks(question, "percentunit", empty), Query(selector), span=8)
            for title, question, empty, selector in (
                (
                    "Accuracy as requested",
                    "How accurate are requests? The smaller over the larger of run time and request.",
                    NONE_ENDED,
                    ONE.of(names.ACCURACY, of="requested"),
                ),
                (
                    "Accuracy as adjusted",
                    "How accurate are they once adjusted? On average.",
                    UNADJUSTED,
                    ONE.of(names.ACCURACY, of="adjusted"),
                ),
                (
                    "Median accuracy as adjusted",
                    "Which accuracy do the adjusted requests of half of the jobs reach?",
                    UNADJUSTED,
                    ONE.of(names.MEDIAN_ACCURACY),
                ),
            )
        ),
        chart(
            "Accuracy so far",
            Asks("Does adjusting help? 100 %: the request is the run time.", "percentunit", NONE_ENDED),
            [
                Query(ONE.of(names.ACCURACY, of="requested"), "mean, as requested"),
                Query(ONE.of(names.ACCURACY, of="adjusted"), "mean, as adjusted"),
                Query(ONE.of(names.MEDIAN_ACCURACY), "median, as adjusted"),
            ],
        ),
        _outcomes(
            chart(
                "Adjusted requests that were too short",
                Asks("How often would a job have been cut? Share of ended jobs.", "percentunit", UNADJUSTED),
                [
                    Query(f"{ONE.of(names.ADJUSTMENTS, outcome=outcome)} / {of_all}", CLASSES[outcome])
                    for outcome in ("under", "bad")
                ],
            )
        ),
        _outcomes(
            chart(
                "What became of requests",
                Asks(
                    "How many jobs ended, and what had their adjustment been? Over the time chosen above.",
                    empty=NONE_ENDED,
                ),
                [Query(ONE.grown(names.ADJUSTMENTS, outcome=outcome), name) for outcome, name in CLASSES.items()],
                stacked=True,
                flowing=True,
                span=24,
            )
        ),
    )
    return with_panels(made, seen)


def _outcomes(panel: timeseries.Panel) -> timeseries.Panel:
    """Colour outcomes by what they mean: too short is bad."""
    for outcome, name in CLASSES.items():
        panel = panel.override_by_name(name, fixed(OUTCOME_COLOURS[outcome]))
    return panel
