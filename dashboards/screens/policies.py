"""The policies of an experiment side by side: which is better, by how much, and what it costs."""

from grafana_foundation_sdk.builders import common
from grafana_foundation_sdk.builders import dashboard as sdk
from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.models import dashboard as model

from shadowtime.dashboards.empty_dashboard import board
from shadowtime.dashboards.panels import Asks, columns
from shadowtime.dashboards.queries import BASELINE, SEVERAL, Query, Runs, last
from shadowtime.dashboards.screens.moments import bars_by, dots_of, rows, shares
from shadowtime.shared import metric_names as names
from shadowtime.shared.distributions import HOUR_AND_EIGHT

FIGURES = (
    ("ended", names.JOBS),
    ("geometric mean", names.GEOMETRIC_MEAN_WAIT),
    ("no wait", names.ZERO_WAIT),
    ("slowdown, not clamped", names.SLOWDOWN_UNCLAMPED),
    ("mean response", names.MEAN_RESPONSE),
    ("weighted wait", names.WEIGHTED_WAIT),
    ("utilization", names.UTILIZATION),
)
COSTS = (
    ("passes", names.SCHEDULING_POINTS),
    ("at limit", names.ENDED_AT_LIMIT),
    ("killed", names.KILLED),
    ("thrown away", names.WASTED),
    ("predicted", names.RUN_TIME_PREDICTIONS),
    ("run-time error", names.RUN_TIME_ERROR),
    ("calibration error, raw", names.CALIBRATION_ERROR),
    ("recalibrated", names.CALIBRATION_ERROR),
)
UNITS = {"seconds": "s", "share": "percentunit", "processor-seconds": "s"}
NONE_ENDED = "No job has ended yet"
SHAPED = f"{HOUR_AND_EIGHT}."
MONTH = "30d"


def dashboard() -> Dashboard:
    """Return the dashboard."""
    made = board(
        "policies",
        "Which policy?",
        "Which policy is better, by how much, at what price? All those of an experiment, in the time of its log.",
        ("experiment", "cluster", "policy", "baseline"),
        several=True,
    )
    batches = sdk.CustomVariable("batch").label("± from batches of").values("1d,7d,30d")
    made = made.with_variable(batches.current(model.VariableOption(selected=True, text="7d", value="7d")))
    for panel in (
        rows(
            "Against $baseline",
            Asks(
                "Which policy is better, by how much, and is it more than chance? Means, less that of it; ± holds 95 % "
                "of them if what happens in one batch of the time chosen above tells nothing of the next.",
                empty=NONE_ENDED,
            ),
            [
                _query("mean wait", names.MEAN_WAIT),
                Query(_difference(names.MEAN_WAIT), "wait less that", instant=True),
                Query(_chance(names.WAIT_SUM), "± wait", instant=True),
                _query("slowdown", names.SLOWDOWN),
                Query(_difference(names.SLOWDOWN), "slowdown less that", instant=True),
                Query(_chance(names.SLOWDOWN_SUM), "± slowdown", instant=True),
                _query("longest wait", names.MAX_WAIT),
            ],
            dict.fromkeys(("mean wait", "wait less that", "± wait", "longest wait"), "s"),
        ).sort_by([common.TableSortByFieldState().display_name("slowdown")]),
        dots_of(
            "Slowdown and longest wait",
            Asks("What does the mean cost the worst off? Lower left is better.", empty=NONE_ENDED),
            _query("longest wait", names.MAX_WAIT),
            _query("slowdown", names.SLOWDOWN),
            ("s", "short"),
        ),
        shares(
            "Who is worse off?",
            Asks(f"Which jobs wait longer than under $baseline? Mean waits. {SHAPED}", "percentunit", NONE_ENDED),
            Query(
                f"{_by_shape(SEVERAL, 'policy, shape')} / on (shape) group_left() {_by_shape(BASELINE, 'shape')} - 1",
                instant=True,
            ),
            "shape",
        ),
        bars_by(
            "Mean wait by shape of job",
            Asks(f"Who waits how long? {SHAPED}", "s", NONE_ENDED),
            Query(_by_shape(SEVERAL, "policy, shape"), instant=True),
            "shape",
            span=24,
        ),
        *(
            columns(title, Asks(question, unit, NONE_ENDED), [Query(_mean(sums, MONTH))]).interval(MONTH)
            for title, question, unit, sums in (
                (
                    "Mean wait by month",
                    "Is it always the same policy? Jobs that ended in each 30 days.",
                    "s",
                    names.WAIT_SUM,
                ),
                ("Mean slowdown by month", "Is it so for short jobs too?", "short", names.SLOWDOWN_SUM),
            )
        ),
        rows(
            "How jobs fared",
            Asks(
                "How do other scores tell it? As `--json` of the replay has them, once a run is over.", empty=NONE_ENDED
            ),
            [_query(title, metric) for title, metric in FIGURES],
            _units(FIGURES),
        ),
        rows(
            "Costs and predictions",
            Asks("At what price? Columns are empty where a policy does none of it.", empty=NONE_ENDED),
            [_query(title, metric) for title, metric in COSTS],
            _units(COSTS),
        ),
    ):
        made = made.with_panel(panel)
    return made


def _mean(sums: names.Metric, window: str) -> str:
    return f"increase({SEVERAL.of(sums)}[{window}]) / increase({SEVERAL.of(names.JOBS)}[{window}])"


def _difference(metric: names.Metric) -> str:
    """Return the query for a mean's last value minus its last value under the baseline."""
    here, there = (last(runs.of(metric)) for runs in (SEVERAL, BASELINE))
    return f"max by (policy) ({here}) - on () group_left() max({there})"


def _chance(sums: names.Metric) -> str:
    """Return the query for half the width of the 95 % confidence interval of a difference of means, by batch means."""
    here, there = (f"increase({runs.of(sums)}[$batch])" for runs in (SEVERAL, BASELINE))
    batches = f"(sum by (policy) ({here}) - on () group_left() sum({there}))[$__range:$batch]"
    jobs = f"max by (policy) ({last(SEVERAL.of(names.JOBS))})"
    return f"1.96 * sqrt(count_over_time({batches})) * stddev_over_time({batches}) / on (policy) {jobs}"


def _by_shape(runs: Runs, by: str) -> str:
    waits, jobs = (f"sum by ({by}) ({last(runs.of(metric))})" for metric in (names.SHAPE_WAIT, names.SHAPE_JOBS))
    return f"({waits} / {jobs})"


def _query(title: str, metric: names.Metric) -> Query:
    labels = {"measure": title if title == "recalibrated" else "exact"} if "measure" in metric.labels else {}
    return Query(f"max by (policy) ({last(SEVERAL.of(metric, **labels))})", title, instant=True)


def _units(figures: tuple[tuple[str, names.Metric], ...]) -> dict[str, str]:
    return {title: UNITS[metric.unit] for title, metric in figures if metric.unit in UNITS}
