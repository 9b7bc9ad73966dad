"""The live page over real Kafka, and in a browser while a run goes on."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from shadowtime.services.processes.live.page import LivePage
from shadowtime.services.processes.live.view import LiveRuns
from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.formatting import clock
from shadowtime.shared.messages.decisions import Start
from shadowtime.shared.messages.envelope import (
    ClusterOpened,
    Decided,
    Envelope,
    Event,
    JobStarted,
    JobSubmitted,
    SchedulingPoint,
)
from shadowtime.shared.messages.reasons import FitsNow
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.web.server import address_of, listening
from shadowtime.stack.servers.ports import free_port
from shadowtime.stack.servers.servers import Kafka
from tests.integration.live.live_command import live, of_run, publish, states
from tests.support.browser import Page, browser, require_browser
from tests.support.live_logs import HOSTILE, as_sent, log_of
from tests.support.patience import PATIENCE
from tests.support.real_servers import require


def test_several_runs_over_kafka_are_followed_to_their_ends(kafka: Kafka, tmp_path: Path) -> None:
    settings = Settings(kafka_bootstrap=kafka.address)
    first, other = log_of("kth", run="live/kth"), log_of(HOSTILE, jobs=100, run=f"live/{HOSTILE}")

    async def go() -> None:
        await publish(settings, first[:200], other)
        async with live(settings, tmp_path) as address, aiohttp.ClientSession() as session, asyncio.timeout(PATIENCE):
            async for state in states(session, address, "live/kth"):
                if state.get("time") == first[199].event.time:
                    break
            await publish(settings, first[200:])
            async for state in states(session, address, "live/kth"):
                if state["closed"]:
                    break
            assert of_run(state) == of_run(as_sent(first))
            async for state in states(session, address, f"live/{HOSTILE}"):
                assert of_run(state) == of_run(as_sent(other))
                break
            assert {"live/kth", f"live/{HOSTILE}"} <= {each["run"] for each in state["runs"]}
            assert state["behind"] == 0

    asyncio.run(go())


async def health(session: aiohttp.ClientSession, address: str, status: int) -> str | None:
    """Return the reason on the page /health once it has this status."""
    while True:
        async with session.get(address + "health") as response:
            if response.status == status:
                reason: str | None = (await response.json())["reason"]
                return reason
        await asyncio.sleep(0.2)


@pytest.mark.nightly
def test_it_goes_on_when_kafka_comes_back(tmp_path: Path) -> None:
    require(Kafka)
    log = log_of(run="live/back")

    async def go(broker: Kafka) -> None:
        settings = Settings(kafka_bootstrap=broker.address)
        await publish(settings, log[:200])
        async with live(settings, tmp_path) as address, aiohttp.ClientSession() as session, asyncio.timeout(PATIENCE):
            async for state in states(session, address):
                if state.get("time") == log[199].event.time:
                    break
            await asyncio.to_thread(broker.kill)
            reason = await health(session, address, 503)
            assert re.fullmatch(r"Kafka has not answered for 3\d s", reason or "")
            await asyncio.to_thread(broker.start)
            assert await health(session, address, 200) is None
            await publish(settings, log[200:])
            async for state in states(session, address):
                if state["closed"]:
                    break
            assert of_run(state) == of_run(as_sent(log))

    with Kafka(tmp_path / "kafka") as broker:
        asyncio.run(go(broker))


def test_without_kafka_it_ends_with_a_line() -> None:
    bootstrap = f"--kafka-bootstrap=127.0.0.1:{free_port()}"
    done = subprocess.run(
        [sys.executable, "-m", "shadowtime", "live", "--port=0", "--connect-seconds=0.5", bootstrap],
        cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: Kafka at 127.0.0.1:")


@asynccontextmanager
async def shown(folder: Path) -> AsyncIterator[tuple[LivePage, str, Page]]:
    page = LivePage(LiveRuns())
    async with listening(page.application(), "127.0.0.1", 0) as runner, browser(folder) as tab:
        yield page, address_of(runner), tab
        page.end()


def day_and_time(state: dict[str, Any]) -> str:
    """Return the clock of the log as the page has it, but for the year."""
    date, _, time = clock(state["time"], state["unix_start"]).rpartition(" ")
    year = datetime.fromtimestamp(state["unix_start"] + state["time"], UTC).year
    return f"{date} {year} {time}"


@pytest.mark.nightly
@pytest.mark.parametrize("width", [1440, 360])
@pytest.mark.parametrize("dark", [False, True])
def test_it_looks_right_and_follows_the_run(tmp_path: Path, width: int, dark: bool) -> None:
    require_browser()
    log = log_of(HOSTILE, policy="best", run=f"live/{HOSTILE}")
    half = len(log) // 2

    async def go() -> None:
        async with shown(tmp_path) as (page, address, tab):
            await tab.look(width, dark=dark)
            await tab.open(address)
            await tab.wait_for("document.getElementById('connection').textContent === 'live'")
            assert "No run yet" in await tab.evaluate("document.body.innerText")
            for part in (log[:half], log[half:]):
                for envelope in part:
                    page.runs.push(envelope)
                page.tell()
                told = page.runs.state(None)
                await tab.wait_for(f"document.body.innerText.includes({day_and_time(told)!r})")
                figures = await tab.evaluate("document.getElementById('figures').innerText")
                assert f"{told['busy']} of {told['processors']}" in figures
                for table in ("queue", "running", "decisions", "bounds"):
                    rows = await tab.evaluate(f"document.getElementById('{table}').children.length")
                    assert rows == len(told[table]), table
                assert await tab.accessibility() == []
                assert await tab.wider_than_screen() <= 0
            assert "bounded slowdown" in figures
            title = await tab.evaluate("document.title")
            assert title.startswith("<img src=x")
            assert title.endswith(" Shadowtime")
            assert await tab.evaluate("document.getElementById('title').textContent") == HOSTILE
            assert tab.errors == []

    asyncio.run(go())


@pytest.mark.nightly
def test_a_job_has_one_number_wherever_it_is_named(tmp_path: Path) -> None:
    require_browser()
    start = Start(job_number=1_513, processors=1, reason=FitsNow())
    events: list[Event] = [
        ClusterOpened(time=0, cluster="kth", processors=1),
        *(JobSubmitted(time=0, job_number=number, requested_processors=1) for number in (1_513, 1_514)),
        Decided(time=0, starts=(start,)),
        JobStarted(time=0, job_number=1_513, processors=1),
    ]

    async def go() -> None:
        async with shown(tmp_path) as (page, address, tab):
            for sequence, event in enumerate(events):
                page.runs.push(Envelope(run="r", cluster="kth", sequence=sequence, event=event))
            await tab.open(address)
            await tab.wait_for("document.querySelector('#queue tr') !== null")
            for table, name in (("decisions", "job 1513"), ("queue", "1514"), ("running", "1513")):
                assert await tab.evaluate(f"document.querySelector('#{table} a').textContent") == name

    asyncio.run(go())


@pytest.mark.nightly
def test_the_log_of_a_follower_that_is_away_turns_grey(tmp_path: Path) -> None:
    require_browser()
    now = int(datetime.now(UTC).timestamp())
    opened = ClusterOpened(time=0, cluster="mine", processors=4, mode="recorded", name="live", unix_start=now - 10_000)
    first: list[Event] = [opened, SchedulingPoint(time=9_400)]
    said, old = "document.getElementById('connection').textContent", "document.body.classList.contains('old')"

    async def go() -> None:
        async with shown(tmp_path) as (page, address, tab):
            for sequence, event in enumerate(first):
                page.runs.push(Envelope(run="mine/live", cluster="mine", sequence=sequence, event=event))
            await tab.open(address)
            await tab.wait_for(f"{said}.startsWith('the log is 10.') && {old}")
            page.runs.push(Envelope(run="mine/live", cluster="mine", sequence=2, event=SchedulingPoint(time=10_000)))
            page.tell()
            await tab.wait_for(f"{said} === 'live' && !{old}")

    asyncio.run(go())


@pytest.mark.nightly
def test_it_connects_again_and_another_run_can_be_chosen(tmp_path: Path) -> None:
    require_browser()
    logs = [log_of(cluster, jobs=10, run=f"{cluster}/easy") for cluster in ("kth", "ctc")]

    async def go() -> None:
        page = LivePage(LiveRuns())
        for log in logs:
            for envelope in log[:-1]:
                page.runs.push(envelope)
        async with browser(tmp_path) as tab:
            async with listening(page.application(), "127.0.0.1", 0) as runner:
                port = runner.addresses[0][1]
                await tab.open(address_of(runner))
                await tab.wait_for("document.getElementById('title').textContent === 'ctc'")
                await tab.evaluate(
                    "const runs = document.getElementById('runs');"
                    "runs.value = 'kth/easy'; runs.dispatchEvent(new Event('change'))"
                )
                await tab.wait_for("document.getElementById('title').textContent === 'kth'")
                page.end()
            await tab.wait_for("document.getElementById('connection').className === 'lost'")
            again = LivePage(page.runs)
            async with listening(again.application(), "127.0.0.1", port):
                await tab.wait_for("document.getElementById('connection').className === 'live'")
                assert await tab.evaluate("document.getElementById('title').textContent") == "kth"
                again.end()

    asyncio.run(go())
