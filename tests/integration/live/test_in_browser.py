"""The live page in a real browser: jobs at addresses of their own, search, the keyboard, and nothing that flickers."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from shadowtime.services.processes.ask.words import WordReader
from shadowtime.services.processes.live import page as live
from shadowtime.services.processes.live.page import PAGE, ROWS, LivePage
from shadowtime.services.processes.live.view import LiveRuns
from shadowtime.shared.formatting import clock
from shadowtime.shared.messages.envelope import Envelope
from shadowtime.shared.streaming.web.server import address_of, listening
from tests.integration.live.page_texts import text
from tests.support import named_runs
from tests.support.browser import Page, browser, require_browser
from tests.support.live_logs import log_of

RUN = "kth/easy"
Visit = Callable[[LivePage, str, Page], Awaitable[None]]


@asynccontextmanager
async def shown(folder: Path, words: WordReader | None) -> AsyncIterator[tuple[LivePage, str, Page]]:
    page = LivePage(LiveRuns(), words=words)
    async with listening(page.application(), "127.0.0.1", 0) as runner, browser(folder) as tab:
        yield page, address_of(runner), tab
        page.end()


def visiting(folder: Path, visit: Visit, words: WordReader | None = None) -> None:
    require_browser()

    async def go() -> None:
        async with shown(folder, words) as there:
            await visit(*there)

    asyncio.run(go())


def push(page: LivePage, log: list[Envelope]) -> None:
    for envelope in log:
        page.runs.push(envelope)
    page.tell()


@pytest.fixture(scope="module")
def log() -> list[Envelope]:
    return log_of(jobs=200)


@pytest.mark.nightly
@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing_on_any_page(log: list[Envelope], tmp_path: Path, width: int, dark: bool) -> None:
    async def visit(page: LivePage, address: str, tab: Page) -> None:
        await tab.look(width, dark=dark)
        await tab.open(address)
        await tab.wait_for(f"{text('connection')} === 'live'")
        assert await tab.accessibility(every=True) == []
        push(page, log[: len(log) // 2])
        view = page.runs.view(RUN)
        some = (next(iter(view.jobs.waiting)), next(iter(view.jobs.running)), next(iter(view.ended)), 10**6)
        for query in ("", *(f"?run={RUN}&job={each}" for each in some), f"?run={RUN}&find=1", "?run=none"):
            await tab.open(address + query)
            await tab.wait_for(
                "document.title !== 'Shadowtime: live' || !document.getElementById('no-such-run').hidden"
            )
            await tab.wait_for("document.querySelector('main > :not([hidden]) h2').textContent.trim() !== ''")
            assert await tab.accessibility(every=True) == [], query
            assert await tab.wider_than_screen() <= 0, query
        assert tab.errors == []

    visiting(tmp_path, visit)


@pytest.mark.nightly
def test_the_page_is_grey_and_says_so_while_kafka_does_not_answer(log: list[Envelope], tmp_path: Path) -> None:
    async def visit(page: LivePage, address: str, tab: Page) -> None:
        push(page, log[: len(log) // 2])
        await tab.open(address)
        await tab.wait_for(f"{text('connection')} === 'live'")
        for silence, shown in ((95.2, "Kafka has not answered for 95 s"), (0.0, "live")):
            page.silence = silence
            page.tell()
            await tab.wait_for(f"{text('connection')} === '{shown}'")
            assert await tab.evaluate("document.body.classList.contains('old')") == (silence > 0)

    visiting(tmp_path, visit)


def test_each_row_of_a_table_has_a_cell_below_each_heading(log: list[Envelope], tmp_path: Path) -> None:
    async def visit(page: LivePage, address: str, tab: Page) -> None:
        push(page, log[: 9 * len(log) // 10])
        await tab.open(address)
        await tab.wait_for("document.querySelectorAll('#sizes tr').length > 0")
        filled = "[...document.querySelectorAll('main table')].filter((table) => table.tBodies[0]?.rows.length)"
        counts = "[table.tHead.rows[0].cells.length, table.tBodies[0].rows[0].cells.length]"
        tables = await tab.evaluate(f"{filled}.map((table) => [table.getAttribute('aria-labelledby'), {counts}])")
        assert {name for name, _ in tables} >= {"h-queue", "h-running", "h-sizes", "h-bounds"}
        assert [name for name, (headings, cells) in tables if headings != cells] == []

    visiting(tmp_path, visit)


@pytest.mark.nightly
def test_a_job_has_an_address_that_can_be_opened_again(log: list[Envelope], tmp_path: Path) -> None:
    async def visit(page: LivePage, address: str, tab: Page) -> None:
        push(page, log[: len(log) // 2])
        number = next(iter(page.runs.view(RUN).jobs.waiting))
        await tab.open(address)
        await tab.wait_for("document.querySelector('#queue a') !== null")
        await tab.evaluate("document.querySelector('#queue a').click()")
        await tab.wait_for(f"{text('job-number')} === 'Job {number}' && {text('job-state')} === 'waits'")
        assert "in the order of the queue (fcfs)" in await tab.evaluate(text("job-why"))
        where = await tab.evaluate("location.href")
        assert where == f"{address}?run=kth%2Feasy&job={number}"
        assert await tab.evaluate("document.activeElement.tagName") == "H2"
        push(page, log[len(log) // 2 :])
        await tab.wait_for(f"{text('job-state')} === 'has ended'")
        await tab.open("about:blank")
        await tab.open(where)
        await tab.wait_for(f"{text('job-state')} === 'has ended'")
        assert "having waited" in await tab.evaluate(text("job-head"))
        assert (await tab.evaluate("document.title")).startswith(f"Job {number}, kth ")
        await tab.evaluate("document.getElementById('back').click()")
        await tab.wait_for("!document.getElementById('run').hidden")
        await tab.evaluate("history.back()")
        await tab.wait_for("!document.getElementById('job').hidden")
        assert tab.errors == []

    visiting(tmp_path, visit)


@pytest.mark.nightly
def test_search_by_keyboard_finds_a_job_and_a_user(log: list[Envelope], tmp_path: Path) -> None:
    async def keys(tab: Page, typed: str) -> None:
        await tab.evaluate("document.getElementById('wanted').focus(); document.getElementById('wanted').value = ''")
        await tab.call("Input.insertText", text=typed)
        for kind in ("keyDown", "keyUp"):
            await tab.call(
                "Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", windowsVirtualKeyCode=13, text="\r"
            )

    async def visit(page: LivePage, address: str, tab: Page) -> None:
        push(page, log)
        await tab.open(address)
        await tab.wait_for("!document.getElementById('search').hidden")
        await keys(tab, "somebody")
        await tab.wait_for(f"{text('found-title')} === 'Search for somebody'")
        assert "No job, user, account or partition" in await tab.evaluate(text("found-count"))
        await keys(tab, "job 7")
        await tab.wait_for(f"{text('job-number')} === 'Job 7'")
        of_user = page.runs.view(RUN).of_user
        user, jobs = max(of_user.items(), key=lambda each: len(each[1]))
        await keys(tab, f"user {user}")
        await tab.wait_for(f"{text('found-title')} === 'Jobs of user {user}'")
        assert await tab.evaluate("document.querySelector('#found a').textContent") == str(list(jobs)[-1])
        await keys(tab, "199")  # no user has this number
        await tab.wait_for(f"{text('job-number')} === 'Job 199'")

    visiting(tmp_path, visit)


def test_a_followed_cluster_is_shown_in_its_own_words(tmp_path: Path) -> None:
    async def visit(page: LivePage, address: str, tab: Page) -> None:
        page.runs = named_runs.runs()
        for width in (1280, 390):
            await tab.look(width, dark=False)
            await tab.open(address)
            await tab.wait_for("document.querySelector('#queue a') !== null")
            shown = "[...document.querySelectorAll('#queue a')].map((each) => each.textContent)"
            assert await tab.evaluate(shown) == ["2754_12", "user alice", "2754_13", "user alice", "job 2754_12"]
            assert "user alice" in await tab.evaluate(text("decisions"))
            assert await tab.wider_than_screen() <= 0
        await tab.evaluate("[...document.querySelectorAll('#decisions a')].at(-1).click()")
        await tab.wait_for(f"{text('job-number')} === 'Job 2754_13'")
        assert "by user alice of account phys to partition gpu" in await tab.evaluate(text("job-story"))
        assert "job=2754_13" in await tab.evaluate("location.href")
        await tab.evaluate("document.getElementById('job-user').click()")
        await tab.wait_for(f"{text('found-title')} === 'Jobs of user alice'")
        await tab.open(f"{address}?find=alice")
        assert await tab.wait_for(text("found-also")) == "Jobs of account alice"
        await tab.wait_for("document.querySelector('#found a') !== null")
        await tab.evaluate("document.querySelector('#found a').click()")
        await tab.wait_for(f"{text('job-number')} === 'Job 2754_13'")
        assert tab.errors == []

    visiting(tmp_path, visit, WordReader(named_runs.Stored()))


@pytest.mark.nightly
def test_what_goes_on_leaves_focus_scrolling_and_selection(
    log: list[Envelope], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "REST_SECONDS", 0.05)

    async def visit(page: LivePage, address: str, tab: Page) -> None:
        half = len(log) // 2
        push(page, log[:half])
        await tab.look(1280, dark=False)
        await tab.open(address)
        await tab.wait_for("document.querySelector('#queue tr:nth-child(5)') !== null")
        await tab.evaluate(
            "window.kept = document.querySelector('#queue tr:nth-child(5)'); kept.querySelector('a').focus();"
            "getSelection().selectAllChildren(kept.lastElementChild); scrollTo(0, 300)"
        )
        was = await tab.evaluate("[scrollY, document.activeElement.textContent, getSelection().toString()]")
        assert was[0] == 300
        for envelope in log[half : half + 60]:
            push(page, [envelope])
            if int(was[1]) not in page.runs.view(RUN).jobs.waiting:
                break
            await tab.wait_for(f"{text('clock')}.includes('{clock(envelope.event.time, 946684800)[-8:]}')")
            assert await tab.evaluate("kept.isConnected")
            assert await tab.evaluate("[scrollY, document.activeElement.textContent]") == was[:2]
        assert envelope is not log[half]

    visiting(tmp_path, visit)


@pytest.mark.nightly
def test_pages_of_the_queue_and_days_as_terminals_write_them(tmp_path: Path) -> None:
    log = log_of(jobs=300)

    async def visit(page: LivePage, address: str, tab: Page) -> None:
        for envelope in log:
            page.runs.push(envelope)
            if len(page.runs.view(RUN).jobs.waiting) > 60:
                break
        page.tell()
        await tab.open(address)
        await tab.wait_for("document.querySelectorAll('#queue tr').length === 25")
        waiting = list(page.runs.view(RUN).jobs.waiting)
        await tab.evaluate("document.getElementById('after').click()")
        await tab.wait_for(f"document.querySelector('#queue a').textContent === '{waiting[25]}'")
        assert await tab.evaluate(text("which")) == f"26 to 50 of {len(waiting)}"
        assert await tab.evaluate("document.querySelector('#queue .place').textContent") == "26"
        await tab.evaluate("document.getElementById('before').click()")
        await tab.wait_for(f"document.querySelector('#queue a').textContent === '{waiting[0]}'")
        for start, second in ((0, 93_784), (0, -1), (843_436_800, 93_784)):
            day = f"const c = new Clock({start}, 0); return c.day({second}) + ' ' + c.time({second}, true)"
            script = f"import('./format.js').then(({{Clock}}) => {{ {day} }})"
            assert await tab.evaluate(script) == clock(second, start)

    visiting(tmp_path, visit)


def test_page_and_server_agree_on_what_is_a_table() -> None:
    (rows,) = re.findall(r"const ROWS = new Set\((\[.*?\])\)", (PAGE / "stream.js").read_text())
    assert set(re.findall(r'"(\w+)"', rows)) == ROWS
