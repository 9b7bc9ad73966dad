"""The frontier: every policy of the grid is replayed, and the page needs nothing but itself."""

import json
import math
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.benchmarks.frontier import BASELINES, Grid, frontier, main
from tests.benchmarks.frontier_page import page

SMALL = Grid(criteria=("exact", "gain"), taus=(0.2, 1.0), budgets=(1.0,), patiences=(1.0, math.inf))


def test_a_row_for_each_policy_of_the_grid_and_each_to_be_measured_by(
    generated_log: str, capsys: pytest.CaptureFixture[str]
) -> None:
    document = frontier(generated_log, SMALL, jobs=100)
    points = document["points"]
    told = capsys.readouterr().err.splitlines()
    assert told[0] == f"generated: 1 of {len(points)}: easy"
    assert len(told) == len(points), "a line for each, as it begins"
    assert (document["jobs"], len(points)) == (100, len(BASELINES) + 8)
    assert [each["policy"] for each in points[: len(BASELINES)]] == list(BASELINES)
    assert {(each["criterion"], each["tau"], each["patience"]) for each in points[len(BASELINES) :]} == {
        (criterion, tau, patience) for criterion in ("exact", "gain") for tau in (0.2, 1.0) for patience in (1.0, None)
    }
    assert any(each["undominated"] for each in points)


def test_page_is_self_contained_and_shows_every_point(generated_log: str) -> None:
    document = frontier(generated_log, SMALL, jobs=100)
    text = page([document])
    assert "src=" not in text
    assert "http" not in text
    start = text.index('<svg viewBox="0 0 720')
    svg = ElementTree.fromstring(text[start : text.index("</svg>", start) + 6])
    marks = [each for each in svg.iter("circle") if each.find("title") is not None]
    assert len(marks) == len(document["points"])
    for each in marks:  # within the axes
        assert 60 <= float(each.attrib["cx"]) <= 700
        assert 28 <= float(each.attrib["cy"]) <= 372
    assert text.count("<tr") == 1 + len(document["points"])


def test_command_prints_a_line_and_writes_the_page(
    tmp_path: Path, generated_log: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main([generated_log], tmp_path / "f.html", 50, criterion=["exact"], tau=[0.5], budget=[1.0], patience=[0.5])
    [line] = capsys.readouterr().out.splitlines()
    assert json.loads(line)["benchmark"] == "frontier-generated"
    assert (tmp_path / "f.html").read_text().startswith("<!doctype html>")
