"""The site of the documentation as visitors have it: in Chromium, wide and narrow, light and dark, with axe-core."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from aiohttp import web

from shadowtime.shared.cli.paths import ROOT
from tests.support.browser import browser, require_browser
from tests.support.patience import PATIENCE

LOOKS = [(width, dark) for width in (1280, 390) for dark in (False, True)]
READY = "[...document.querySelectorAll('.md-typeset__scrollwrap, pre > code')].every(region => region.tabIndex === 0)"
SPELT = """[...document.querySelectorAll('td code')].filter(
    name => name.textContent.length > 4 && name.textContent.length < 4 * name.getClientRects().length
).map(name => name.textContent)"""
"""Names in tables that stand on so many lines that a line has three letters or fewer."""
PAGES = ("index.html", "results/index.html", "queue/index.html", "reference/specs/index.html", "glossary/index.html")


@pytest.mark.nightly
def test_pages_look_right_everywhere(tmp_path: Path) -> None:
    require_browser()
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "-d", str(tmp_path / "site")]
    subprocess.run(command, cwd=ROOT, check=True, timeout=10 * PATIENCE, capture_output=True)

    async def look() -> None:
        application = web.Application()
        application.router.add_static("/", tmp_path / "site")
        runner = web.AppRunner(application)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        async with browser(tmp_path) as page:
            for width, dark in LOOKS:
                await page.look(width, dark=dark)
                for name in PAGES:
                    await page.open(f"http://127.0.0.1:{port}/{name}")
                    await page.wait_for(READY)
                    assert await page.accessibility(every=True) == [], (name, width, dark)
                    assert await page.wider_than_screen() <= 0, (name, width, dark)
                    assert await page.evaluate(SPELT) == [], (name, width, dark)
                background = await page.evaluate("getComputedStyle(document.body).backgroundColor")
                assert (background == "rgb(255, 255, 255)") != dark
        await runner.cleanup()

    asyncio.run(look())
