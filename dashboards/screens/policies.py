"""The policies of an experiment side by side: which is better, by how much, and what it costs."""

from grafana_foundation_sdk.builders import common, table
from grafana_foundation_sdk.builders import dashboard as sdk
from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.models import dashboard as model

from shadowtime.dashboards.empty_dashboard import Rows, board, with_panels
from shadowtime.dashboards.panel_kinds import COUNT, DAYS, HOURS, Asks, columns
from shadowtime.dashboards.queries import (
    BASELINE,
    EVER,
    OTHERS,
    SEVERAL,
    Query,
    Runs,
    composed,
    either,
    interval,
    last,
    spelt,
)
from shadowtime.dashboards.screens.moments import bars_by, matrix, rows, sentences, shares
from shadowtime.shared import metric_names as names
from shadowtime.shared.distributions import HOUR_AND_EIGHT

FIGURES = (
    ("jobs ended", names.JOBS),
    ("geometric mean", names.GEOMETRIC_MEAN_WAIT),
    ("started at once", names.ZERO_WAIT),
    ("not clamped", names.SLOWDOWN_UNCLAMPED),
    ("response time", names.MEAN_RESPONSE),
    ("weighted wait", names.WEIGHTED_WAIT),
    ("utilization", names.UTILIZATION),
)
COSTS = (
    ("passes", names.SCHEDULING_POINTS),
    ("cut at limit", names.ENDED_AT_LIMIT),
    ("killed", names.KILLED),
    ("time lost", names.WASTED),
    ("predicted", names.RUN_TIME_PREDICTIONS),
    ("run-time error", names.RUN_TIME_ERROR),
    ("calibration error", names.CALIBRATION_ERROR),
    ("recalibrated", names.CALIBRATION_ERROR),
)
UNITS = {"seconds": DAYS, "share": "percentunit", "processor-seconds": DAYS, "jobs": COUNT}
NONE_ENDED = "No job has ended yet"
ALONE = "Only one policy ran: replay another too, or choose another to compare with"
SHAPED = f"{HOUR_AND_EIGHT}."
MONTH = "30d"
FEWEST = 3
"""Fewest batches for which there is an interval."""

UNKNOWN = "too few batches to know chance"
WAITED = {
    "60": "1 min",
    "600": "10 min",
    "3600": "1 h",
    "14400": "4 h",
    "43200": "12 h",
    "86400": "1 day",
    "259200": "3 days",
    "604800": "7 days",
}
"""Heading of each column with the share of jobs that waited at most a limit, by this limit in seconds."""


def dashboard() -> Dashboard:
    """Return this dashboard with its panels. `generate` places and numbers the panels."""
    made = board(
        "policies",
        "Which policy?",
        "Which policy is better, by how much, at what price? All those of an experiment, in the time of its log.",
        ("experiment", "cluster", "policy", "baseline", "jobs"),
        several=True,
    )
    batches = sdk.CustomVariable("batch").label("95 % ± from batches of").values("1d,7d,30d")
    made = made.with_variable(batches.current(model.VariableOption(selected=True, text="7d", value="7d")))
    seen = (
        sentences(
            "In words",
            Asks("Which policy is better than $baseline, by how much, and at what price?", empty=ALONE),
            Query(
                _verdict(),
                "{{policy}}: mean wait {{percent}} % {{than}} than under $baseline (95 %: {{interval}}), "
                "{{chance}}; longest wait {{hours}} h {{longest}}.",
            ),
        ),
        _compared(),
        shares(
            "Who is worse off?",
            Asks(
                "Which jobs wait longer than under $baseline? Change of mean waits; above 0 is longer. "
                f"There is no interval: a change of one shape may be chance. {SHAPED}",
                "percentunit",
                ALONE,
            ),
            Query(
                f"sort_desc({_by_shape(OTHERS, 'policy, shape')} / on (shape) group_left() "
                f"{_by_shape(BASELINE, 'shape')} - 1)"
            ),
            "shape",
        ),
        bars_by(
            "Mean wait by shape of job",
            Asks(f"Who waits how long? {SHAPED}", HOURS, NONE_ENDED),
            Query(f"{_by_shape(SEVERAL, 'policy, shape')} / 3600"),
            "shape",
        ),
    )
    more: Rows = {
        "Month by month": [
            columns(
                f"$policy: {title}", Asks(question, unit, NONE_ENDED), [Query(_mean(sums, MONTH, divisor))], span=24
            )
            .interval(MONTH)
            .repeat("policy")
            .repeat_direction("h")
            .max_per_row(4)
            for title, question, unit, sums, divisor in (
                ("mean wait", "Is it always the same policy? Of each 30 days.", HOURS, names.WAIT_SUM, " / 3600"),
                ("slowdown", "Is it so for short jobs too? Of each 30 days.", "short", names.SLOWDOWN_SUM, ""),
            )
        ],
        "Other scores and costs": [
            rows(
                "How jobs fared",
                Asks(
                    "What do other scores show? Means of waits and slowdowns, as in `--json` of the replay.",
                    empty=NONE_ENDED,
                ),
                [_query(title, metric) for title, metric in FIGURES],
                _units(FIGURES),
            ),
            rows(
                "Costs and predictions",
                Asks(
                    "At what price? Passes of the scheduler, jobs cut or killed, processor time lost, errors.",
                    empty=NONE_ENDED,
                ),
                [_query(title, metric) for title, metric in COSTS],
                _units(COSTS),
            ),
            matrix(
                "Share of $jobs that waited at most",
                Asks("How are waits distributed? Choose a partition or a size above.", "percentunit", NONE_ENDED),
                Query(_within()),
                "policy",
                "le",
                WAITED,
            ),
        ],
    }
    return with_panels(made, seen, more)


def _compared() -> table.Panel:
    return rows(
        "Against $baseline",
        Asks(
            "Which policy is better, by how much, and is it more than chance? Means, and their differences from the "
            "baseline's. 95 % ± assumes that batches of the time chosen above do not depend on each "
            "other. Jobs that end after the selected time range are not in the means.",
            empty=NONE_ENDED,
        ),
        [
            _hours(_query("mean wait", names.MEAN_WAIT)),
            _hours(Query(_difference(names.MEAN_WAIT), "wait vs baseline")),
            _hours(Query(_chance(names.WAIT_SUM), "wait 95 % ±")),
            _query("slowdown", names.SLOWDOWN),
            Query(_difference(names.SLOWDOWN), "slowdown vs baseline"),
            Query(_chance(names.SLOWDOWN_SUM), "slowdown 95 % ±"),
            _hours(_query("longest wait", names.MAX_WAIT)),
            Query(_later(), "end later"),
        ],
        dict.fromkeys(("mean wait", "wait vs baseline", "wait 95 % ±", "longest wait"), HOURS) | {"end later": COUNT},
        7,
    ).sort_by([common.TableSortByFieldState().display_name("mean wait")])


def _verdict() -> str:
    """Return the query whose labels are the figures of the sentences, one series for each policy, the best first.

    The sentence states the change of the mean wait with its 95 % interval, and that of the longest wait.
    """
    base = f"scalar(max({last(BASELINE.of(names.MEAN_WAIT))}))"
    common = {
        "change": f"{_difference(names.MEAN_WAIT, OTHERS)} / {base}",
        "half": f"{_chance(names.WAIT_SUM, OTHERS)} / {base}",
        "worst": _difference(names.MAX_WAIT, OTHERS),
    }
    labels = {
        "percent": spelt("round(100 * abs(change)) + 0", "percent", "policy"),
        "than": either("change", "than", "shorter", "longer", "policy"),
        "interval": interval("(change - half)", "(change + half)", "policy"),
        "chance": _if_known(
            either("half - abs(change)", "chance", "more than chance", "may be chance", "policy"), "chance", UNKNOWN
        ),
        "hours": spelt("round(abs(worst) / 3600, 0.1) + 0", "hours", "policy"),
        "longest": either("worst", "longest", "shorter", "longer", "policy"),
    }
    return f"sort({composed(common, 'change', labels, 'policy')})"


def _if_known(expr: str, label: str, otherwise: str) -> str:
    return f'({expr} or on (policy) label_set(change, "{label}", "{otherwise}"))'


def _mean(sums: names.Metric, window: str, divisor: str) -> str:
    return f"increase({SEVERAL.of(sums)}[{window}]) / increase({SEVERAL.of(names.JOBS)}[{window}]){divisor}"


def _difference(metric: names.Metric, runs: Runs = SEVERAL) -> str:
    """Return the query for a figure's last value minus its last value under the baseline."""
    here, there = (last(some.of(metric)) for some in (runs, BASELINE))
    return f"(max by (policy) ({here}) - on () group_left() max({there}))"


def _chance(sums: names.Metric, runs: Runs = SEVERAL) -> str:
    """Return the query for half the width of the 95 % confidence interval of a difference of means, by batch means.

    The quantile is that of Student's t, by the first terms of its expansion at the normal quantile. There is no
    interval for fewer than `FEWEST` batches.
    """
    here, there = (f"increase({some.of(sums)}[$batch])" for some in (runs, BASELINE))
    return (
        f"(WITH (batches = (sum by (policy) ({here}) - on () group_left() sum({there}))[$__range:$batch], "
        f"many = count_over_time(batches) >= {FEWEST}, free = many - 1) "
        "(1.96 + 2.37 / free + 2.82 / free ^ 2) * many * stddev_over_time(batches) / free ^ 0.5 "
        f"/ on (policy) max by (policy) ({last(runs.of(names.JOBS))}))"
    )


def _later() -> str:
    """Return the query for the jobs of each run that end after the selected time range, where there are any."""
    ended, until_now = f"last_over_time({SEVERAL.of(names.JOBS)}{EVER})", last(SEVERAL.of(names.JOBS))
    return f"max by (policy) ({ended} - {until_now}) > 0"


def _within() -> str:
    up_to, every = (
        f"max by ({by}) ({last(SEVERAL.of(names.WAITS, of='$jobs', le=limit))})"
        for by, limit in (("policy, le", "[0-9]+"), ("policy", "[+]Inf"))
    )
    return f"{up_to} / on (policy) group_left() {every}"


def _by_shape(runs: Runs, by: str) -> str:
    waits, jobs = (f"sum by ({by}) ({last(runs.of(metric))})" for metric in (names.SHAPE_WAIT, names.SHAPE_JOBS))
    return f"({waits} / {jobs})"


def _query(title: str, metric: names.Metric) -> Query:
    labels = {"measure": title if title == "recalibrated" else "exact"} if "measure" in metric.labels else {}
    return Query(f"max by (policy) ({last(SEVERAL.of(metric, **labels))})", title)


def _hours(query: Query) -> Query:
    return query._replace(expr=f"{query.expr} / 3600")


def _units(figures: tuple[tuple[str, names.Metric], ...]) -> dict[str, str]:
    return {title: UNITS[metric.unit] for title, metric in figures if metric.unit in UNITS}
