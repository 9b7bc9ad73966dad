"""What makes a dashboard worth opening, as far as a program can check it."""

import json
import re
from typing import Any

import pytest

from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.text.colours import BAD, GOOD, NEUTRAL, POLICY_COLOURS, WARNING
from tests.support.dashboard_queries import asked, boards, panels, variables

LETTERS_PER_COLUMN = 4.2
"""Letters of a title for which a column of the grid has room on a screen of 1280 pixels."""

PANELS = [(name, panel) for name, board in boards().items() for panel in panels(board)]
DRAWN = [(name, panel) for name, panel in PANELS if panel["type"] not in ("text", "row")]


def ids(found: list[tuple[str, dict[str, Any]]]) -> list[str]:
    return [f"{name}: {panel['title']}" for name, panel in found]


@pytest.mark.parametrize(("board", "panel"), PANELS, ids=ids(PANELS))
def test_its_title_fits(board: str, panel: dict[str, Any]) -> None:
    assert len(panel["title"]) <= LETTERS_PER_COLUMN * panel["gridPos"]["w"]


@pytest.mark.parametrize("name", boards())
def test_no_panel_lies_over_another_or_beyond_the_edge(name: str) -> None:
    taken = [
        (column, row)
        for panel in panels(boards()[name])
        for at in [panel["gridPos"]]
        for column in range(at["x"], at["x"] + at["w"])
        for row in range(at["y"], at["y"] + at["h"])
    ]
    assert len(taken) == len(set(taken))
    assert max(column for column, _ in taken) < 24


@pytest.mark.parametrize(("board", "panel"), DRAWN, ids=ids(DRAWN))
class TestPanel:
    """Each panel that draws something."""

    def test_its_description_is_the_question_that_it_answers(self, board: str, panel: dict[str, Any]) -> None:
        assert "?" in panel["description"]

    def test_it_has_a_unit_and_says_what_to_do_without_data(self, board: str, panel: dict[str, Any]) -> None:
        defaults = panel["fieldConfig"]["defaults"]
        assert defaults["unit"]
        assert len(defaults["noValue"]) > 10

    def test_its_thresholds_were_chosen(self, board: str, panel: dict[str, Any]) -> None:
        """Those of Grafana turn red at 80, whatever it is."""
        steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
        assert steps[0]["color"] == NEUTRAL
        assert {step["color"] for step in steps[1:]} <= {GOOD, WARNING, BAD}
        assert all(step["value"] != 80 for step in steps)

    def test_its_colours_are_those_of_the_table(self, board: str, panel: dict[str, Any]) -> None:
        known = {*POLICY_COLOURS.values(), GOOD, WARNING, BAD, NEUTRAL}
        assert set(re.findall(r"#[0-9a-fA-F]{3,8}\b", json.dumps(panel["fieldConfig"]))) <= known


def test_policies_have_their_colours_wherever_they_are_a_legend() -> None:
    for name, panel in DRAWN:
        legends = [target.get("legendFormat") for target in panel["targets"]]
        if "{{policy}}" in legends and panel["type"] in ("timeseries", "stat"):
            fixed = {
                each["matcher"]["options"]: value["value"]["fixedColor"]
                for each in panel["fieldConfig"]["overrides"]
                for value in each["properties"]
                if value["id"] == "color"
            }
            assert fixed.items() >= POLICY_COLOURS.items(), (name, panel["title"])


def test_no_legend_is_the_identifier_of_a_run() -> None:
    for query in asked():
        assert "{{run}}" not in query.legend
        assert query.board in ("alerts",) or "by (run" not in query.expr


@pytest.mark.parametrize("name", boards())
def test_every_variable_is_used(name: str) -> None:
    board = boards()[name]
    used = {variable for query in asked() if query.board == name for variable in query.variables}
    chosen_by_others = set(re.findall(r"\$(\w+)", json.dumps([each["query"] for each in variables(board).values()])))
    assert set(variables(board)) <= used | chosen_by_others


def test_the_newest_experiment_is_the_first_to_choose() -> None:
    """Grafana takes the first where none was chosen; names of experiments begin with their time."""
    for board in boards().values():
        if "experiment" in variables(board):
            variable = variables(board)["experiment"]
            descending = 2
            assert variable["sort"] == descending
            assert "current" not in variable or not variable["current"]


def test_every_link_leads_to_a_dashboard() -> None:
    uids = {board["uid"] for board in boards().values()}
    for name, board in boards().items():
        for uid in re.findall(r"/d/([\w-]+)", json.dumps(board)):
            assert uid in uids, (name, uid)
    (home,) = (board for name, board in boards().items() if name == "home")
    linked = set(re.findall(r"/d/([\w-]+)", json.dumps(home)))
    assert linked == uids - {home["uid"]}


def test_the_map_of_screens_has_each_of_them() -> None:
    told = (ROOT / "docs" / "screens.md").read_text()
    for board in boards().values():
        assert f"Grafana: *{board['title']}*" in told
