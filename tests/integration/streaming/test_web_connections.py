"""Findings 13 and 18: nobody holds a connection by doing nothing, and nobody fills the log."""

import logging
import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from aiohttp import web

from shadowtime.shared.cli.logs import MAX_LINES, FewAMinute
from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.streaming.web import connections as web_connections
from shadowtime.shared.streaming.web.connections import MAX_CONNECTIONS, MAX_UNANSWERED, log
from shadowtime.stack.servers.ports import free_port
from tests.support.patience import PATIENCE
from tests.support.processes import wait_until
from tests.support.web_server import GET, LOOPS, Served, answer, is_ended, serving

EXHAUSTED = """
import asyncio, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
import uvloop
from aiohttp import web
from shadowtime.shared.cli.logs import start_logging
from shadowtime.shared.streaming.web.server import listening

async def healthy(request):
    return web.json_response({})

async def main():
    application = web.Application()
    application.add_routes([web.get("/health", healthy)])
    async with listening(application, "127.0.0.1", int(sys.argv[1])):
        await asyncio.sleep(600)

start_logging("text")
asyncio.Runner(loop_factory=uvloop.new_event_loop if sys.argv[2] == "uvloop" else None).run(main())
"""


@pytest.fixture(params=LOOPS)
def served(request: pytest.FixtureRequest) -> Iterator[Served]:
    with serving(application(), request.param) as server:
        yield server


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_connections, "HEAD_SECONDS", 1.0)
    monkeypatch.setattr(web_connections, "TAKE_SECONDS", 1.0)
    monkeypatch.setattr(web_connections, "SWEEP_SECONDS", 0.1)


def application() -> web.Application:
    async def healthy(request: web.Request) -> web.Response:
        return web.json_response({"healthy": True})

    async def large(request: web.Request) -> web.Response:
        return web.Response(body=b"x" * 4_000_000)

    made = web.Application()
    made.add_routes([web.get("/health", healthy), web.get("/large", large)])
    return made


@pytest.mark.few(2)
@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHo", GET], ids=["silent", "half", "asked"])
def test_finding_13_of_1100_idle_connections_the_oldest_go_and_a_visitor_gets_in(served: Served, sent: bytes) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4_096)), hard))
    idle = [served.connect(sent) for _ in range(1_100)]
    assert served.ask()[0] == 200  # whoever came before has been let in now
    waits = []
    for _ in range(3):  # the machine may be busy once
        began = time.monotonic()
        assert served.ask()[0] == 200
        waits.append(time.monotonic() - began)
    assert min(waits) < 1.0
    assert len(served.listening.connections) <= MAX_CONNECTIONS
    before = served.cpu()
    time.sleep(2.0)
    assert served.cpu() - before < 0.2
    assert is_ended(idle[0])
    assert not is_ended(idle[-1])


@pytest.mark.usefixtures("hasty")
def test_finding_13_headers_have_their_time_however_they_drip(served: Served) -> None:
    drips = [served.connect(GET) for _ in range(3)] + [served.connect() for _ in range(3)]
    for each in drips[:3]:
        assert answer(each)[0] == 200
    began, request = time.monotonic(), GET[:-2] + b"X-Long: " + b"x" * 1_000
    for place in range(len(request)):
        for each in drips:
            try:
                each.sendall(request[place : place + 1])
            except ConnectionError:
                continue
        if all(is_ended(each) for each in drips):
            break
        assert time.monotonic() - began < PATIENCE
        time.sleep(0.02)
    assert 1.0 <= time.monotonic() - began < 10.0
    assert len(served.listening.connections) == 0


def test_finding_13_idle_connections_end(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_connections, "IDLE_SECONDS", 1.0)
    with served.connect(GET) as idle:
        assert answer(idle)[0] == 200
        wait_until(lambda: is_ended(idle), "an idle connection stays")


@pytest.mark.parametrize("head", [b"Content-Length: 99999999999\r\n", b"Transfer-Encoding: chunked\r\n"])
@pytest.mark.parametrize("flood", [False, True])
def test_finding_13_bodies_are_refused_and_end_soon(served: Served, head: bytes, flood: bool) -> None:
    with served.connect(GET[:-2] + head + b"\r\n") as client:
        assert answer(client)[0] == 413
        began = time.monotonic()
        while not is_ended(client):
            assert time.monotonic() - began < 10.0
            try:
                client.sendall(b"1\r\n" * (30_000 if flood else 1))
            except (ConnectionError, TimeoutError):
                continue
    assert served.ask()[0] == 200


def test_finding_13_what_hides_behind_a_body_is_no_request(served: Served) -> None:
    """Smuggling: where does the one request end, and what begins there?"""
    for head, body in (
        (b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\n" + GET),
        (b"Transfer-Encoding: chunked\r\n", b"0\r\n\r\n" + GET),
        (b"Transfer-Encoding: xchunked\r\n", b"0\r\n\r\n" + GET),
        (b"Content-Length: 3\r\nContent-Length: 0\r\n", b"abc" + GET),
        (b"Content-Length: 3\r\n", b"abc" + GET),
        (b"Content-Length: +3\r\n", b"abc" + GET),
        (b"Content-Length : 3\r\n", b"abc" + GET),
    ):
        with served.connect(GET[:-2] + head + b"\r\n" + body) as client:
            assert answer(client)[0] in {400, 413}, head
            assert answer(client) == (0, b""), head


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"".join(b"X-%d: %s\r\n" % (number, b"a" * 8_000) for number in range(200)), {0, 400, 431}),
        (b"X: " + b"a" * 100_000_000, {0, 400, 431}),
        (b"".join(b"X-%d: a\r\n" % number for number in range(5_000)), {0, 400, 431}),
        (b"X: " + b"a" * 7_000 + b"\r\n", {200}),
    ],
)
def test_finding_13_headers_of_any_length_take_little(served: Served, head: bytes, status: set[int]) -> None:
    with served.connect() as client:
        try:
            client.sendall(GET[:-2] + head + b"\r\n")
        except ConnectionError:
            assert 0 in status
        assert answer(client)[0] in status
    assert served.ask()[0] == 200


def test_finding_13_requests_in_a_row_are_answered_or_end(served: Served) -> None:
    with served.connect(GET * 100) as few:
        assert [answer(few)[0] for _ in range(100)] == [200] * 100
    with served.connect() as many:
        many.settimeout(0.2)
        began = time.monotonic()
        try:  # it never reads what is answered
            while time.monotonic() - began < PATIENCE:
                many.sendall(GET * 1_000)
        except (ConnectionError, TimeoutError):
            pass
        assert served.ask()[0] == 200
        wait_until(lambda: not len(served.listening.connections), "the flood stays")


@pytest.mark.usefixtures("hasty")
def test_finding_13_who_does_not_read_an_answer_is_put_out(served: Served) -> None:
    request = GET.replace(b"/health", b"/large")
    for _ in range(32):
        served.connect(request, receive_buffer=2_048)
    assert served.ask()[0] == 200  # whoever came before is there now
    wait_until(lambda: not len(served.listening.connections), "silent readers stay")


def test_finding_13_a_slow_reader_has_all_of_it(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_connections, "TAKE_SECONDS", 4.0)
    with served.connect(GET.replace(b"/health", b"/large"), receive_buffer=65_536) as reader:
        taken = 0
        while taken < 4_000_000:
            part = reader.recv(65_536)
            assert part, taken
            taken += len(part)
            time.sleep(0.01)


def test_finding_18_what_is_no_request_is_one_line_and_few_of_them(
    served: Served, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    anew = [FewAMinute() if isinstance(each, FewAMinute) else each for each in log.filters]
    assert anew != log.filters
    monkeypatch.setattr(log, "filters", anew)  # the minute of other tests does not count
    rubbish = (
        b"\x16\x03\x01\x02\x00garbage\r\n\r\n",
        b"GET /" + b"\x1b[2J" * 500 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"FOO / HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nA\x00: b\r\n\r\n",
        b"\r\n" * 10 + b"\xff" * 5_000 + b"\r\n\r\n",
    )
    with caplog.at_level(logging.INFO):
        for number in range(20 * len(rubbish)):
            status, body = served.ask(rubbish[number % len(rubbish)])
            assert status == 400
            assert len(body) < 40_000  # a line of the request, written out
            assert b"Traceback" not in body
    lines = [record for record in caplog.records if record.name == "shadowtime.web"]
    assert 1 <= len(lines) <= 2 * (MAX_LINES + 1)  # the minute may end meanwhile
    for record in lines:
        assert not record.exc_info
        assert record.getMessage().isprintable()
        assert len(record.getMessage()) < 1_000
    assert [record for record in caplog.records if record.name != "shadowtime.web"] == []


@pytest.mark.parametrize("loop", LOOPS)
def test_finding_13_without_descriptors_it_neither_spins_nor_fills_the_log(tmp_path: Path, loop: str) -> None:
    port, told = free_port(), tmp_path / "log"
    command = [sys.executable, "-c", EXHAUSTED, str(port), loop]
    with told.open("wb") as file:
        process = subprocess.Popen(command, cwd=ROOT, stdout=file, stderr=file, env={**os.environ, "PYTHONPATH": "."})
    try:
        wait_until(lambda: _listens(port), "it does not listen")
        with ExitStack() as stack:
            for _ in range(300):
                stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as visitor:
                began = time.monotonic()
                visitor.sendall(GET)
                assert visitor.recv(12) == b"HTTP/1.1 200"
            waited, before = time.monotonic() - began, _cpu(process.pid)
            time.sleep(3.0)
            assert _cpu(process.pid) - before < 0.5
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()
    lines = told.read_text().splitlines()
    assert "Traceback" not in told.read_text()
    assert len(lines) <= 2 * (MAX_LINES + 1), lines[:5]
    assert waited < 20.0


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.nightly
def test_more_than_can_be_unanswered_is_more_than_any_head() -> None:
    assert MAX_UNANSWERED > 2 * 8_190
