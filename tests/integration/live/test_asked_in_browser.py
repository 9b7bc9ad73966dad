"""Advice and the twin in a real browser: by keyboard, on a phone, in the dark, with what goes wrong."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from shadowtime.services.processes.ask.advice import AdviceQuestion
from shadowtime.services.processes.live.asked import asked
from shadowtime.services.processes.live.page import LivePage
from shadowtime.services.processes.live.view import LiveRuns
from shadowtime.services.shadows.comparison.live_page import LiveShadows
from shadowtime.services.shadows.comparison.stored import StoredShadowCache
from shadowtime.shared.errors import StoreError
from shadowtime.shared.streaming.web.server import address_of, listening
from tests.integration.live.page_texts import text
from tests.support.answers_away import Away
from tests.support.browser import Page, browser, require_browser
from tests.support.live_logs import HOSTILE, log_of
from tests.support.memory_reader import MemoryReader
from tests.support.stored_runs import Stored
from tests.support.stored_shadows import BEST, keeping
from tests.support.stored_shadows import stored as shadow

pytestmark = pytest.mark.nightly

RUN = "kth/a"
ASKS = f"?run={RUN}&advice=yes"
Visit = Callable[[LivePage, str, Page], Awaitable[None]]


@pytest.fixture(scope="module")
def stored() -> Stored:
    return Stored("easy", "empirical")


@asynccontextmanager
async def shown(folder: Path, advises: Any) -> AsyncIterator[tuple[LivePage, str, Page]]:
    reader = MemoryReader()
    await keeping(reader, BEST, shadow(100))
    await keeping(reader, f"kth/shadow/{HOSTILE}", shadow(20).replace(b'"name":"best"', b'"name":"<img src=x>"'))
    page = LivePage(LiveRuns(), asked(advises, LiveShadows(StoredShadowCache(reader))))
    for envelope in log_of(jobs=100, run=RUN)[:150]:
        page.runs.push(envelope)
    async with listening(page.application(), "127.0.0.1", 0) as runner, browser(folder) as tab:
        yield page, address_of(runner), tab
        page.end()


def visiting(folder: Path, advises: Any, visit: Visit) -> None:
    require_browser()

    async def go() -> None:
        async with shown(folder, advises) as there:
            await visit(*there)

    asyncio.run(go())


async def typed(tab: Page, **values: str) -> None:
    """Fill in fields and press Enter in the last of them."""
    for name, value in values.items():
        await tab.evaluate(f"document.forms.advise.elements.{name}.focus(); document.activeElement.select?.()")
        await tab.call("Input.insertText", text=value)
    for kind in ("keyDown", "keyUp"):
        await tab.call("Input.dispatchKeyEvent", type=kind, key="Enter", windowsVirtualKeyCode=13, text="\r")


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing_with_all_that_can_be_open(stored: Stored, tmp_path: Path, width: int, dark: bool) -> None:
    async def visit(page: LivePage, address: str, tab: Page) -> None:
        await tab.look(width, dark=dark)
        for query, there in (
            (f"?run={RUN}&twin=yes", "document.querySelectorAll('#twins > section').length === 2"),
            (ASKS, "!document.getElementById('asking').hidden"),
            (f"{ASKS}&processors=8&requested_time=7200&moldable=true", f"{text('advice-head')} !== ''"),
        ):
            await tab.open("about:blank")
            await tab.open(address + query)
            await tab.wait_for(there)
            await tab.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
            assert await tab.accessibility(every=True) == [], query
            assert await tab.wider_than_screen() <= 0, query
        assert tab.errors == []
        await tab.open(f"{address}{ASKS}&processors=x")
        await tab.wait_for(f"{text('advise-problem')} !== ''")
        assert await tab.accessibility(every=True) == []

    visiting(tmp_path, stored.advising, visit)


def test_the_twin_is_reached_from_every_run_of_its_cluster_once_there_are_shadows(
    stored: Stored, tmp_path: Path
) -> None:
    async def visit(page: LivePage, address: str, tab: Page) -> None:
        await tab.open(address)
        await tab.wait_for("!document.getElementById('run').hidden")
        assert await tab.evaluate("document.getElementById('to-twin').hidden")
        page.runs.note_shadows({"kth": 2})
        page.tell()
        await tab.wait_for("!document.getElementById('to-twin').hidden")
        await tab.evaluate("document.getElementById('to-twin').click()")
        told = await tab.wait_for("document.getElementById('twins').innerText")
        assert await tab.evaluate("document.activeElement.id") == "twin-title"
        assert "waits 50 % shorter (-50 to -50 %); real since 12 Dec" in told
        assert "mean wait\t20.0 min\t10.0 min\t\N{MINUS SIGN}50 %" in told
        assert "Beside kth/live: 990 jobs of 99 whole days" in told
        assert "100.0 % start sooner, by 10.0 min on average" in told
        assert await tab.evaluate("document.querySelectorAll('#twins details[open]').length") == 0
        names = await tab.evaluate("[...document.querySelectorAll('#twins h3')].map((each) => each.textContent)")
        assert sorted(names) == ["<img src=x>", "best"]
        assert await tab.evaluate("document.title") == "kth under other policies \N{EN DASH} Shadowtime"
        assert tab.errors == []

    visiting(tmp_path, stored.advising, visit)


def test_advice_by_keyboard_at_an_address_that_can_be_opened_again(stored: Stored, tmp_path: Path) -> None:
    async def visit(page: LivePage, address: str, tab: Page) -> None:
        await tab.open(address)
        await tab.wait_for("!document.getElementById('run').hidden")
        await tab.evaluate("document.getElementById('to-advice').click()")
        await typed(tab, processors="8", user="1", requested_time="1,5")
        await tab.wait_for(f"{text('advice-head')} !== ''")
        where = await tab.evaluate("location.href")
        assert where.endswith("&processors=8&requested_time=5400&user=1")
        question = {"cluster": "kth", "run": RUN, "processors": 8, "requested_time": 5400, "user": 1}
        expected = await stored.advising.advise(AdviceQuestion.model_validate(question))
        rows = "document.querySelectorAll('#advice-others tbody tr')"
        assert await tab.evaluate(f"{rows}.length") == len(expected.alternatives)
        best = next(at for at, each in enumerate(expected.alternatives) if each.advised)
        assert await tab.evaluate(f"[...{rows}].findIndex((each) => each.className === 'advised')") == best
        assert await tab.evaluate(f"{text('advice-bounds')}.includes('conformal')")
        assert await tab.evaluate("document.querySelectorAll('#advice-times tbody tr').length") == 7
        await tab.open("about:blank")
        await tab.open(where)
        await tab.wait_for(f"{text('advice-head')} !== ''")
        assert await tab.evaluate("document.forms.advise.elements.unit.selectedOptions[0].text") == "minutes"
        assert await tab.evaluate("document.forms.advise.elements.requested_time.value") == "90"
        assert tab.errors == []

    visiting(tmp_path, stored.advising, visit)


@pytest.mark.parametrize(
    ("values", "name", "said"),
    [
        ({"processors": "eight", "requested_time": "1"}, "processors", "processors: 'eight': expected a whole number"),
        ({"processors": "8"}, "requested_time", "requested time: is missing"),
        (
            {"processors": "4000", "requested_time": "1"},
            "processors",
            "processors: the job requests 4000 processors",
        ),
        (
            {"processors": "8", "requested_time": "1", "risk": "<b>"},
            "risk",
            "greatest risk of being cut: '<b>': expected",
        ),
        ({}, "processors", "processors: '': expected a whole number"),
    ],
)
def test_an_error_names_the_field(stored: Stored, tmp_path: Path, values: dict[str, str], name: str, said: str) -> None:
    async def visit(page: LivePage, address: str, tab: Page) -> None:
        await tab.open(address + ASKS)
        await tab.wait_for("!document.getElementById('asking').hidden")
        await tab.evaluate("document.forms.advise.elements.processors.focus()")
        await typed(tab, **values)
        assert (await tab.wait_for(text("advise-problem"))).startswith(said)
        assert await tab.evaluate("document.activeElement.name") == name
        invalid = "[...document.querySelectorAll('[aria-invalid=true]')].map((each) => each.name)"
        assert await tab.evaluate(invalid) == [name]
        assert await tab.evaluate("document.getElementById('advice-answer').hidden")

    visiting(tmp_path, stored.advising, visit)


def test_without_redis_the_page_says_so_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(reader: MemoryReader) -> list[str]:
        raise StoreError("Redis cannot be used: gone")

    monkeypatch.setattr(MemoryReader, "names", away)

    async def visit(page: LivePage, address: str, tab: Page) -> None:
        await tab.open(address + ASKS)
        await tab.wait_for("!document.getElementById('asking').hidden")
        await typed(tab, processors="8", requested_time="1")
        assert await tab.wait_for(text("advise-problem")) == "Redis cannot be used: refused"
        await tab.open(f"{address}?run={RUN}&twin=yes")
        assert await tab.wait_for(f"{text('twin-problem')}.replace('Asking …', '')") == "Redis cannot be used: gone"
        await tab.open(f"{address}?run={RUN}")
        await tab.wait_for("document.querySelector('#queue tr, #running tr') !== null")

    visiting(tmp_path, Away(), visit)
