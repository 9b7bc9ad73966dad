"""Adjusted requests: how accurate they are, and what became of them."""

from grafana_foundation_sdk.builders.dashboard import Dashboard

from shadowtime.dashboards.parts import Query, board, chart, grown, number, of
from shadowtime.shared import metric_names as names


def dashboard() -> Dashboard:
    """Return the dashboard."""
    made = board(
        "walltime_adjustment",
        "Walltime adjustment",
        "Accuracy of requests as made and as adjusted.",
        ("cluster", "policy", "run"),
        window=True,
    )
    classes = f"sum by (outcome, run) ({of(names.ADJUSTMENTS)})"
    share = f"{classes} / on (run) group_left () sum by (run) ({of(names.ADJUSTMENTS)})"
    for panel in (
        number(
            "As requested", Query(of(names.ACCURACY, of="requested"), "{{run}}"), names.ACCURACY.meaning, "percentunit"
        ),
        number(
            "As adjusted", Query(of(names.ACCURACY, of="adjusted"), "{{run}}"), names.ACCURACY.meaning, "percentunit"
        ),
        number("Median", Query(of(names.MEDIAN_ACCURACY), "{{run}}"), names.MEDIAN_ACCURACY.meaning, "percentunit"),
        chart(
            "Accuracy",
            [
                Query(of(names.ACCURACY), "mean, {{of}} {{run}}"),
                Query(of(names.MEDIAN_ACCURACY), "median, adjusted {{run}}"),
            ],
            "The smaller over the larger of run time and request, over all ended jobs; nothing before the first end.",
            "percentunit",
        ),
        chart(
            "Classes so far",
            [Query(share, "{{outcome}} {{run}}")],
            "Shares of ended jobs: not adjusted, still over the run time, under it by less than 30 minutes, bad.",
            "percentunit",
        ),
        chart(
            "Classes in the window",
            [Query(f"sum by (outcome, run) ({grown(names.ADJUSTMENTS)})", "{{outcome}} {{run}}")],
            "Ended jobs of each class in the chosen window.",
            stacked=True,
            span=24,
        ),
    ):
        made = made.with_panel(panel)
    return made
