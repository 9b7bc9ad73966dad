"""What makes a dashboard worth opening, as far as a program can check it."""

import json
import re
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.dashboards.alerts import ALERTS
from shadowtime.dashboards.panel_kinds import FEW, colours
from shadowtime.dashboards.queries import MOST, worded
from shadowtime.services.pipeline import STAGES
from shadowtime.services.scoreboard.waits_by_group import BLOCKED, CAPACITY, NOT_FREE, OTHERS_FIRST
from shadowtime.services.wait_bound.groups.queue_bounds import ALL
from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.messages.predictions import AdjustmentClass
from shadowtime.shared.messages.reasons import Reason
from shadowtime.shared.metric_names import METRICS
from shadowtime.shared.text import REASON_NAMES
from shadowtime.shared.text.colours import (
    BAD,
    GOOD,
    GROUPING_COLOURS,
    HUES,
    NEUTRAL,
    OTHER_COLOURS,
    OUTCOME_COLOURS,
    POLICY_COLOURS,
    REASON_COLOURS,
    STAGE_COLOURS,
    WAITING_COLOURS,
    WARNING,
)
from tests.support.dashboard_queries import asked, boards, panels, seen_at_once, variables

LETTERS_PER_COLUMN = 4.2
"""Letters of a title for which a column of the grid has room on a screen of 1280 pixels."""

ROW, LINE = 38, 26
"""Pixels of a row of the grid, and of a line of a legend."""

CHARTS = ("timeseries", "barchart", "heatmap", "state-timeline")
PANELS = [(name, panel) for name, board in boards().items() for panel in panels(board)]
DRAWN = [(name, panel) for name, panel in PANELS if panel["type"] not in ("text", "row")]
RESULTS = [name for name, board in boards().items() if "policy" in variables(board)]


def ids(found: list[tuple[str, dict[str, Any]]]) -> list[str]:
    return [f"{name}: {panel['title']}" for name, panel in found]


def of_type(*types: str) -> pytest.MarkDecorator:
    found = [(name, panel) for name, panel in DRAWN if panel["type"] in types]
    return pytest.mark.parametrize(("board", "panel"), found, ids=ids(found))


def overrides(panel: dict[str, Any], key: str) -> dict[tuple[str, str], Any]:
    """Return the value that a key of the field options has in the end, by matcher and name."""
    return {
        (each["matcher"]["id"], str(each["matcher"]["options"])): value["value"]
        for each in panel["fieldConfig"]["overrides"] or ()
        for value in each["properties"]
        if value["id"] == key
    }


@pytest.mark.parametrize(("board", "panel"), PANELS, ids=ids(PANELS))
class TestAnyPanel:
    """Each panel, rows and texts included."""

    def test_its_title_fits(self, board: str, panel: dict[str, Any]) -> None:
        assert len(panel["title"]) <= LETTERS_PER_COLUMN * panel["gridPos"]["w"]

    def test_it_says_for_which_grafana_it_is(self, board: str, panel: dict[str, Any]) -> None:
        """Without a version, Grafana migrates a panel as if it were older: scatter charts then showed "Err"."""
        assert panel["type"] == "row" or panel["pluginVersion"].startswith("12.")

    def test_it_has_a_direction_to_repeat_in_only_if_it_repeats(self, board: str, panel: dict[str, Any]) -> None:
        """Grafana 11.1 makes every panel with a direction as wide as the screen."""
        assert ("repeatDirection" in panel) <= (panel.get("repeat") is not None)

    def test_it_is_not_a_scatter_chart(self, board: str, panel: dict[str, Any]) -> None:
        """They show "Err" where there is no data, and know no colours by name."""
        assert panel["type"] != "xychart"


def test_no_panel_lies_over_another_or_beyond_the_edge() -> None:
    for board in boards().values():
        for group in (board["panels"], *(row.get("panels") or () for row in board["panels"])):
            taken = [
                (column, row)
                for panel in group
                for at in [panel["gridPos"]]
                for column in range(at["x"], at["x"] + at["w"])
                for row in range(at["y"], at["y"] + at["h"])
            ]
            assert len(taken) == len(set(taken))
            assert max((column for column, _ in taken), default=0) < 24


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
        known = {*POLICY_COLOURS.values(), *OTHER_COLOURS, *HUES, GOOD, WARNING, BAD, NEUTRAL}
        assert set(re.findall(r"#[0-9a-fA-F]{3,8}\b", json.dumps(panel["fieldConfig"]))) <= known

    def test_no_fixed_colour_stands_beside_thresholds(self, board: str, panel: dict[str, Any]) -> None:
        """A fixed colour hides that of the value: +230 % was painted green, the colour of the policy."""
        cells = overrides(panel, "custom.cellOptions").values()
        by_value = panel["fieldConfig"]["defaults"]["color"]["mode"] == "thresholds"
        assert by_value or not any(cell["type"].startswith("color-") for cell in cells)
        fixed = any(colour["mode"] == "fixed" for colour in overrides(panel, "color").values())
        assert not (by_value and fixed)

    def test_no_two_of_its_series_have_one_colour(self, board: str, panel: dict[str, Any]) -> None:
        """A palette by name gives one colour to many names."""
        assert panel["fieldConfig"]["defaults"]["color"]["mode"] != "palette-classic-by-name"
        unseen = {of for of, hide in overrides(panel, "custom.hideFrom").items() if hide["legend"]}
        fixed = [colour["fixedColor"] for of, colour in overrides(panel, "color").items() if of not in unseen]
        assert len(fixed) == len(set(fixed))
        own = [each["legendFormat"] for each in panel["targets"] if "{{" not in each.get("legendFormat", "{{")]
        if panel["type"] in ("timeseries", "barchart"):
            assert len(own) <= len(HUES)

    def test_its_source_can_be_chosen(self, board: str, panel: dict[str, Any]) -> None:
        live = panel["datasource"]["type"] == "datasource"
        assert live or {each["datasource"]["uid"] for each in [panel, *panel["targets"]]} == {"${datasource}"}

    def test_its_words_are_plain(self, board: str, panel: dict[str, Any]) -> None:
        words = [panel["title"], *(each.get("legendFormat", "") for each in panel["targets"])]
        for word in words:
            assert not re.search(
                r"less that|less happened|^± |jobs in 20|every second job|there are|[a-z]-[a-z]+-", word
            )


@of_type("stat")
def test_a_large_figure_is_one_value(board: str, panel: dict[str, Any]) -> None:
    """Six policies in one narrow panel were "nonenonenone waitswaitswaits" over its title."""
    (target,) = panel["targets"]
    assert "{{" not in target["legendFormat"]
    if re.match(r"(sum|min|max)\(|histogram_quantile\(0.99, sum by \(le\)", target["expr"]):
        return
    selected = re.fullmatch(r"last_over_time\((\w+)\{(.*)\}\[\$__range\]\)", target["expr"])
    assert selected is not None
    labels = dict(re.findall(r'(\w+)=~?"([^"]*)"', selected[2]))
    assert labels["policy"] == "$policy"
    (metric,) = (each for each in METRICS if each.name == selected[1])
    assert all(re.fullmatch(r"[\w.$]+", labels.get(label, "")) for label in metric.labels)
    assert "valueSize" not in panel["options"]["text"], "a fixed size switches off that Grafana fits it"


@of_type("timeseries", "barchart", "state-timeline")
def test_its_legend_fits(board: str, panel: dict[str, Any]) -> None:
    legend, at = panel["options"]["legend"], panel["gridPos"]
    names = [each["legendFormat"] for each in panel["targets"]]
    if not legend["showLegend"]:
        assert panel["type"] == "state-timeline" or (len(names) == 1 and "{{" not in names[0])
    elif legend["placement"] == "bottom" and legend["displayMode"] == "table":
        assert at["w"] == 24, "long names take the whole width"
    elif legend["placement"] == "bottom":
        assert len(names) <= FEW
        assert not any("{{" in name for name in names)
        assert sum(7 * len(name) + 30 for name in names) <= 2 * 50 * at["w"]
    else:
        rows = max(MOST + 1, len(names))
        assert (legend["placement"], legend["displayMode"]) == ("right", "table")
        assert 70 + LINE * rows <= ROW * at["h"]


@of_type("barchart")
def test_its_bars_have_names(board: str, panel: dict[str, Any]) -> None:
    assert panel["options"]["xTickLabelMaxLength"] >= 20


@of_type("table")
def test_an_empty_cell_is_a_dash(board: str, panel: dict[str, Any]) -> None:
    """The text for a table without data stood in each empty cell, beside numbers of jobs that had ended."""
    empty = overrides(panel, "noValue")
    live = panel["datasource"]["type"] == "datasource"
    in_words = not panel.get("options", {}).get("showHeader", True)
    assert live or in_words or {empty["byType", kind] for kind in ("number", "string", "time")} == {"\N{EN DASH}"}


@of_type("table")
def test_its_columns_fit_on_a_screen_of_1280_pixels(board: str, panel: dict[str, Any]) -> None:
    """Grafana gives a column 150 pixels, unless it is told otherwise, and cuts what does not fit."""
    widths = {name: width for (_, name), width in overrides(panel, "custom.minWidth").items()}
    hidden = {name for (_, name), on in overrides(panel, "custom.hidden").items() if on}
    labels = set()
    for target in panel["targets"]:
        grouped = re.match(r"(?:WITH .*)?(?:\d+ \* )?\w+ by \(([^)]*)\)", target.get("expr", ""))
        labels |= set(grouped[1].split(", ")) if grouped else set()
    headings = (
        {target.get("legendFormat", "") for target in panel["targets"]} if panel.get("transformations") else set()
    )
    if panel["transformations" if "transformations" in panel else "title"] and len(panel["targets"]) > 1:
        columns = (labels | headings) - hidden
        assert sum(widths.get(name, 150) for name in columns) <= 1_230 * panel["gridPos"]["w"] / 24
        for name in headings - hidden:
            assert widths[name] >= 8 * len(name) + 20


@of_type("timeseries")
def test_gaps_stay_gaps_and_single_points_are_drawn(board: str, panel: dict[str, Any]) -> None:
    """A value of a time window does not hold until the next; a gauge does, and is drawn as steps."""
    drawn = panel["fieldConfig"]["defaults"]["custom"]
    assert drawn["showPoints"] == "auto"
    flows = any(re.search(r"^rate|histogram_quantile|\[\$window", each["expr"]) for each in panel["targets"])
    if flows:
        assert drawn["spanNulls"] is False
    assert drawn["spanNulls"] is False or drawn["lineInterpolation"] == "stepAfter"


@pytest.mark.parametrize("name", boards())
class TestBoard:
    """Each dashboard."""

    def test_its_time_range_is_not_in_the_past(self, name: str) -> None:
        """Dashboards opened in January 2024, where a cluster of today has nothing."""
        time = boards()[name]["time"]
        assert re.fullmatch(r"now-\d+[hd]", time["from"])
        assert time["to"] == "now"
        assert "2024" not in json.dumps(boards()[name])

    def test_an_archived_log_does_not_refresh(self, name: str) -> None:
        assert boards()[name]["refresh"] == ("" if name in RESULTS else "30s")

    def test_its_source_is_a_variable(self, name: str) -> None:
        assert next(iter(variables(boards()[name]).values()))["type"] == "datasource"

    def test_its_variables_do_not_depend_on_the_time_range(self, name: str) -> None:
        for each in variables(boards()[name]).values():
            if each["type"] == "query":
                assert each["query"].startswith("query_result(")
                assert "[50y] @ now()" in each["query"]
                assert "$__range" not in each["query"]

    def test_few_panels_are_seen_at_once(self, name: str) -> None:
        """Beneath its figures or tables, a dashboard has at most eight charts; the others are in collapsed rows."""
        seen = seen_at_once(boards()[name])
        assert sum(panel["type"] in CHARTS for panel in seen) <= 8
        assert sum(panel["type"] == "stat" for panel in seen) <= 6
        for row in boards()[name]["panels"]:
            if row.get("panels"):
                assert row["collapsed"] is True

    def test_every_variable_is_used(self, name: str) -> None:
        board = boards()[name]
        used = {variable for query in asked() if query.board == name for variable in query.variables}
        text = json.dumps([board["panels"], board["links"], [each["query"] for each in variables(board).values()]])
        assert set(variables(board)) <= used | set(re.findall(r"\$\{?(\w+)", text))


def test_policies_have_their_colours_wherever_they_are_a_legend() -> None:
    for name, panel in DRAWN:
        legends = [target.get("legendFormat") for target in panel["targets"]]
        if "{{policy}}" in legends and panel["type"] in ("timeseries", "barchart"):
            fixed = {of: colour["fixedColor"] for of, colour in overrides(panel, "color").items()}
            assert (
                fixed.items() >= {(matcher, of): colour for matcher, of, colour in colours(["{{policy}}"])}.items()
            ), (name, panel["title"])


@given(st.sampled_from(sorted(POLICY_COLOURS)), st.sampled_from(["", ":forecast=yes", ":tau=0.3,runtime=auto"]))
def test_a_spec_has_the_colour_of_its_policy_and_no_other(policy: str, keys: str) -> None:
    """`easy:forecast=yes`, which README recommends, was brown in light and cyan in dark."""
    for name in (policy + keys, f"gauss/shadow/{policy}{keys}"):
        matching = [
            colour
            for matcher, pattern, colour in colours(["{{policy}}"])
            if matcher == "byRegexp" and re.search(pattern.strip("/").replace("\\/", "/"), name)
        ]
        assert matching == [POLICY_COLOURS[policy]]


def test_every_thing_has_its_colour() -> None:
    assert set(STAGE_COLOURS) == {stage.name for stage in STAGES}
    assert set(GROUPING_COLOURS) == {*ALL, "futures"}
    kinds = {each.model_fields["kind"].default for each in get_args(get_args(Reason)[0])}
    assert set(REASON_COLOURS) == kinds == set(REASON_NAMES)
    assert set(OUTCOME_COLOURS) == set(get_args(AdjustmentClass))
    assert set(WAITING_COLOURS) == {BLOCKED, CAPACITY, *NOT_FREE, OTHERS_FIRST}


def test_no_legend_is_the_identifier_of_a_run() -> None:
    for query in asked():
        assert "{{run}}" not in query.legend
        assert query.board in ("alerts",) or "by (run" not in query.expr


def test_the_newest_experiment_is_the_first_to_choose() -> None:
    """Grafana takes the first where none was chosen; names of experiments begin with their time."""
    for board in boards().values():
        if "experiment" in variables(board):
            variable = variables(board)["experiment"]
            descending = 2
            assert variable["sort"] == descending
            assert "current" not in variable or not variable["current"]


def test_every_link_leads_to_a_dashboard_and_carries_a_time_range() -> None:
    uids = {board["uid"] for board in boards().values()}
    for name, board in boards().items():
        links = re.findall(r"/d/([\w-]+)(\?[^\")|]*)?", json.dumps(board))
        for uid, parameters in links:
            assert uid in uids, (name, uid)
            real_time = uid in ("shadowtime-twin", "shadowtime-health")
            assert real_time or re.search(r"from=.*&to=", parameters), (name, uid)
        menu = next(link for link in board["links"] if link["type"] == "dashboards")
        assert menu["keepTime"]
        assert menu["includeVars"]
        assert (name in RESULTS) == any("from=${begin}&to=${end}" in link.get("url", "") for link in board["links"])
    (home,) = (board for name, board in boards().items() if name == "home")
    linked = set(re.findall(r"/d/([\w-]+)", json.dumps(home)))
    assert linked == uids - {home["uid"]}


def test_classes_of_jobs_are_defined_where_they_are_used() -> None:
    for query in asked():
        if "shape" in query.expr and 'shape="all"' not in query.expr:
            (panel,) = (each for each in panels(boards()[query.board]) if each["title"] == query.panel)
            assert "Long jobs request more than 1.0 h, wide ones more than 8 processors" in panel["description"]


def test_the_time_through_all_stages_is_that_of_the_last() -> None:
    """With all stages in one histogram, answers of the first four hid one in fifty of the last that took minutes."""
    (panel,) = (panel for panel in panels(boards()["home"]) if panel["title"] == "p99 of answers")
    assert f'{{stage="{STAGES[-1].name}"}}' in panel["targets"][0]["expr"]


def test_an_alert_states_the_figure_of_its_panel() -> None:
    """Of two workers with one stopped run each, the alert said one run, and its panel two."""
    found = {panel["title"]: panel["targets"] for panel in panels(boards()["health"]) if panel["type"] == "timeseries"}
    stated = [alert for alert in ALERTS if "$values.A" in alert.summary and alert.panel in found]
    assert {alert.uid for alert in stated} >= {"shadowtime-lag", "shadowtime-quarantined"}
    for alert in stated:
        assert alert.query.replace("max(", "sum(") in {target["expr"] for target in found[alert.panel]}, alert.uid


def test_words_of_labels_are_quoted() -> None:
    assert worded("x", "l", {"a": "b", "c": "d"}) == 'label_map(x, "l", "a", "b", "c", "d")'


def test_the_map_of_screens_has_each_of_them() -> None:
    told = (ROOT / "docs" / "screens.md").read_text()
    for board in boards().values():
        assert f"Grafana: *{board['title']}*" in told
