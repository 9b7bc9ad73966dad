"""Endpoints for pages of other sites: rows, origins, tokens, and nothing of other users."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from multidict import CIMultiDict

from shadowtime.services.processes.ask.gate import Gate, Portal, VisitorAccess
from shadowtime.services.processes.live.page import LivePage
from shadowtime.services.processes.live.view import LiveRuns
from shadowtime.shared.messages.envelope import ClusterOpened, Envelope
from shadowtime.shared.streaming.web.server import address_of, listening
from tests.support.live_logs import log_of

RUN = "kth/easy"
ORIGIN, TOKEN = "https://ood.example.org", "t" * 32
PORTALS = {"ood": Portal(token_file=Path("x"), origins=(ORIGIN,))}
BEARER = {"Authorization": f"Bearer {TOKEN}"}
Get = Callable[..., Awaitable[tuple[int, Any, Any]]]


@pytest.fixture(scope="module")
def log() -> list[Envelope]:
    """A log that stops while jobs of several users wait."""
    whole = log_of(jobs=120)
    runs = LiveRuns()
    best = (0, 0)
    for at, envelope in enumerate(whole):
        runs.push(envelope)
        if RUN in runs and len(users(runs, waiting=True)) > 1:
            best = max(best, (len(runs.view(RUN).jobs.waiting), at))
    return whole[: best[1] + 1]


def users(runs: LiveRuns, *, waiting: bool) -> set[int | None]:
    view = runs.view(RUN)
    return {story.job.user_id for story in (view.waiting() if waiting else view.running())}


def asking(log: list[Envelope], access: VisitorAccess | None, ask: Callable[[LivePage, Get], Awaitable[None]]) -> None:
    async def go() -> None:
        page = LivePage(LiveRuns(), gate=None if access is None else Gate(access, {"ood": TOKEN}))
        for envelope in log:
            page.runs.push(envelope)
        listens = listening(page.application(), "127.0.0.1", 0, cancelling=True)
        async with asyncio.timeout(60), listens as server, aiohttp.ClientSession() as session:

            async def get(path: str, method: str = "GET", **headers: str) -> tuple[int, Any, Any]:
                named = {name.replace("_", "-"): value for name, value in headers.items()}
                async with session.request(method, address_of(server).rstrip("/") + path, headers=named) as response:
                    is_json = response.content_type == "application/json"
                    return (
                        response.status,
                        await response.json() if is_json else await response.text(),
                        response.headers,
                    )

            await ask(page, get)
            page.end()

    asyncio.run(go())


def test_every_waiting_and_running_job_has_a_row_with_the_start_of_the_page(log: list[Envelope]) -> None:
    async def ask(page: LivePage, get: Get) -> None:
        view = page.runs.view(RUN)
        rows: list[Any] = []
        while True:
            status, answer, _ = await get(f"/queue?skip={len(rows)}")
            assert status == 200
            rows += answer["rows"]
            if not answer["more"]:
                break
        wanted = [story.job.job_number for story in (*view.waiting(), *view.running())]
        assert [int(row["job"]) for row in rows] == wanted
        for row in rows[: len(view.jobs.waiting)]:
            starts = view.starts(view.stories[int(row["job"])])
            assert row["state"] == "waiting"
            for time in ("expected", "earliest", "latest", "by_95", "passed"):
                expected = None if starts is None else getattr(starts, time)
                shown = None if row["starts"] is None else row["starts"][time]
                assert shown == (None if expected is None else view.log.unix_start + expected)
            status, one, _ = await get(f"/expected?job={row['job']}")
            assert (status, one["job"]) == (200, row)

    asking(log, None, ask)


def test_a_user_sees_own_jobs_only_on_every_page(log: list[Envelope]) -> None:
    access = VisitorAccess(sees="own", login_header="X-User", proxies=("127.0.0.1",), portals=PORTALS)

    async def ask(page: LivePage, get: Get) -> None:
        view = page.runs.view(RUN)
        mine, other = list(view.waiting())[-1], next(view.waiting())
        assert mine.job.user_id != other.job.user_id
        user = str(mine.job.user_id)
        own = {number for number, story in view.stories.items() if str(story.job.user_id) == user}
        for headers in ({"X_User": user}, BEARER):
            _, answer, _ = await get(f"/queue?user={user}", **headers)
            assert {row["user"] for row in answer["rows"]} == {user}
            for row in answer["rows"]:
                numbers = map(int, re.findall(r"\bjob ([0-9]+)", row["reason"]))
                assert own.issuperset(numbers), row["reason"]
        hidden, missing = other.job.job_number, 10**9
        for path in ("/expected?job={}", "/job?job={}"):
            first, second = [await get(path.format(number), X_User=user) for number in (hidden, missing)]
            assert first[0] == second[0]
            assert str(first[1]).replace(str(hidden), "N") == str(second[1]).replace(str(missing), "N")
        assert (await get(f"/queue?user={other.job.user_id}", X_User=user))[1]["rows"] == []
        assert (await get(f"/find?wanted={other.job.user_id}", X_User=user))[1]["jobs"] == []
        for start in range(0, len(view.jobs.waiting), 25):
            page_rows = (await get(f"/queue?from={start}", X_User=user))[1]["rows"]
            assert all(number in own for number, _ in page_rows)
        state = await page._state_for(page._gate.viewer(CIMultiDict({"X-User": user}), "127.0.0.1"), RUN)  # noqa: SLF001
        shown = {
            *state["queue"],
            *state["running"],
            *(row[0] for row in (*state["blocks"].values(), *state["planned"])),
        }
        assert shown <= own
        assert {row[1] for row in state["decisions"].values()} <= own
        assert state["waiting"] == len(view.jobs.waiting)

    asking(log, access, ask)


@pytest.mark.parametrize(
    "path", ["/", "/events", "/queue", "/queue?from=0", "/job?job=1", "/find?wanted=1", "/expected"]
)
def test_nobody_unknown_gets_jobs(log: list[Envelope], path: str) -> None:
    access = VisitorAccess(sees="own", login_header="X-User", proxies=("10.0.0.1",), portals=PORTALS)

    async def ask(page: LivePage, get: Get) -> None:
        status, *_ = await get(path, X_User="1")
        assert status == (200 if path == "/" else 403)
        status, *_ = await get(path, Authorization="Bearer wrong")
        assert status == (200 if path == "/" else 401)

    asking(log, access, ask)


def test_a_browser_shows_answers_to_listed_origins_only(log: list[Envelope]) -> None:
    async def ask(page: LivePage, get: Get) -> None:
        for path in ("/queue", "/expected?job=1"):
            for origin, allowed in ((ORIGIN, ORIGIN), ("https://evil.example.org", None), ("null", None)):
                for method, more in (("GET", BEARER), ("OPTIONS", {})):
                    _, _, headers = await get(path, method, Origin=origin, **more)
                    assert headers.get("Access-Control-Allow-Origin") == allowed
                    assert headers["Vary"] == "Origin"
        _, _, headers = await get("/queue", Origin=ORIGIN)  # no token, so no portal
        assert "Access-Control-Allow-Origin" not in headers
        _, _, headers = await get("/find?wanted=1", "OPTIONS", Origin=ORIGIN)
        assert "Access-Control-Allow-Headers" not in headers or headers["Access-Control-Allow-Origin"] == ORIGIN

    asking(log, VisitorAccess(portals=PORTALS), ask)


def test_a_followed_cluster_answers_before_newer_shadows_and_replays(log: list[Envelope]) -> None:
    """A portal that named no cluster got jobs and starts of the shadow that was opened last."""
    told: dict[str, Any] = {"time": 0, "processors": 8, "cluster": "mine"}
    followed = ClusterOpened(mode="recorded", name="live", **told)
    shadow = ClusterOpened(mode="closed", name="easy", **told)
    opened = [
        Envelope(run=run, cluster="mine", sequence=0, event=event)
        for run, event in (("mine/live", followed), ("mine/shadow/easy", shadow))
    ]

    async def ask(page: LivePage, get: Get) -> None:
        assert (await get("/queue"))[1]["run"] == "mine/live"
        assert (await get(f"/queue?run={RUN}"))[1]["run"] == RUN

    asking([opened[0], *log, opened[1]], None, ask)


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/expected", 422, "job: is missing"),
        ("/expected?job=x", 404, "neither waits nor runs"),
        ("/queue?run=other", 404, "run: no run 'other' is known"),
        ("/queue?cluster=other", 404, "cluster: no run that follows cluster 'other' is known"),
    ],
)
def test_a_question_without_an_answer_has_a_reason(log: list[Envelope], path: str, status: int, message: str) -> None:
    async def ask(page: LivePage, get: Get) -> None:
        got, answer, _ = await get(path)
        assert got == status
        assert message in answer["error"]

    asking(log, None, ask)


def test_300_requests_a_second_are_answered(log: list[Envelope]) -> None:
    async def ask(page: LivePage, get: Get) -> None:
        user = next(page.runs.view(RUN).waiting()).job.user_id
        answers = await asyncio.gather(*(get(f"/queue?user={user}") for _ in range(300)))
        assert {status for status, *_ in answers} == {200}

    asking(log, None, ask)
