"""The report as visitors have it: in Chromium, wide and narrow, light and dark, printed, and with axe-core."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from shadowtime.replayer.logs.swf import read_swf
from shadowtime.replayer.logs.trace import BUNDLED
from shadowtime.replayer.logs.workload import prepare
from shadowtime.replayer.report.report import page as report
from shadowtime.replayer.statement.page import statement_page
from tests.support.browser import Page, browser, require_browser
from tests.support.recorded_runs import compared, recorded
from tests.support.statement_facts import facts

HOSTILE = "<img src=x onerror=\"document.title='owned'\"></script><script>document.title='owned'</script>"
LOOKS = [(width, dark) for width in (1440, 360) for dark in (False, True)]


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A comparison under a hostile name, and a recorded log with all its sections."""
    require_browser()
    folder = tmp_path_factory.mktemp("reports")
    workload = prepare(read_swf(BUNDLED), limit=800)
    told = {"comparison": compared(workload, HOSTILE), "recorded": recorded(workload)}
    for name, (document, runs) in told.items():
        (folder / f"{name}.html").write_text(report([document], HOSTILE, [runs]))
    return {name: folder / f"{name}.html" for name in told}


def visit(folder: Path, look: Callable[[Page], Awaitable[None]]) -> None:
    async def go() -> None:
        async with browser(folder) as page:
            await look(page)

    asyncio.run(go())


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["comparison", "recorded"])
def test_it_looks_right_everywhere(reports: dict[str, Path], name: str, tmp_path: Path) -> None:
    async def look(page: Page) -> None:
        for width, dark in LOOKS:
            await page.look(width, dark=dark)
            await page.open(reports[name].as_uri())
            await page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
            assert await page.accessibility() == [], (width, dark)
            assert await page.wider_than_screen() <= 0, (width, dark)
            assert await page.evaluate(SMALLEST_LETTERS) >= 8, (width, dark)
            background = await page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert background == ("rgb(20, 24, 29)" if dark else "rgb(255, 255, 255)")
        assert await page.evaluate("document.title") == (
            "Shadowtime: policies compared on the same work"
            if name == "comparison"
            else "Shadowtime: predictions scored against what happened"
        )
        printed = await page.pdf()
        assert printed.startswith(b"%PDF-")
        assert 2 <= printed.count(b"/Type /Page\n") <= 8
        assert page.errors == []

    visit(tmp_path, look)


@pytest.mark.nightly
def test_a_statement_looks_right_everywhere_and_is_one_sheet(tmp_path: Path) -> None:
    require_browser()
    long = "partition-" * 6
    pages = {
        "fullest": facts(partitions=30, jobs=120, shadows=5)._replace(cluster=HOSTILE, partition=lambda _: long),
        "empty": facts(jobs=0),
    }

    async def look(page: Page) -> None:
        for name, shown in pages.items():
            file = tmp_path / f"{name}.html"
            file.write_text(statement_page(shown))
            for width, dark in LOOKS:
                await page.look(width, dark=dark)
                await page.open(file.as_uri())
                assert await page.accessibility() == [], (name, width, dark)
                assert await page.wider_than_screen() <= 0, (name, width, dark)
                assert await page.evaluate("document.title") == "Shadowtime: how far predicted starts held"
            assert (await page.pdf()).count(b"/Type /Page\n") == 1, name
        assert page.errors == []

    visit(tmp_path, look)


SMALLEST_LETTERS = """Math.min(...[...document.querySelectorAll('figure svg text')].map(text => {
    const svg = text.closest('svg');
    return parseFloat(getComputedStyle(text).fontSize) * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
}))"""


@pytest.mark.nightly
def test_every_chart_has_its_numbers_and_every_link_its_place(reports: dict[str, Path], tmp_path: Path) -> None:
    async def look(page: Page) -> None:
        for path in reports.values():
            await page.open(path.as_uri())
            figures = "[...document.querySelectorAll('figure')]"
            assert await page.evaluate(f"{figures}.every(each => each.querySelector('table'))")
            assert await page.evaluate("[...document.links].every(each => document.querySelector(each.hash))")
            assert await page.evaluate(f"{figures}.length") >= 7

    visit(tmp_path, look)


TABLES = """[...document.querySelectorAll('.wide')].filter(each => each.checkVisibility()).map(each => ({
    wider: each.scrollWidth > each.clientWidth + 1,
    hint: parseFloat(getComputedStyle(each, '::before').paddingTop) > 10,
}))"""
FIRST_COLUMN = """[...document.querySelectorAll('.wide:has(tbody)')]
    .filter(each => each.scrollWidth > each.clientWidth + 50)
    .map(each => {
        each.scrollLeft = 50;
        const first = each.querySelector('tbody th');
        return Math.round(first.getBoundingClientRect().left - each.getBoundingClientRect().left);
    })"""


@pytest.mark.nightly
def test_a_table_says_that_it_scrolls_where_it_does_and_keeps_its_first_column(
    reports: dict[str, Path], tmp_path: Path
) -> None:
    async def look(page: Page) -> None:
        for width in (1440, 360):
            await page.look(width, dark=False)
            await page.open(reports["comparison"].as_uri())
            tables = await page.evaluate(TABLES)
            assert all(each["wider"] == each["hint"] for each in tables), (width, tables)
            assert any(each["hint"] for each in tables) == (width == 360)
        places = await page.evaluate(FIRST_COLUMN)
        assert len(places) > 1
        assert set(places) == {0}

    visit(tmp_path, look)


@pytest.mark.nightly
def test_printed_it_is_a4_in_light_colours_without_hints(reports: dict[str, Path], tmp_path: Path) -> None:
    async def look(page: Page) -> None:
        await page.look(700, dark=True)
        await page.open(reports["comparison"].as_uri())
        await page.call("Emulation.setEmulatedMedia", media="print", features=[])
        assert await page.evaluate("getComputedStyle(document.querySelector('.wide'), '::before').content") == "none"
        assert await page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"
        assert await page.wider_than_screen() <= 0
        sizes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)", await page.pdf())
        assert {(round(float(width)), round(float(height))) for width, height in sizes} == {(595, 842)}

    visit(tmp_path, look)


@pytest.mark.nightly
def test_what_goes_wrong_in_a_page_is_seen(tmp_path: Path) -> None:
    require_browser()
    (tmp_path / "bad.html").write_text(
        "<!doctype html><html lang=en><title>bad</title><body style='width:3000px'><img src=nowhere.png>"
        "<p style='color:#eee;background:#fff'>pale</p><script>undefined_name()</script>"
    )

    async def look(page: Page) -> None:
        await page.look(390, dark=False)
        await page.open((tmp_path / "bad.html").as_uri())
        assert any("undefined_name" in each for each in page.errors)
        assert any("nowhere.png" in each for each in page.errors)
        found = " ".join(await page.accessibility())
        assert "image-alt" in found
        assert "color-contrast" in found
        assert await page.wider_than_screen() > 0

    visit(tmp_path, look)
