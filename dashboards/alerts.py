"""Alert rules: coverage out of its band, drift, processes or clusters that do not answer, unusable messages."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from grafana_foundation_sdk.builders import alerting, expr, prometheus
from grafana_foundation_sdk.models.alerting import RelativeTimeRange, Rule
from grafana_foundation_sdk.models.dashboard import Dashboard, DataSourceRef, Panel, RowPanel

from shadowtime.dashboards.empty_dashboard import SOURCE_UID
from shadowtime.shared import metric_names as names

STORE = DataSourceRef(type_val="prometheus", uid=SOURCE_UID)
"""The data source of the rules. It is fixed, because a rule has no variables."""

FOLDER = "shadowtime"
GROUP = "Shadowtime"
LOOK_BACK = 600
"""Time range of the queries of a rule, in seconds."""


class Alert(NamedTuple):
    """An alert rule. It fires when its query has been above `limit` for the time `lasting`, such as `2m`.

    Grafana marks it on the panel titled `panel` of the dashboard with the file name `board`.
    """

    uid: str
    title: str
    query: str
    limit: float
    lasting: str
    summary: str
    board: str
    panel: str


ALERTS = (
    Alert(
        "shadowtime-coverage",
        "Coverage of wait bounds out of band",
        f"max by (cluster, run, grouping, queue) ("
        f"clamp_min(last_over_time({names.BAND_LOW.name}[6h]) - last_over_time({names.RECENT_COVERAGE.name}[6h]), 0) + "
        f"clamp_min(last_over_time({names.RECENT_COVERAGE.name}[6h]) - last_over_time({names.BAND_HIGH.name}[6h]), 0))",
        0.0,
        "0s",
        "Of the last waits in cluster {{ $labels.cluster }}, too few or too many were within the bounds of grouping "
        "{{ $labels.grouping }}. Only live runs are checked; for replays, see the dashboard.",
        "wait_bound",
        "Coverage of the last 1,000 starts",
    ),
    Alert(
        "shadowtime-drift",
        "Predictions are not to be trusted",
        f"max by (cluster, run, of, what, whose) (last_over_time({names.DRIFTING.name}[6h]))",
        0.0,
        "0s",
        "In cluster {{ $labels.cluster }}, predictions of {{ $labels.of }} do not hold ({{ $labels.what }}) for "
        "{{ $labels.whose }}. What to do: docs/drift.md.",
        "drift",
        "Predictions that do not hold",
    ),
    Alert(
        "shadowtime-lag",
        "A stage falls behind",
        f"sum by (stage) ({names.WORKER_LAG.name})",
        10_000.0,
        "2m",
        "{{ $values.A }} messages wait for stage {{ $labels.stage }}.",
        "health",
        "Lag",
    ),
    Alert(
        "shadowtime-silent",
        "A process does not answer",
        f"sum by (worker) ({names.ANSWERS} == bool 0) or count by (worker) (last_over_time({names.ANSWERS}[1d]))",
        0.0,
        "1m",
        "{{ $labels.worker }} does not answer, or has been gone for less than a day: its lag is unknown.",
        "health",
        "Processes that answer",
    ),
    Alert(
        "shadowtime-writer-lag",
        "Results are not written",
        f"max({names.WRITER_LAG.name})",
        10_000.0,
        "2m",
        "{{ $values.A }} messages of the scoreboard wait to be written to VictoriaMetrics.",
        "health",
        "Samples written",
    ),
    Alert(
        "shadowtime-quarantined",
        "A run is quarantined",
        f"sum by (stage) ({names.WORKER_QUARANTINED.name})",
        0.0,
        "0s",
        "Runs that stage {{ $labels.stage }} cannot continue: {{ $values.A }}. See dead-letters and /health for why.",
        "health",
        "Stopped runs",
    ),
    Alert(
        "shadowtime-dead-letters",
        "Messages that no stage could use",
        f"sum by (stage) (increase({names.WORKER_DEAD_LETTERS.name}[10m]))",
        0.0,
        "0s",
        "Stage {{ $labels.stage }} put messages on topic dead-letters; their headers state the reasons.",
        "health",
        "Dead letters",
    ),
    Alert(
        "shadowtime-follower",
        "A cluster is not followed",
        f"max by (followed) ({names.FOLLOW_BEHIND.name} > bool 600) "
        f"or count by (followed) (last_over_time({names.FOLLOW_BEHIND.name}[1d]))",
        0.0,
        "2m",
        "The log of cluster {{ $labels.followed }} is 10 minutes behind it or more, or its follower has been gone for "
        "less than a day. What waits and runs there is unknown.",
        "health",
        "Followed clusters",
    ),
    Alert(
        "shadowtime-contradiction",
        "A cluster contradicts itself",
        f"max by (followed) ({names.FOLLOW_CONTRADICTED.name})",
        0.0,
        "2m",
        "Two answers of cluster {{ $labels.followed }} contradict each other, so its follower reports no end of a job. "
        "Often the follower has lost the right to see all jobs.",
        "health",
        "Doubted by followers",
    ),
)


def rule(alert: Alert, board: Dashboard) -> Rule:
    """Return an alert in the format of Grafana's provisioning API, linked to a panel of `board`."""
    panel = next(candidate for candidate in panels_of(board) if candidate.title == alert.panel)
    question = prometheus.Dataquery().expr(alert.query).ref_id("A").instant().datasource(STORE)
    limit: Any = expr.ExprTypeThresholdConditionsEvaluator().type("gt").params([alert.limit])
    above = (
        expr.TypeThreshold()
        .ref_id("B")
        .expression("A")
        .conditions([expr.ExprTypeThresholdConditions().evaluator(limit)])
    )
    return (
        alerting.Rule(alert.title)
        .uid(alert.uid)
        .folder_uid(FOLDER)
        .rule_group(GROUP)
        .org_id(1)
        .condition("B")
        .with_query(_query("A", SOURCE_UID, question))
        .with_query(_query("B", "__expr__", above))
        .no_data_state("OK")
        .exec_err_state("Error")
        .for_val(alert.lasting)
        .labels({"project": "shadowtime"})
        .annotations({"summary": alert.summary, "__dashboardUid__": board.uid or "", "__panelId__": str(panel.id_val)})
        .build()
    )


def panels_of(board: Dashboard) -> Iterator[Panel]:
    """Yield the panels of a dashboard, also those in collapsed rows."""
    for panel in board.panels or ():
        yield from panel.panels if isinstance(panel, RowPanel) else (panel,)


def prometheus_rules() -> dict[str, Any]:
    """Return all alert rules in the format of Prometheus and vmalert."""
    rules = [
        {
            "alert": alert.uid.title().replace("-", ""),
            "expr": f"({alert.query}) > {alert.limit:g}",
            **({} if alert.lasting == "0s" else {"for": alert.lasting}),
            "labels": {"project": "shadowtime"},
            "annotations": {
                "summary": alert.title,
                "description": alert.summary.replace("$values.A", "$value"),
                "dashboard": f"/d/shadowtime-{alert.board.replace('_', '-')}",
            },
        }
        for alert in ALERTS
    ]
    return {"groups": [{"name": GROUP, "interval": "1m", "rules": rules}]}


def provisioned(rules: list[dict[str, Any]]) -> dict[str, Any]:
    """Return rules in the format of Grafana's provisioning files."""
    kept = [{name: value for name, value in rule.items() if name not in PLACES} for rule in rules]
    group = {"orgId": 1, "name": GROUP, "folder": "Shadowtime", "interval": "1m", "rules": kept}
    return {"apiVersion": 1, "groups": [group]}


PLACES = {"folderUID", "ruleGroup", "orgID"}
"""Fields of a rule that a provisioning file states once, for the group of rules."""


def _query(letter: str, source: str, model: Any) -> alerting.Query:
    span = RelativeTimeRange(from_val=LOOK_BACK, to=0)
    return alerting.Query(letter).datasource_uid(source).relative_time_range(span).model(model)
