"""Dashboards drawn in a browser with @grafana/ui, at the width of a small screen: nothing is cut, no panel fails."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from shadowtime.dashboards.panel_kinds import LEGEND_WIDTH
from tests.support import grafana
from tests.support.browser import browser, require_browser
from tests.support.dashboard_pictures import WIDTH, draw, drawing
from tests.support.dashboard_queries import boards
from tests.support.dashboard_store import BEST, Filled
from tests.support.real_servers import require_reason

NAMES = sorted(boards())


@pytest.fixture(scope="module")
def drawn(filled: Filled, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Return of each panel its text, its headings that are cut, and the width in pixels of its chart."""
    require_browser()
    require_reason(grafana.not_drawn())
    folder = tmp_path_factory.mktemp("page")
    page = grafana.build_page(folder)
    return asyncio.run(draw_all(filled, page, folder))


async def draw_all(filled: Filled, file: Path, folder: Path) -> dict[str, dict[str, Any]]:
    async with browser(folder) as page:
        await page.look(WIDTH, dark=True)
        return {name: await draw(page, file, drawing(filled, name)) for name in NAMES}


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
    assert "too few processors free" in drawn["scoreboard"]["Why jobs wait (mean of the policies)"]["text"]
