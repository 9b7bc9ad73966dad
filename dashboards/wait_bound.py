"""Bounds on waits, and forecasts: against what jobs waited, and whether as many bounds hold as should."""

from grafana_foundation_sdk.builders.dashboard import Dashboard

from shadowtime.dashboards.parts import Query, annotation, board, chart, dots, number, of
from shadowtime.shared import metric_names as names

BOUNDED = "Empty for runs without bounds (`--wait-bound`)."
FORECAST = "Empty for policies that do not forecast (`forecast=yes`)."


def dashboard() -> Dashboard:
    """Return the dashboard."""
    made = board(
        "wait_bound",
        "Wait bounds",
        "Bounds on waits by grouping and queue, their coverage and change points; forecasts and their errors.",
        ("cluster", "policy", "run", "queue", "grouping"),
    )
    chosen = {"queue": "$queue", "grouping": "$grouping"}
    found = f"sum by (run, grouping, queue) (increase({of(names.CHANGE_POINTS, **chosen)}[$__interval]))"
    marks = Query(f"{found} > 0", "{{grouping}}, queue {{queue}}, {{run}}")
    made = made.annotation(annotation("Change points", marks, "Change point", "orange"))
    for panel in (
        number(
            "Bounded starts", Query(of(names.BOUNDED, **chosen), SCOPE), f"{names.BOUNDED.meaning} {BOUNDED}", span=8
        ),
        number(
            "Without a bound",
            Query(of(names.UNBOUNDED, **chosen), SCOPE),
            f"{names.UNBOUNDED.meaning} {BOUNDED}",
            span=8,
        ),
        number(
            "Coverage",
            Query(of(names.COVERAGE, **chosen), SCOPE),
            f"{names.COVERAGE.meaning} {BOUNDED}",
            "percentunit",
            8,
        ),
        dots(
            "Bound and wait",
            [
                Query(of(names.WAIT_BOUND, **chosen), f"bound {SCOPE}"),
                Query(of(names.STARTED_WAIT, queue="$queue"), "wait, queue {{queue}} {{run}}"),
            ],
            "The bound given last, and as dots the longest wait of the starts of each interval between samples: "
            f"a dot above its line is a miss. No dot where none started. {BOUNDED}",
            "s",
            points="wait.*",
        ),
        chart(
            "Coverage of the last 1,000 starts",
            [
                Query(of(names.RECENT_COVERAGE, **chosen), SCOPE),
                Query(of(names.BAND_LOW, **chosen), f"band, low {SCOPE}"),
                Query(of(names.BAND_HIGH, **chosen), f"band, high {SCOPE}"),
            ],
            "Within three standard deviations of the quantile it is as it should be; told when it enters or leaves "
            f"that band, and every 100 starts. Nothing before the first start. {BOUNDED}",
            "percentunit",
        ),
        chart(
            "Coverage so far",
            [Query(of(names.COVERAGE, **chosen), SCOPE)],
            f"{names.COVERAGE.meaning} {BOUNDED}",
            "percentunit",
        ),
        chart(
            "How far bounds are above waits",
            [Query(of(names.OVER_RMS, **chosen), SCOPE)],
            f"{names.OVER_RMS.meaning} Where the bound held; lower is tighter. {BOUNDED}",
            "s",
        ),
        chart(
            "Change points",
            [Query(of(names.CHANGE_POINTS, **chosen), "{{grouping}} {{queue}} {{run}}")],
            f"Times at which a group let go of its past, since the beginning; also marked in all panels. {BOUNDED}",
        ),
        chart(
            "Forecasts",
            [
                Query(of(names.FORECAST_MEAN), "mean forecast {{run}}"),
                Query(of(names.FORECAST_WAIT), "mean wait {{run}}"),
                Query(of(names.FORECAST_ERROR), "mean absolute error {{run}}"),
            ],
            f"Waits forecast at submission by running the policy ahead, so far. {FORECAST}",
            "s",
        ),
        chart(
            "Forecasts that have come due",
            [Query(of(names.FORECASTS), "{{run}}")],
            f"{names.FORECASTS.meaning} {FORECAST}",
        ),
    ):
        made = made.with_panel(panel)
    return made


SCOPE = "{{grouping}} {{queue}} {{run}}"
