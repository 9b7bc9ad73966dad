"""The command `ask --why`."""

import asyncio
import os
import subprocess

import pytest

from shadowtime.services.processes.ask.why import Why
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.state.redis_client import connect
from shadowtime.shared.streaming.state.redis_store import RedisStore
from shadowtime.stack.servers.servers import Redis
from tests.support.forked import run_forked
from tests.support.waiting_runs import EVENTS, SCHEDULER, write


def command(redis: Redis, *options: str) -> "subprocess.CompletedProcess[str]":
    return run_forked("ask", *options, environment=os.environ | {"SHADOWTIME_REDIS_URL": redis.url})


@pytest.mark.nightly
def test_by_command_line(redis_server: Redis) -> None:
    async def store() -> None:
        client = connect(Settings(redis_url=redis_server.url))
        try:
            await write(RedisStore(client, SCHEDULER.name), "why/run", "why", *EVENTS)
        finally:
            await client.aclose()

    asyncio.run(store())
    said = command(redis_server, "--cluster=why", "--job=3")
    assert said.returncode == 0, said.stderr
    assert "goes first and must not be delayed." in said.stdout
    told = Why.model_validate_json(command(redis_server, "--cluster=why", "--job=2", "--json").stdout)
    assert "It needs 8 procs, and 2 are free." in told.sentences
    missing = command(redis_server, "--cluster=why", "--job=77")
    assert missing.returncode != 0
    assert "--job: job 77 is unknown; run 'why/run': 2 wait (2, 3), 1 run (1)" in " ".join(missing.stderr.split())
    wrong = command(redis_server, "--cluster=why", "--job=3", "--processors=4")
    assert "--processors is about a new job, and --job about an existing job" in " ".join(wrong.stderr.split())
