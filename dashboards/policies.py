"""Runs side by side, whenever their logs were: the way in to all others."""

from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.models.dashboard import DynamicConfigValue

from shadowtime.dashboards.parts import Query, board, last, rows
from shadowtime.shared import metric_names as names

FIGURES = (
    ("ended", names.JOBS),
    ("mean wait", names.MEAN_WAIT),
    ("geometric mean", names.GEOMETRIC_MEAN_WAIT),
    ("longest wait", names.MAX_WAIT),
    ("no wait", names.ZERO_WAIT),
    ("slowdown", names.SLOWDOWN),
    ("not clamped", names.SLOWDOWN_UNCLAMPED),
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
FIRST, LAST = (f"{function}({names.RUN_INFO.name}[$__range])" for function in ("tfirst_over_time", "tlast_over_time"))
UNTIL = f"{LAST} + clamp_min(({LAST} - {FIRST}) / 100, 86400)"
"""Where the charts of a run end: so long after its last sample, which is on no chart that ends with it, that one is."""

LINK = (
    "/d/shadowtime-scoreboard?from=${__data.fields.first.numeric}&to=${__data.fields.until.numeric}"
    "&var-cluster=${__data.fields.cluster:percentencode}&var-run=${__data.fields.run:percentencode}"
)

HIDDEN = [
    DynamicConfigValue(id_val="custom.hidden", value=True),
    DynamicConfigValue(id_val="custom.hideFrom", value={"viz": True, "legend": False, "tooltip": False}),
]
"""A column for links only, as Grafana calls it until 12.1 and since."""


def dashboard() -> Dashboard:
    """Return the dashboard."""
    made = board(
        "policies",
        "Policies side by side",
        "The last figures of every run, of whatever year its log is; the first table opens a run in its time.",
        ("cluster", "policy", "run"),
        ("1980-01-01T00:00:00.000Z", "now"),
    )
    link = {"title": "Open in its time", "url": LINK}
    runs = rows(
        "Runs",
        [
            Query(f"1000 * {FIRST}", "first", instant=True),
            Query(f"1000 * {LAST}", "last", instant=True),
            Query(f"1000 * ({UNTIL})", "until", instant=True),
        ],
        "Every run of every cluster with its settings, and the first and last moment of its log.",
        {"first": "dateTimeAsIso", "last": "dateTimeAsIso"},
    )
    runs = runs.override_by_name("run", [DynamicConfigValue(id_val="links", value=[link])])
    made = made.with_panel(runs.override_by_name("until", HIDDEN))
    made = made.with_panel(
        rows("How jobs fared", [_query(title, metric) for title, metric in FIGURES], FARED, _units(FIGURES))
    )
    about = "What each run cost, and how its predictions fared; columns are empty where a policy does none of it."
    return made.with_panel(rows("Costs", [_query(title, metric) for title, metric in COSTS], about, _units(COSTS)))


FARED = "As `--json` of the replay has them, once a run is closed; empty before the first end."


def _query(title: str, metric: names.Metric) -> Query:
    labels = {"measure": title if title == "recalibrated" else "exact"} if "measure" in metric.labels else {}
    return Query(f"max by (cluster, policy, run) ({last(metric, **labels)})", title, instant=True)


def _units(columns: tuple[tuple[str, names.Metric], ...]) -> dict[str, str]:
    grafana = {"seconds": "s", "share": "percentunit"}
    return {title: grafana[metric.unit] for title, metric in columns if metric.unit in grafana}
