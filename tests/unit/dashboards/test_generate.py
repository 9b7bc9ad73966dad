"""The committed files are those that the code makes; they use known metrics only, and all of those."""

import json
import re

import pytest
import yaml  # type: ignore[import-untyped]
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from shadowtime.dashboards.alerts import ALERTS
from shadowtime.dashboards.generate import PROVISIONING, RULES, generated
from shadowtime.dashboards.push import holds
from shadowtime.dashboards.screens import DASHBOARDS
from shadowtime.services.pipeline import STAGES
from shadowtime.shared.metric_names import METRICS, RUN
from tests.support.dashboard_queries import asked, boards, known, panels, variables


@pytest.mark.parametrize("path", generated())
def test_the_committed_file_is_the_generated_one(path: str) -> None:
    assert (PROVISIONING / path).read_text() == generated()[path], "run: shadowtime dashboards generate"


def test_nothing_else_is_committed() -> None:
    found = {path.relative_to(PROVISIONING).as_posix() for path in PROVISIONING.rglob("*.json")}
    assert found | {RULES} == set(generated())
    assert [path.name for path in (PROVISIONING / RULES).parent.iterdir()] == ["shadowtime.yml"]


@pytest.mark.parametrize("name", DASHBOARDS)
def test_every_field_of_it_is_one_of_grafanas_schema(name: str) -> None:
    """As far as the SDK carries it: what it does not know it would not write again."""
    register_default_plugins()
    board = boards()[name]
    for panel in panels(board):
        if (panel.get("datasource") or {}).get("type") == "datasource":
            del panel["targets"]  # the SDK knows no queries for streams
    for each in board["annotations"]["list"]:
        for words in ("titleFormat", "textFormat"):  # nor words of annotations
            each.pop(words, None)
    again = json.loads(json.dumps(Dashboard.from_json(board), cls=JSONEncoder))
    assert holds(again, board)
    assert board["uid"] == f"shadowtime-{name.replace('_', '-')}"


def test_every_stage_has_its_dashboard() -> None:
    assert {stage.name for stage in STAGES} < set(DASHBOARDS)


def test_queries_use_known_metrics_and_every_metric_is_used() -> None:
    used = {name for query in asked() for name in query.metrics}
    assert {name for name in used if not known(name)} == set()
    assert {each.name for each in METRICS} - {name.removesuffix("_bucket") for name in used} == set()


def test_large_figures_are_asked_for_at_the_very_end() -> None:
    """Other queries end at a multiple of their step, which the last sample of a run does not wait for."""
    results = r"last_over_time\(shadowtime_\w+\{[^}]*\}\[\$__range\]\)"
    for name, board in boards().items():
        for panel in panels(board):
            if panel["type"] == "stat":
                (target,) = panel["targets"]
                assert (target["instant"], target["range"]) == (True, False), (name, panel["title"])
                assert name == "home" or re.fullmatch(results, target["expr"])


def test_annotations_say_what_happened_by_labels_that_their_queries_have() -> None:
    marks = [each for board in boards().values() for each in board["annotations"]["list"] if "expr" in each]
    assert [each["titleFormat"] for each in marks] == [
        "Decides from now on",
        "The machine has changed",
        "Change point",
    ]
    for each in marks:
        labels = re.match(r"sum by \(([^)]*)\)", each["expr"])
        assert labels is not None
        assert set(re.findall(r"\{\{(\w+)\}\}", each["textFormat"])) == set(labels[1].split(", "))


def test_prometheus_and_vmalert_get_the_rules_that_grafana_gets() -> None:
    (group,) = yaml.safe_load((PROVISIONING / RULES).read_text())["groups"]
    known = {"alert", "expr", "for", "labels", "annotations"}
    assert all(set(rule) <= known for rule in group["rules"])
    assert [rule["expr"] for rule in group["rules"]] == [f"({each.query}) > {each.limit:g}" for each in ALERTS]
    assert [rule.get("for", "0s") for rule in group["rules"]] == [each.lasting for each in ALERTS]
    names = [rule["alert"] for rule in group["rules"]]
    assert all(re.fullmatch(r"[A-Za-z]+", name) for name in names)
    assert len(set(names)) == len(ALERTS)
    text = json.dumps(group)
    assert "$values" not in text, "that is Grafana's name for it"
    assert {name for rule in group["rules"] for name in re.findall(r"(shadowtime_\w+)", rule["expr"])} <= {
        each.name for each in METRICS
    }


def test_queries_use_the_variables_of_their_dashboard() -> None:
    for query in asked():
        if query.board != "alerts":
            assert set(query.variables) <= set(variables(boards()[query.board])), query


def test_labels_are_few_and_fixed() -> None:
    assert set(RUN) == {"cluster", "experiment", "policy", "run"}
    for metric in METRICS:
        assert len(metric.labels) <= 3
        assert not set(metric.labels) & {*RUN, "job_number", "user_id", "executable_number"}
