"""Drift: predictions that no longer hold, by quantity and group of jobs, and how near the others are to an alarm."""

from grafana_foundation_sdk.builders.common import TableSortByFieldState
from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.models.common import LegendPlacement

from shadowtime.dashboards.empty_dashboard import board, with_panels
from shadowtime.dashboards.panel_kinds import FAILURE, Asks, chart, lanes, legend
from shadowtime.dashboards.queries import ONE, Query, largest, last, worded
from shadowtime.dashboards.screens.moments import rows
from shadowtime.shared import metric_names as names
from shadowtime.shared.messages import DESCRIPTIONS, describe_drift
from shadowtime.shared.text import BAD, GOOD

NONE_FAILED = "none has failed; nothing is tested in the first 20 days"
UNWATCHED = "No outcome of a prediction is known yet: replay with --runtime experts or --wait-bound bmbp"
WORDS = {f"{of}: {what}": describe_drift(of, what) for of, what in DESCRIPTIONS}


def dashboard() -> Dashboard:
    """Return this dashboard with its panels. `generate` places and numbers the panels."""
    made = board(
        "drift",
        "Drift",
        "Can predictions still be trusted? Under one policy, in the time of its log.",
        ("experiment", "cluster", "policy"),
    )
    drifting = ONE.of(names.DRIFTING)
    now, ever = last(drifting), f"max_over_time({drifting}[$__range])"
    changed = f"1000 * (tlast_change_over_time({drifting}[$__range]) default tfirst_over_time({drifting}[$__range]))"
    by = "max by (failure, whose)"
    lasts = f"{by} ({_described(f'{now} and {ever} > 0')})"
    none = f'(label_set(max({ever}) == 0, "failure", "{NONE_FAILED}", "whose", "-"))'
    seen = (
        rows(
            "Predictions that do not hold, and since when",
            Asks("Which predictions failed, for which jobs, and from when to when?", empty=UNWATCHED),
            [
                Query(f"{lasts} or {none}", "lasts"),
                Query(f"{by} ({_described(f'{changed} and {now} > 0')})", "since"),
                Query(f"{by} ({_described(f'({changed} and {now} == 0) and {ever} > 0')})", "until"),
            ],
            {"lasts": "bool_yes_no", "since": "dateTimeAsIso", "until": "dateTimeAsIso"},
        ).sort_by([TableSortByFieldState().display_name("lasts").desc(True)]),
        chart(
            "Evidence that predictions fail",
            Asks(
                "Which predictions are near an alarm? The nearest 5, over all jobs. 100 % is an alarm.",
                "percentunit",
                UNWATCHED,
            ),
            [Query(f"topk_last(5, {_described(ONE.of(names.DRIFT_EVIDENCE))})", FAILURE)],
            span=24,
        )
        .axis_soft_max(1)
        .legend(legend([FAILURE]).placement(LegendPlacement.BOTTOM))
        .height(12),
        lanes(
            "Predictions that do not hold",
            Asks("When did predictions fail, and for whom?", "none", UNWATCHED),
            [Query(f"clamp_max({largest(_joined(), 'of')}, 1)", "{{of}}")],
            {"0": ("hold", GOOD), "1": ("do not hold", BAD)},
        ).span(24),
    )
    return with_panels(made, seen)


def _joined() -> str:
    """Return the query whose label `of` has the failure in words, and whose jobs it concerns."""
    return f'label_join({_described(ONE.of(names.DRIFTING))}, "of", ", ", "failure", "whose")'


def _described(expr: str) -> str:
    """Return the query with the failure in words as its label `failure`, as in `shadowtime scores`."""
    joined = worded(f'label_join({expr}, "failure", ": ", "of", "what")', "failure", WORDS)
    bounds = describe_drift("wait_bound", "$1")
    return f'label_replace({joined}, "failure", "{bounds}", "failure", "wait_bound: (.*)")'
