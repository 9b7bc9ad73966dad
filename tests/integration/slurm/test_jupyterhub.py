"""Waiting notebooks of a real JupyterHub on a real Slurm: their users see when they are expected to start."""

import asyncio
import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from shadowtime.stack.servers.servers import Kafka, Redis
from tests.integration.live.live_command import live
from tests.integration.slurm.notebook_hub import Notebook, NotebookHub, no_hub, notebook_hub
from tests.support.browser import browser, require_browser
from tests.support.follower_process import following
from tests.support.real_servers import require_reason
from tests.support.slurm_cluster import USERS, SlurmCluster, unavailable
from tests.support.workers import Workers

pytestmark = pytest.mark.nightly

NOTEBOOKS = int(os.environ.get("SHADOWTIME_NOTEBOOKS", "3"))
PAST = float(os.environ.get("SHADOWTIME_PAST", "60"))
"""Seconds in which other jobs wait and run before the first notebook."""

POLICY = "cautious:queue=priority,forecast=calibrated"
TRIES = 5
SEEN = """document.querySelector('#progress-message')?.textContent.match(/^waiting: .*/)?.[0]
    ?? (location.pathname.startsWith('/user/') && 'started')"""
WAITING = 8
"""Other jobs that wait at any time."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmCluster]:
    require_reason(unavailable())
    require_reason(no_hub(USERS[0]))
    with SlurmCluster(2) as cluster:
        yield cluster


@contextmanager
def busy(cluster: SlurmCluster) -> Iterator[None]:
    """Let other users' jobs wait and run while the block lasts."""
    ended = threading.Event()

    def submit() -> None:
        chance = random.Random(52)
        while not ended.wait(1):
            waiting = len(cluster.run("squeue", "-h", "-t", "PD", "-o", "%i", check=False).split())
            for _ in range(WAITING - waiting):
                size, seconds = chance.choice((1, 1, 2, 2, 4)), chance.randint(20, 60)
                user, limit = chance.choice(USERS), chance.choice((2, 2, 3, 5))
                cluster.submit(user, f"other{seconds // 20}", f"-n{size}", f"-t{limit}", wrap=f"sleep {seconds}")

    thread = threading.Thread(target=submit)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        cluster.run("scancel", "--state=PENDING", "--name=other1,other2,other3", check=False)


def portal(folder: Path) -> tuple[Path, Path]:
    """Return the settings of the live page for the hub, where users see their own jobs only, and its token."""
    token, access = folder / "token", folder / "access.toml"
    token.write_text("p" * 32)
    access.write_text(f'sees = "own"\n[portals.hub]\ntoken_file = "{token}"\n')
    return access, token


def table(notebooks: list[Notebook]) -> str:
    """Return what the users saw at first and at last, and when the servers really started."""
    rows = ["| job | after | the user saw | it really started after |", "|---|---|---|---|"]
    for each in notebooks:
        for shown in each.lines[:1] + each.lines[1:][-1:]:
            after = shown.time - each.submitted
            rows.append(f"| {each.job} | {after:.0f} s | {shown.message} | {each.started - each.submitted} s |")
        if not each.lines:
            rows.append(f"| {each.job} | | {each.shown[-2].message} | {each.started - each.submitted} s |")
    return "\n".join(rows)


async def as_seen(hub: NotebookHub, user: str, folder: Path) -> None:
    """Start servers in a real browser until the page of one has its expected start: some start at once."""
    async with browser(folder) as page:
        await page.open(f"{hub.url}hub/login")
        login = f"document.querySelector('#username_input').value = '{user}'; document.querySelector('form').submit()"
        await page.evaluate(login)
        await page.wait_for("document.querySelector('#start, #progress-message') !== null")
        for _ in range(TRIES):
            await page.open(f"{hub.url}hub/spawn")
            if (line := await page.wait_for(SEEN)) != "started":
                await page.whole(folder / "pending.png")
                print(line)
                await hub.stop(user)
                return
            await hub.stop(user)
    raise AssertionError(f"each of {TRIES} servers started at once")


def test_a_waiting_notebook_says_when_it_is_expected_to_start(
    cluster: SlurmCluster, kafka: Kafka, redis_server: Redis, tmp_path: Path
) -> None:
    require_browser()
    access, token = portal(tmp_path)

    async def start(hub: NotebookHub, number: int, users: dict[str, asyncio.Lock]) -> Notebook:
        user = USERS[number % len(USERS)]
        await asyncio.sleep(20 * number)
        async with users[user]:
            return await hub.start(user)

    async def go() -> None:
        options = (f"--redis-url={redis_server.url}", f"--access={access}")
        async with (
            live(follower.settings, tmp_path, *options) as url,
            notebook_hub(cluster, tmp_path, url, token) as hub,
        ):
            users = {user: asyncio.Lock() for user in USERS}
            for user in USERS:
                await hub.call("POST", f"users/{user}")
            notebooks = await asyncio.gather(*(start(hub, number, users) for number in range(NOTEBOOKS)))
            print(table(notebooks))
            for each in notebooks:
                assert each.lines or each.started - each.submitted < 30, each
                assert all(shown.message.isprintable() for shown in each.lines)
            assert any(each.lines for each in notebooks)
            await as_seen(hub, USERS[0], tmp_path)
        async with notebook_hub(cluster, tmp_path, url, token) as hub:  # the live page has ended
            notebook = await hub.start(USERS[1])
            assert notebook.lines == []
            log = hub.log.read_text()
            assert log.count("Shadowtime has no expected start") == 1
            assert token.read_text() not in log
            assert "Traceback" not in log

    with (
        Workers(kafka, redis_server, tmp_path),
        following(cluster, kafka, redis_server, tmp_path / "follower.log", POLICY, "shadow") as follower,
        busy(cluster),
    ):
        time.sleep(PAST)
        follower.wait_until_told(int(time.time()))
        asyncio.run(go())
