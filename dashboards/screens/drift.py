"""Drift: predictions that no longer hold, by quantity and group of jobs, and how near the others are to an alarm."""

from grafana_foundation_sdk.builders.common import TableSortByFieldState
from grafana_foundation_sdk.builders.dashboard import Dashboard

from shadowtime.dashboards.empty_dashboard import board, with_panels
from shadowtime.dashboards.panel_kinds import Asks, chart
from shadowtime.dashboards.queries import ONE, Query, largest, last, worded
from shadowtime.dashboards.screens.moments import rows
from shadowtime.shared import metric_names as names
from shadowtime.shared.messages import DESCRIPTIONS, describe_drift

UNWATCHED = "No outcome of a prediction is known yet: replay with --runtime experts or --wait-bound bmbp"
WORDS = {f"{of}: {what}": describe_drift(of, what) for of, what in DESCRIPTIONS}


def dashboard() -> Dashboard:
    """Return the dashboard."""
    made = board(
        "drift",
        "Drift",
        "Can predictions still be trusted? Under one policy, in the time of its log.",
        ("experiment", "cluster", "policy"),
    )
    failing = _described(last(ONE.of(names.DRIFTING)))
    changed = f"tlast_change_over_time({ONE.of(names.DRIFTING)}[$__range])"
    since = _described(f"({changed} default tfirst_over_time({ONE.of(names.DRIFTING)}[$__range]))")
    by = "max by (failure, whose)"
    seen = (
        rows(
            "Predictions that do not hold, and since when",
            Asks("Of what and of whom do predictions fail, since when, and does it last?", empty=UNWATCHED),
            [Query(f"{by} ({failing})", "lasts"), Query(f"1000 * {by} ({since})", "since")],
            {"lasts": "bool_yes_no", "since": "dateTimeAsIso"},
        ).sort_by([TableSortByFieldState().display_name("lasts").desc(True)]),
        chart(
            "Evidence that predictions fail",
            Asks(
                "Which are near to an alarm? The 5 nearest, of all jobs; at 100 % it comes.", "percentunit", UNWATCHED
            ),
            [Query(f"topk_last(5, {_described(ONE.of(names.DRIFT_EVIDENCE))})", "{{failure}}")],
            span=24,
        ),
        chart(
            "Predictions that do not hold",
            Asks("When did predictions fail? 1 while they do, 0 while they hold.", "none", UNWATCHED),
            [
                Query(
                    largest(f'label_join({_described(ONE.of(names.DRIFTING))}, "of", ", ", "failure", "whose")', "of"),
                    "{{of}}",
                )
            ],
            span=24,
        ),
    )
    return with_panels(made, seen)


def _described(expr: str) -> str:
    """Return the query with the failure in words as its label `failure`, as `shadowtime scores` says it."""
    joined = worded(f'label_join({expr}, "failure", ": ", "of", "what")', "failure", WORDS)
    bounds = describe_drift("wait_bound", "$1")
    return f'label_replace({joined}, "failure", "{bounds}", "failure", "wait_bound: (.*)")'
