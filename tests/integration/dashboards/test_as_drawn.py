"""Dashboards drawn in a browser with @grafana/ui, at the width of a small screen: nothing is cut, no panel fails."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from shadowtime.dashboards.panel_kinds import LEGEND_WIDTH
from tests.support import grafana
from tests.support.browser import browser, require_browser
from tests.support.dashboard_queries import boards
from tests.support.dashboard_store import BEST, RESULTS, Filled, questions
from tests.support.real_servers import require_reason

WIDTH = 1_280
NAMES = ("home", "policies", "scoreboard", "wait_bound", "scheduler", "twin")


@pytest.fixture(scope="module")
def drawn(filled: Filled, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Return of each panel its text, its headings that are cut, and the width in pixels of its chart."""
    require_browser()
    require_reason(grafana.not_drawn())
    folder = tmp_path_factory.mktemp("page")
    page = grafana.build_page(folder)
    return asyncio.run(draw(filled, page, folder))


async def draw(filled: Filled, file: Path, folder: Path) -> dict[str, dict[str, Any]]:
    found = {}
    async with browser(folder) as page:
        await page.look(WIDTH, dark=True)
        for name in NAMES:
            start, end = filled.log if name in RESULTS else filled.today
            shown = {panel["id"] for panel in boards()[name]["panels"]}
            panels = [each for each in questions(filled, name) if each["panel"]["id"] in shown]
            board = {
                "title": boards()[name]["title"],
                "theme": "dark",
                "width": WIDTH,
                "from": start * 1_000,
                "to": end * 1_000,
                "panels": panels,
            }
            await page.open(file.as_uri())
            found[name] = await page.evaluate(f"draw({json.dumps(board)})")
            failures = [error for error in page.errors if "/public/" not in error]  # fonts and icons of its server
            assert not failures, name
    return found


@pytest.mark.parametrize("name", NAMES)
def test_no_heading_is_cut(drawn: dict[str, dict[str, Any]], name: str) -> None:
    """At 1280 pixels, *Machine and queue* ended with half of "slowdown". A SPEC may be longer than any column."""
    cut = {title: [heading for heading in panel["cut"] if heading != BEST] for title, panel in drawn[name].items()}
    assert not {title: headings for title, headings in cut.items() if headings}


@pytest.mark.parametrize("name", NAMES)
def test_a_chart_has_more_of_its_panel_than_its_legend(drawn: dict[str, dict[str, Any]], name: str) -> None:
    for title, panel in drawn[name].items():
        assert panel["chart"] is None or panel["chart"] > LEGEND_WIDTH, title


def test_figures_and_sentences_are_read_as_they_are(drawn: dict[str, dict[str, Any]]) -> None:
    assert "all answer" in drawn["home"]["Workers"]["text"]
    assert "none waits" in drawn["scheduler"]["Job waiting longest"]["text"]
    assert "fcfs: mean wait" in drawn["policies"]["In words"]["text"]
    assert "the difference is real" in drawn["twin"]["In words"]["text"]
    assert "too few processors free" in drawn["scoreboard"]["Why jobs wait"]["text"]
