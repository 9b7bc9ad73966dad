"""Bounds on waits, and forecasts, against the actual waits: coverage of the bounds and errors of the forecasts."""

from grafana_foundation_sdk.builders.dashboard import Dashboard

from shadowtime.dashboards.empty_dashboard import board, mark
from shadowtime.dashboards.panels import Asks, band, chart, dots, number, target
from shadowtime.dashboards.queries import ONE, Query
from shadowtime.shared import metric_names as names
from shadowtime.shared.text import GOOD, WARNING

UNBOUNDED = "Waits are not bounded: replay with --wait-bound bmbp"
UNFORECAST = "Waits are not forecast: replay a policy with forecast=yes"
UNEXPECTED = "The site's own scheduler has said of no start when it expects it"
WAITED = "longest wait"


def dashboard() -> Dashboard:
    """Return the dashboard."""
    made = board(
        "wait_bound",
        "Bounds on waits",
        "Do the bounds hold, and how long does a job wait at most? Under one policy, in the time of its log.",
        ("experiment", "cluster", "policy", "queue"),
    )
    queue = {"queue": "$queue"}
    change_points = f"sum by (grouping, queue) (increase({ONE.of(names.CHANGE_POINTS, **queue)}[$__interval]))"
    made = made.annotation(
        mark("Change points", Query(f"{change_points} > 0", "{{grouping}}, queue {{queue}}"), "Change point", WARNING)
    )
    for panel in (
        number(
            "Coverage",
            Asks(
                "Do the bounds hold? Share of waits within their bound, by grouping; it should be what was asked for.",
                "percentunit",
                UNBOUNDED,
            ),
            Query(ONE.of(names.COVERAGE, **queue), "{{grouping}}"),
            span=24,
        ),
        target(
            band(
                chart(
                    "Coverage of the last 1,000 starts",
                    Asks(
                        "Do the bounds hold lately? In the band they do; the 5 groupings that cover least.",
                        "percentunit",
                        UNBOUNDED,
                    ),
                    [
                        Query(f"bottomk_last(5, {ONE.of(names.RECENT_COVERAGE, **queue)})", "{{grouping}}"),
                        Query(f"min({ONE.of(names.BAND_LOW, **queue)})", "band, low"),
                        Query(f"max({ONE.of(names.BAND_HIGH, **queue)})", "band, high"),
                        Query(
                            f"avg({ONE.of(names.BAND_LOW, **queue)} + {ONE.of(names.BAND_HIGH, **queue)}) / 2",
                            "asked for",
                        ),
                    ],
                ),
                "band, low",
                "band, high",
                GOOD,
            ),
            "asked for",
        ),
        dots(
            chart(
                "Bound and longest wait",
                Asks(
                    "How long does a job wait at most? The bound given last; a dot above its line is a miss.",
                    "s",
                    UNBOUNDED,
                ),
                [
                    Query(ONE.of(names.WAIT_BOUND, **queue), "{{grouping}}"),
                    Query(ONE.of(names.STARTED_WAIT, **queue), WAITED),
                ],
            ),
            WAITED,
        ),
        chart(
            "Coverage so far",
            Asks("Have the bounds held over all starts?", "percentunit", UNBOUNDED),
            [Query(ONE.of(names.COVERAGE, **queue), "{{grouping}}")],
        ),
        chart(
            "How far bounds are above waits",
            Asks("Which grouping is tightest? Root mean square where the bound held.", "s", UNBOUNDED),
            [Query(ONE.of(names.OVER_RMS, **queue), "{{grouping}}")],
        ),
        chart(
            "Change points so far",
            Asks("How often did a group let go of its past, since the beginning?", "none", UNBOUNDED),
            [Query(ONE.of(names.CHANGE_POINTS, **queue), "{{grouping}}")],
        ),
        chart(
            "Starts with and without a bound",
            Asks("How many jobs had a bound? Of the grouping with the most.", empty=UNBOUNDED),
            [
                Query(f"max({ONE.of(names.BOUNDED, **queue)})", "with"),
                Query(f"min({ONE.of(names.UNBOUNDED, **queue)})", "without"),
            ],
        ),
        chart(
            "Forecasts so far",
            Asks("Do forecasts come true? Mean forecast, mean wait and mean error.", "s", UNFORECAST),
            [
                Query(ONE.of(names.FORECAST_MEAN), "mean forecast"),
                Query(ONE.of(names.FORECAST_WAIT), "mean wait"),
                Query(ONE.of(names.FORECAST_ERROR), "mean error"),
            ],
        ),
        chart(
            "Forecasts that came due",
            Asks("On how many jobs does that rest?", empty=UNFORECAST),
            [Query(ONE.of(names.FORECASTS), "forecasts")],
        ),
        chart(
            "Against the site's own word",
            Asks("Who foretells starts better, the site's own scheduler or the forecast? Mean error.", "s", UNEXPECTED),
            [Query(ONE.of(names.EXPECTED_ERROR, **queue), "{{by}}")],
        ),
        chart(
            "Foretold too late or too early",
            Asks("To which side do they err? Mean error with its sign: above 0 is too late.", "s", UNEXPECTED),
            [Query(ONE.of(names.EXPECTED_BIAS, **queue), "{{by}}")],
        ),
        chart(
            "Starts that were foretold",
            Asks("On how many jobs does that rest?", empty=UNEXPECTED),
            [Query(ONE.of(names.EXPECTED, **queue), "{{by}}")],
        ),
    ):
        made = made.with_panel(panel)

    return made
