"""Bounds on waits, and forecasts, against the actual waits: coverage of the bounds and errors of the forecasts."""

from grafana_foundation_sdk.builders import table
from grafana_foundation_sdk.builders.dashboard import Dashboard

from shadowtime.dashboards.empty_dashboard import Rows, board, mark, with_panels
from shadowtime.dashboards.panel_kinds import COUNT, DAYS, HOURS, Asks, Override, band, chart, dots, fixed, target
from shadowtime.dashboards.queries import ONE, Query, last
from shadowtime.dashboards.screens.moments import against, rows
from shadowtime.shared import metric_names as names
from shadowtime.shared.text import NEUTRAL, WARNING

UNBOUNDED = "Waits are not bounded: replay with --wait-bound bmbp"
UNFORECAST = "Waits are not forecast: replay a policy with forecast=yes"
UNEXPECTED = "The site's own scheduler has published no expected start"
WAITED = "longest wait"
MARGIN = "margin to the band"


def dashboard() -> Dashboard:
    """Return this dashboard with its panels. `generate` places and numbers the panels."""
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
    seen = (
        _table(queue),
        target(
            band(
                chart(
                    "Coverage of the last 1,000 starts",
                    Asks("Do the bounds hold lately? Yes within the band.", "percentunit", UNBOUNDED),
                    [
                        Query(ONE.of(names.RECENT_COVERAGE, **queue), "{{grouping}}"),
                        Query(f"min({ONE.of(names.BAND_LOW, **queue)})", "band, low"),
                        Query(f"max({ONE.of(names.BAND_HIGH, **queue)})", "band, high"),
                        Query(
                            f"avg({ONE.of(names.BAND_LOW, **queue)} + {ONE.of(names.BAND_HIGH, **queue)}) / 2", "target"
                        ),
                    ],
                ),
                "band, low",
                "band, high",
            ),
            "target",
        ),
        dots(
            chart(
                "Bound and longest wait",
                Asks(
                    "How long does a job wait at most? The bound given last; a dot above its line is a miss.",
                    HOURS,
                    UNBOUNDED,
                ),
                [
                    Query(f"{ONE.of(names.WAIT_BOUND, **queue)} / 3600", "{{grouping}}"),
                    Query(f"{ONE.of(names.STARTED_WAIT, **queue)} / 3600", WAITED),
                ],
            ).override_by_name(WAITED, fixed(NEUTRAL)),
            WAITED,
        ),
        chart(
            "Coverage so far",
            Asks("Have the bounds held over all starts?", "percentunit", UNBOUNDED),
            [Query(ONE.of(names.COVERAGE, **queue), "{{grouping}}")],
        ),
        chart(
            "How far bounds are above waits",
            Asks(
                "Which grouping is tightest? Root mean square of bound minus wait, where the bound held.",
                HOURS,
                UNBOUNDED,
            ),
            [Query(f"{ONE.of(names.OVER_RMS, **queue)} / 3600", "{{grouping}}")],
        ),
    )
    more: Rows = {
        "Forecasts": [
            chart(
                "Forecasts so far",
                Asks("Do forecasts come true? Mean forecast, mean wait and mean error.", HOURS, UNFORECAST),
                [
                    Query(f"{ONE.of(metric)} / 3600", name)
                    for metric, name in (
                        (names.FORECAST_MEAN, "mean forecast"),
                        (names.FORECAST_WAIT, "mean wait"),
                        (names.FORECAST_ERROR, "mean error"),
                    )
                ],
            ),
            chart(
                "Forecasts that came due",
                Asks("On how many jobs does that rest?", empty=UNFORECAST),
                [Query(ONE.of(names.FORECASTS), "forecasts")],
            ),
        ],
        "The site's own expected starts": [
            chart(
                "Error of expected starts",
                Asks(
                    "Which predicts starts better, the site's own scheduler or the forecast? Mean error.",
                    HOURS,
                    UNEXPECTED,
                ),
                [Query(f"{ONE.of(names.EXPECTED_ERROR, **queue)} / 3600", "{{by}}")],
            ),
            chart(
                "Expected too late or too early",
                Asks(
                    "Are they too late or too early? Mean error with its sign: above 0 is too late.", HOURS, UNEXPECTED
                ),
                [Query(f"{ONE.of(names.EXPECTED_BIAS, **queue)} / 3600", "{{by}}")],
            ),
            chart(
                "Starts that were expected",
                Asks("On how many jobs does that rest?", empty=UNEXPECTED),
                [Query(ONE.of(names.EXPECTED, **queue), "{{by}}")],
            ),
        ],
        "Change points and jobs without a bound": [
            chart(
                "Change points so far",
                Asks("How often did a group drop its history, since the beginning?", "none", UNBOUNDED),
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
        ],
    }
    return with_panels(made, seen, more)


def _table(queue: dict[str, str]) -> table.Panel:
    """Return the table that answers the question of the dashboard: each grouping's coverage beside its target."""

    def of(title: str, metric: names.Metric) -> Query:
        return Query(f"max by (grouping, quantile) ({last(ONE.of(metric, **queue))})", title)

    covered, low = (
        f"max by (grouping, quantile) ({last(ONE.of(metric, **queue))})"
        for metric in (names.RECENT_COVERAGE, names.BAND_LOW)
    )
    above = Query(f"{covered} - {low}", MARGIN)
    panel = rows(
        "Coverage",
        Asks(
            "Do the bounds hold? Share of waits within their bound, beside the quantile that was asked for. A grouping "
            "whose last 1,000 starts are below the band of chance fails.",
            empty=UNBOUNDED,
        ),
        [
            above,
            of("of the last 1,000", names.RECENT_COVERAGE),
            of("band, low", names.BAND_LOW),
            of("coverage", names.COVERAGE),
            of("bounded starts", names.BOUNDED),
            of("RMS above waits", names.OVER_RMS),
        ],
        dict.fromkeys(("coverage", "of the last 1,000", "band, low", MARGIN), "percentunit")
        | {"quantile": "string", "bounded starts": COUNT, "RMS above waits": DAYS},
    )
    finer = panel.override_by_name(MARGIN, [Override(id_val="decimals", value=2)])
    return against(finer, MARGIN, 0.0)
