"""Drift: predictions that no longer hold, by quantity and group of jobs, and how near the others are to an alarm."""

from grafana_foundation_sdk.builders.dashboard import Dashboard

from shadowtime.dashboards.empty_dashboard import board
from shadowtime.dashboards.panels import Asks, chart
from shadowtime.dashboards.queries import ONE, Query, largest
from shadowtime.shared import metric_names as names

UNWATCHED = "No outcome of a prediction is known yet: replay with --runtime experts or --wait-bound bmbp"


def dashboard() -> Dashboard:
    """Return the dashboard."""
    made = board(
        "drift",
        "Drift",
        "Can predictions still be trusted? Under one policy, in the time of its log.",
        ("experiment", "cluster", "policy"),
    )
    failing = f'label_join({ONE.of(names.DRIFTING)}, "prediction", ", ", "of", "what", "whose")'
    for panel in (
        chart(
            "Predictions that are not to be trusted",
            Asks("Of what and of whom do predictions fail? 1 while they do, 0 while they hold.", empty=UNWATCHED),
            [Query(largest(failing, "prediction"), "{{prediction}}")],
        ),
        chart(
            "Evidence that predictions fail",
            Asks(
                "Which are near to an alarm? The 5 nearest, of all jobs; at 100 % it comes.", "percentunit", UNWATCHED
            ),
            [Query(f"topk_last(5, {ONE.of(names.DRIFT_EVIDENCE)})", "{{of}}, {{what}}")],
        ),
    ):
        made = made.with_panel(panel)
    return made
