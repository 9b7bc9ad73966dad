"""Panels as a person sees them: Grafana's own packages work out cells, colours and legends of a store's answers."""

import re
from collections import Counter
from typing import Any

import pytest

from shadowtime.shared.text.colours import BAD, GOOD, GROUPING_COLOURS, NEUTRAL, POLICY_COLOURS, WAITING_COLOURS
from tests.support import grafana
from tests.support.dashboard_queries import NEVER_EMPTY, boards, panels, seen_at_once
from tests.support.dashboard_store import BEST, EASY, Filled, questions
from tests.support.grafana import Column
from tests.support.real_servers import require_reason

CLEAR = "#00000000"
WHY = "Why jobs wait (mean of the policies)"


@pytest.fixture(scope="module")
def seen(filled: Filled) -> dict[str, dict[str, list[list[Column]]]]:
    """Return all panels of each dashboard, as they look when it is opened in the time of its log."""
    require_reason(grafana.missing())
    return {name: grafana.read(questions(filled, name)) for name in boards()}


def column(frames: list[list[Column]], name: str) -> Column:
    (found,) = [each for frame in frames for each in frame if each.name == name]
    return found


def table(frames: list[list[Column]], key: str) -> dict[str, dict[str, str]]:
    """Return the texts of a table's cells, by row and column."""
    (frame,) = frames
    keys = [cell.text for cell in column(frames, key).cells]
    return {row: {each.name: each.cells[at].text for each in frame} for at, row in enumerate(keys)}


def hours(text: str) -> float:
    return float(text.replace(",", "").removesuffix(" h"))


def seconds(text: str) -> int:
    """Return the seconds of Grafana's "2 d 03:04:05"."""
    days, clock = re.fullmatch(r"(?:(\d+) d )?(\d+:\d+:\d+)", text).groups()  # type: ignore[union-attr]
    hour, minute, second = map(int, clock.split(":"))
    return 86_400 * int(days or 0) + 3_600 * hour + 60 * minute + second


@pytest.mark.parametrize("name", boards())
def test_no_cell_is_an_error_and_no_name_a_template(seen: dict[str, Any], name: str) -> None:
    for title, frames in seen[name].items():
        for frame in frames:
            for each in frame:
                assert not re.search(r"\{\{|undefined|NaN|^Value|#[A-Z]$", each.name), (title, each.name)
                for cell in each.cells:
                    assert not re.search(r"NaN|undefined|Infinity|\bago\b|Err", cell.text), (title, each.name, cell)


@pytest.mark.parametrize("name", boards())
def test_no_two_series_of_a_chart_have_one_colour(seen: dict[str, Any], name: str) -> None:
    charts = [panel["title"] for panel in panels(boards()[name]) if panel["type"] in ("timeseries", "barchart")]
    for title in charts:
        series = {each.name: each for frame in seen[name][title] for each in frame if each.kind == "number"}
        colours = Counter(each.colour.lower() for each in series.values() if each.in_legend and each.colour)
        assert not [colour for colour, count in colours.items() if count > 1], (title, colours)


def test_a_policy_a_grouping_and_a_reason_have_their_colours(seen: dict[str, Any]) -> None:
    for title in ("Processors busy (over $window)", "Jobs waiting", "p95 wait"):
        assert column(seen["scoreboard"][title], BEST).colour == POLICY_COLOURS["cautious"]
        assert column(seen["scoreboard"][title], EASY).colour == POLICY_COLOURS["easy"]
    for each in (each for frame in seen["wait_bound"]["Coverage so far"] for each in frame if each.kind == "number"):
        assert each.colour == GROUPING_COLOURS[each.name]
    for each in (each for frame in seen["scoreboard"][WHY] for each in frame if each.kind == "number"):
        assert each.colour == WAITING_COLOURS[each.name]
    twin = seen["twin"]["Waiting longest now"]
    assert column(twin, "real").colour == NEUTRAL
    assert column(twin, "shadow/easy:forecast=yes").colour == POLICY_COLOURS["easy"]


def test_who_is_worse_off_is_coloured_by_value(seen: dict[str, Any], filled: Filled) -> None:
    """Before, +230 % was the green of the policy `best`, and -37 % was red."""
    (frame,) = seen["policies"]["Who is worse off?"]
    assert [each.name for each in frame] == ["shape", "fcfs", BEST]
    found = set()
    for each in frame[1:]:
        assert each.painted == "color-background"
        for cell in each.cells:
            expected = CLEAR if cell.value is None or -0.05 <= cell.value < 0.05 else BAD if cell.value > 0 else GOOD
            assert cell.colour == expected, cell
            found.add(expected)
    assert BAD in found


def test_the_tables_of_policies_have_the_figures_of_the_scores(seen: dict[str, Any], filled: Filled) -> None:
    compared, machine, fared = (
        table(seen[name][title], "policy")
        for name, title in (
            ("policies", "Against $baseline"),
            ("scoreboard", "Each policy"),
            ("policies", "How jobs fared"),
        )
    )
    base = filled.scores[EASY].policy
    for policy, scores in filled.scores.items():
        told = scores.policy
        assert hours(compared[policy]["mean wait"]) == pytest.approx(told.mean_wait / 3_600, abs=0.0051)
        assert hours(compared[policy]["longest wait"]) == pytest.approx(told.max_wait / 3_600, abs=0.0051)
        difference = (told.mean_wait - base.mean_wait) / 3_600
        assert hours(compared[policy]["wait vs baseline"]) == pytest.approx(difference, abs=0.0051)
        assert fared[policy]["jobs ended"] == "250"
        assert seconds(machine[policy]["mean wait"]) == pytest.approx(told.mean_wait, abs=1)
        assert machine[policy]["utilization"] == machine[policy]["utilization"].strip()
        assert float(machine[policy]["utilization"].rstrip("%")) == pytest.approx(100 * told.utilization, rel=0.01)
        assert seconds(fared[policy]["response time"]) == pytest.approx(told.mean_response, abs=1)


def test_a_cell_without_a_value_is_a_dash(seen: dict[str, Any]) -> None:
    costs = table(seen["policies"]["Costs and predictions"], "policy")
    assert costs["fcfs"]["calibration error"] == "\N{EN DASH}"
    assert costs[BEST]["calibration error"].endswith("%")


def test_the_verdict_is_a_sentence_for_each_policy(seen: dict[str, Any]) -> None:
    (frame,) = seen["policies"]["In words"]
    (sentences,) = frame
    assert [cell.text.partition(":")[0] for cell in sentences.cells] == ["cautious", "fcfs"]
    for cell in sentences.cells:
        assert re.fullmatch(
            r"\S+: mean wait \d+ % (shorter|longer) than under \$baseline \(95 %: unknown\), "
            r"too few batches to know chance; longest wait [\d.]+ h (shorter|longer)\.",
            cell.text,
        ), cell.text


def test_bounds_that_hold_are_good_beside_their_target(seen: dict[str, Any]) -> None:
    frames = seen["wait_bound"]["Coverage"]
    assert {cell.text for cell in column(frames, "quantile").cells} == {"0.95"}
    margin = column(frames, "margin to the band")
    for cell in margin.cells:
        if cell.value is not None:
            assert cell.colour == (GOOD if cell.value >= 0 else BAD)


def test_a_large_figure_is_one_and_says_words_where_it_has_some(seen: dict[str, Any]) -> None:
    for name, board in boards().items():
        for panel in panels(board):
            if panel["type"] == "stat":
                numbers = [each for frame in seen[name][panel["title"]] for each in frame if each.kind == "number"]
                assert len(numbers) <= 1, (name, panel["title"])
    (workers,) = [each for each in seen["home"]["Workers"][0] if each.kind == "number"]
    assert [(cell.text, cell.colour) for cell in workers.cells] == [("all answer", GOOD)]


def test_both_themes_have_the_same_colours(filled: Filled, seen: dict[str, Any]) -> None:
    light = grafana.read(questions(filled, "scoreboard"), "light")
    for title, frames in light.items():
        for frame, dark in zip(frames, seen["scoreboard"][title], strict=True):
            for each, other in zip(frame, dark, strict=True):
                if each.colour in {*POLICY_COLOURS.values(), *WAITING_COLOURS.values()}:
                    assert each.colour == other.colour


def test_panels_that_always_have_data_have_some(seen: dict[str, Any]) -> None:
    for name, board in boards().items():
        for panel in seen_at_once(board):
            if panel["fieldConfig"]["defaults"]["noValue"] in NEVER_EMPTY:
                assert any(each.cells for frame in seen[name][panel["title"]] for each in frame), (name, panel["title"])
