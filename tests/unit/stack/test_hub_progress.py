"""On the page of a pending server: the events of its spawner, with at most one line of Shadowtime in their place."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web
from traitlets.config import Config, Configurable

from shadowtime.shared.streaming.web.server import address_of, listening
from shadowtime.stack.hub_progress import ShadowtimeProgress, line_of

PENDING, RUNNING = {"message": "Pending in queue..."}, {"message": "Cluster job running... waiting to connect"}
LINE = "waiting: likely to start in 12.0 min (80 %: 5.0 min to 40.0 min); it needs 4 procs, and 1 is free"
Answer = Callable[[web.Request], Awaitable[web.Response]]


class Pending(Configurable):
    """A spawner that does as those of batchspawner: it looks at the state of its job every so often."""

    looks = 25
    user = SimpleNamespace(name="games")
    job_id = "17"
    log = logging.getLogger("hub")

    def state_ispending(self) -> bool:
        return self.looks > 0

    async def progress(self) -> AsyncIterator[dict[str, Any]]:
        while self.state_ispending():
            yield PENDING
            self.looks -= 1
            await asyncio.sleep(0.02)
        yield RUNNING


class Spawner(ShadowtimeProgress, Pending):
    pass


def job(**more: object) -> dict[str, object]:
    text, reason = "likely to start in 12.0 min (80 %: 5.0 min to 40.0 min)", "It needs 4 procs, and 1 is free."
    return {"state": "waiting", "starts": {"source": "forecast"}, "text": text, "reason": reason} | more


async def answer(request: web.Request) -> web.Response:
    return web.json_response({"time": int(time.time()), "job": job()})


def shown(answer: Answer | None, **settings: object) -> list[dict[str, Any]]:
    """Return the events of a spawner beside a server that answers so; of one beside none, if `answer` is None."""

    async def go() -> list[dict[str, Any]]:
        application = web.Application()
        if answer is not None:
            application.router.add_get("/expected", answer)
        async with listening(application, "127.0.0.1", 0, cancelling=True) as server:
            url = "http://127.0.0.1:1" if answer is None else address_of(server)
            config = Config(Spawner={"shadowtime_url": url} | settings)
            began = time.monotonic()
            events = [event async for event in Spawner(config=config).progress()]
            assert time.monotonic() - began < 4, "it waited for an answer"
            return events

    return asyncio.run(go())


def test_a_waiting_job_has_its_expected_start_as_the_message(tmp_path: Path) -> None:
    asked = []

    async def noting(request: web.Request) -> web.Response:
        asked.append((dict(request.query), request.headers.get("Authorization")))
        return await answer(request)

    token = tmp_path / "token"
    token.write_text("secret\n")
    events = shown(noting, shadowtime_cluster="mine", shadowtime_token_file=str(token))
    assert events == [PENDING, {"message": LINE}, RUNNING]
    assert asked == [({"job": "17", "user": "games", "cluster": "mine"}, "Bearer secret")]


async def slow(request: web.Request) -> web.Response:
    await asyncio.sleep(60)
    return web.Response()


async def moved(request: web.Request) -> web.Response:
    raise web.HTTPFound("/elsewhere")


def answering(body: object, status: int = 200) -> Answer:
    async def answer(request: web.Request) -> web.Response:
        if isinstance(body, bytes):
            return web.Response(body=body, status=status)
        return web.json_response(body, status=status)

    return answer


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param(None, id="away"),
        pytest.param(slow, id="slow"),
        pytest.param(moved, id="moved"),
        *(answering({"error": "x"}, status) for status in (401, 403, 404, 500)),
        *(answering(body) for body in (b"", b"{", b"\xff", b"[]", b"null", b"x" * 100_000)),
        *(answering({"time": when, "job": job()}) for when in (None, "now", 0)),
        *(answering({"time": 2**40, "job": each}) for each in (None, {}, job(text=7), job(reason=None))),
        answering({"time": 2**40, "job": job(state="running")}),
        answering({"time": 2**40, "job": job(text="", reason="")}),
    ],
)
def test_whatever_the_server_does_the_spawner_goes_on(odd: Answer | None) -> None:
    assert shown(odd) == [PENDING, RUNNING]


def test_a_wrong_setting_harms_nothing_and_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    assert shown(answer, shadowtime_token_file="/nowhere", shadowtime_seconds=0) == [PENDING, RUNNING]
    assert len(caplog.messages) == 1
    assert "no expected start of job 17: FileNotFoundError" in caplog.text
    assert shown(answer, shadowtime_url="") == [PENDING, RUNNING]
    assert shown(answer, shadowtime_url="nonsense") == [PENDING, RUNNING]


def test_a_job_that_the_follower_has_not_seen_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    shown(answering({"error": "job: '17' neither waits nor runs, or you may not see it"}, 404))
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("age", "line"),
    [(59, LINE), (180, LINE.replace(");", "), as of 3 min ago;")), (601, "")],
)
def test_the_line_says_how_old_the_log_is(age: int, line: str) -> None:
    assert line_of({"time": 1000, "job": job()}, 1000 + age) == line


def test_the_word_of_the_site_is_no_prediction_of_ours() -> None:
    line = line_of({"time": 1000, "job": job(starts={"source": "site"}, text="likely to start in 5.0 min")}, 1000)
    assert line.startswith("waiting: likely to start in 5.0 min, as the site's scheduler expects; it needs")
    line = line_of({"time": 1000, "job": job(starts={"source": "site"})}, 1000)
    assert line == LINE.replace(" (80 %", ", as the site's scheduler expects (80 %")
    assert line_of({"time": 1000, "job": job(starts=None)}, 1000) == LINE


def test_the_line_is_one_short_line_of_printable_text() -> None:
    line = line_of({"time": 1000, "job": job(reason="\x1b[2J\r\nIt" + "x" * 500)}, 1000)
    assert line.isprintable()
    assert len(line) == 200
