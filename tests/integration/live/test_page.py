"""The live page over HTTP: safe, bounded, and nobody's brake."""

import asyncio
import socket
import time
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import aiohttp
import orjson
import pytest

from shadowtime.services.processes.ask.words import NO_WORDS, ClusterWords
from shadowtime.services.processes.live import page as live
from shadowtime.services.processes.live.page import FILES, MAX_VISITORS, LivePage
from shadowtime.services.processes.live.view import LiveRuns
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.messages.envelope import Envelope, SchedulingPoint
from shadowtime.shared.streaming.web import connections as web_connections
from shadowtime.shared.streaming.web.server import address_of, listening
from tests.support.live_logs import HOSTILE, as_sent, log_of, taken
from tests.support.patience import PATIENCE
from tests.support.processes import wait_until
from tests.support.web_server import LOOPS, Served, is_ended, serving

EVENTS = b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n"
Visit = Callable[[LivePage, str, aiohttp.ClientSession], Awaitable[None]]


@asynccontextmanager
async def served() -> AsyncIterator[tuple[LivePage, str, aiohttp.ClientSession]]:
    page = LivePage(LiveRuns())
    listens = listening(page.application(), "127.0.0.1", 0, cancelling=True)
    async with listens as runner, aiohttp.ClientSession() as session:
        try:
            yield page, address_of(runner), session
        finally:
            page.end()


def visiting(visit: Visit) -> None:
    async def go() -> None:
        async with asyncio.timeout(60), served() as there:
            await visit(*there)

    asyncio.run(go())


def told(page: LivePage, log: list[Envelope]) -> None:
    for envelope in log:
        page.runs.push(envelope)
    page.tell()


async def next_state(response: aiohttp.ClientResponse, before: dict[str, Any] | None = None) -> dict[str, Any]:
    while not (line := await response.content.readline()).startswith(b"data: "):
        assert line, "the page closed the stream"
    return taken(before or {}, orjson.loads(line.removeprefix(b"data: ")))


def test_every_answer_forbids_what_is_not_its_own() -> None:
    async def visit(page: LivePage, address: str, session: aiohttp.ClientSession) -> None:
        for path in (*FILES, "/health", "/events", "/nothing", "/page.html", "/../live.py", "/%2e%2e/live.py"):
            async with session.get(address.rstrip("/") + path) as response:
                policy = response.headers["Content-Security-Policy"]
                assert "default-src 'none'" in policy
                assert "unsafe" not in policy
                assert response.headers["X-Content-Type-Options"] == "nosniff"
                assert response.status == (200 if path in (*FILES, "/health", "/events") else 404)
        async with session.post(address + "events") as response:
            assert response.status == 405

    visiting(visit)


def test_a_state_is_sent_at_once_and_again_when_something_happened() -> None:
    log = log_of(jobs=20)

    async def visit(page: LivePage, address: str, session: aiohttp.ClientSession) -> None:
        told(page, log[:30])
        async with session.get(address + "events") as response:
            assert response.content_type == "text/event-stream"
            assert (state := await next_state(response)) == as_sent(log[:30])
            told(page, log[30:])
            assert await next_state(response, state) == as_sent(log)
        async with session.get(address + "events", params={"run": "no such run"}) as response:
            assert "run" not in await next_state(response)

    visiting(visit)


def test_a_visitor_learns_that_kafka_does_not_answer() -> None:
    log = log_of(jobs=20)

    async def visit(page: LivePage, address: str, session: aiohttp.ClientSession) -> None:
        told(page, log[:30])
        async with session.get(address + "events") as response:
            state = await next_state(response)
            page.silence = 95.2
            page.tell()
            state = await next_state(response, state)
            assert state["silent"] == "Kafka has not answered for 95 s"
            page.silence = 0.0
            page.tell()
            assert await next_state(response, state) == as_sent(log[:30])

    visiting(visit)


def test_hostile_names_and_runs_stay_in_their_line() -> None:
    async def visit(page: LivePage, address: str, session: aiohttp.ClientSession) -> None:
        told(page, log_of(HOSTILE, jobs=5, run=f"run {HOSTILE}"))
        async with session.get(address + "events", params={"run": f"run {HOSTILE}"}) as response:
            assert (await next_state(response))["cluster"] == HOSTILE

    visiting(visit)


def test_so_many_visitors_and_no_more() -> None:
    async def visit(page: LivePage, address: str, session: aiohttp.ClientSession) -> None:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as many:
            there = [await many.get(address + "events") for _ in range(MAX_VISITORS)]
            async with session.get(address + "events") as response:
                assert response.status == 503
                assert response.headers["Retry-After"]
            for response in there:
                response.close()
            while page.visitors:
                await asyncio.sleep(0.1)
            async with session.get(address + "events") as response:
                assert response.status == 200

    visiting(visit)


def live_page(loop: str) -> tuple[LivePage, Served, ExitStack]:
    """Return a page with a run, served until the stack is closed."""
    page, stack = LivePage(LiveRuns()), ExitStack()
    for envelope in log_of(jobs=200)[:-1]:
        page.runs.push(envelope)
    return page, stack.enter_context(serving(page.application(), loop, cancelling=True)), stack


@pytest.mark.parametrize("loop", LOOPS)
def test_finding_13_head_holds_no_place(loop: str) -> None:
    page, served, stack = live_page(loop)
    with stack:
        for _ in range(40):
            with served.connect(EVENTS.replace(b"GET", b"HEAD")) as client:
                head = client.recv(65_536)
                assert head.startswith(b"HTTP/1.1 200")
                assert b"text/event-stream" in head
        held = [served.connect(EVENTS.replace(b"GET", b"HEAD")) for _ in range(40)]
        for each in held:
            assert each.recv(12) == b"HTTP/1.1 200"
        assert page.visitors == 0
        with served.connect(EVENTS) as visitor:
            assert visitor.recv(12) == b"HTTP/1.1 200"


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("receive_buffer", [pytest.param(2_048, marks=pytest.mark.nightly), None])
def test_finding_13_32_readers_that_never_read_make_room_and_are_put_out(loop: str, receive_buffer: int | None) -> None:
    page, served, stack = live_page(loop)
    with stack:
        for _ in range(MAX_VISITORS):
            served.connect(EVENTS, receive_buffer=receive_buffer)
        wait_until(lambda: page.visitors == MAX_VISITORS, "they are not there")
        began = time.monotonic()
        with served.connect(EVENTS) as visitor:
            assert visitor.recv(12) == b"HTTP/1.1 200"
        assert time.monotonic() - began < 5.0
        wait_until(lambda: page.visitors == 0, "silent readers stay")
        assert time.monotonic() - began < 30.0


@pytest.mark.parametrize("loop", LOOPS)
def test_finding_13_who_reads_keeps_his_place_for_a_while(loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    page, served, stack = live_page(loop)
    with stack:
        readers = [served.connect(EVENTS) for _ in range(MAX_VISITORS)]

        def settled() -> bool:
            return page.visitors == MAX_VISITORS and sum(is_ended(each) for each in readers) == 0

        wait_until(lambda: page.visitors == MAX_VISITORS, "they are not there")
        for _ in range(8):  # until all have read the greeting
            assert settled()
        assert served.ask(EVENTS)[0] == 503
        assert settled()
        monkeypatch.setattr(live, "STAY_SECONDS", 0.0)
        with served.connect(EVENTS) as visitor:
            assert visitor.recv(12) == b"HTTP/1.1 200"
            wait_until(lambda: is_ended(readers[0]), "the oldest stays")
            assert not any(is_ended(each) for each in readers[1:])


@pytest.mark.parametrize("loop", LOOPS)
def test_finding_13_who_leaves_makes_room_at_once(loop: str) -> None:
    page, served, stack = live_page(loop)
    with stack:
        for _ in range(3):
            there = [served.connect(EVENTS) for _ in range(MAX_VISITORS)]
            wait_until(lambda: page.visitors == MAX_VISITORS, "they are not there")
            for each in there:
                each.close()
            wait_until(lambda: page.visitors == 0, "they have left and are counted", seconds=5.0)


@pytest.mark.parametrize("loop", LOOPS)
def test_finding_13_names_of_runs_of_any_length_are_not_told_again(loop: str) -> None:
    _, served, stack = live_page(loop)
    with stack:
        assert b"zzzz" not in served.ask(EVENTS.replace(b"/events", b"/" + b"z" * 8_000))[1]
        with served.connect(EVENTS.replace(b"/events", b"/events?run=" + b"z" * 8_000)) as visitor:
            found = b""
            while b"data: " not in found or len(found) < 100_000:
                found += visitor.recv(65_536)
            assert b"zzzz" not in found


def test_who_takes_nothing_in_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "REST_SECONDS", 0.01)
    monkeypatch.setattr(web_connections, "TAKE_SECONDS", 1.0)
    log = log_of(jobs=200)

    async def visit(page: LivePage, address: str, session: aiohttp.ClientSession) -> None:
        told(page, log[:-1])
        host, port = address.removeprefix("http://").rstrip("/").split(":")
        slow = socket.create_connection((host, int(port)))
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.sendall(f"GET /events HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        async with session.get(address + "events") as response:
            until, states = time.monotonic() + PATIENCE, 0
            while page.visitors != 1 or states < 50:
                page.runs.version += 1
                page.runs.behind = {0: page.runs.version}
                page.tell()
                await next_state(response)
                states += 1
                assert time.monotonic() < until, f"{page.visitors} visitors after {states} states"
        slow.close()

    visiting(visit)


def test_a_port_that_is_taken_is_named() -> None:
    async def visit(page: LivePage, address: str, session: aiohttp.ClientSession) -> None:
        port = int(address.rstrip("/").rpartition(":")[2])
        with pytest.raises(SettingsError, match=f"cannot listen on 127.0.0.1:{port}"):
            async with listening(page.application(), "127.0.0.1", port):
                pass

    visiting(visit)


class StoredShadowCache(dict[str, Any]):
    """A state that tells whether anybody keeps it."""

    __hash__ = object.__hash__  # type: ignore[assignment]


@pytest.fixture(name="kept")
def _kept(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Return what counts the states that are kept."""
    states: weakref.WeakSet[StoredShadowCache] = weakref.WeakSet()
    made = LiveRuns.state

    def state(runs: LiveRuns, name: str | None, words: ClusterWords = NO_WORDS) -> StoredShadowCache:
        known = StoredShadowCache(made(runs, name, words))
        states.add(known)
        return known

    monkeypatch.setattr(LiveRuns, "state", state)
    return lambda: len(states)


def test_states_of_runs_that_are_not_there_are_not_kept(kept: Callable[[], int]) -> None:
    page = LivePage(LiveRuns())
    for number in range(100):
        assert page.state(f"run {number}")["run"] is None
        assert kept() == 0


def test_a_state_is_made_once_for_all(kept: Callable[[], int]) -> None:
    page = LivePage(LiveRuns())
    told_log = log_of(jobs=5)
    for envelope in told_log:
        page.runs.push(envelope)
    assert page.state(None) is page.state(None)
    before = page.state("kth/easy")
    assert kept() == 2
    page.runs.push(Envelope(run="kth/easy", sequence=len(told_log), event=SchedulingPoint(time=0)))
    assert page.state("kth/easy") is not before
    del before
    assert kept() == 1
