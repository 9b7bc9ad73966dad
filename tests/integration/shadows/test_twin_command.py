"""`shadowtime twin` over a real Redis."""

import asyncio
import json
import os
import subprocess
from pathlib import Path

import redis.asyncio as client

from shadowtime.services.shadows.comparison.stored import STORE
from shadowtime.shared.streaming.protocols import Transaction
from shadowtime.shared.streaming.state.redis_store import RedisStore
from shadowtime.stack.servers.servers import Redis
from tests.support.forked import run_forked
from tests.support.real_servers import require
from tests.support.stored_shadows import stored


def twin(url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_forked("twin", *arguments, f"--redis-url={url}", environment=os.environ | {"COLUMNS": "80"})


async def keep(url: str, run: str, snapshot: bytes) -> None:
    connection = client.Redis.from_url(url)
    await RedisStore(connection, STORE).commit(Transaction(run, -1, 0, 0, 0, snapshot, (), (), 0))
    await connection.aclose()


def test_it_tells_what_shadows_keep(tmp_path: Path) -> None:
    require(Redis)
    with Redis(tmp_path / "redis") as redis:
        none = twin(redis.url, "kth")
        assert none.returncode == 2
        assert "cluster 'kth' has no shadow; clusters with one: none" in none.stderr
        asyncio.run(keep(redis.url, "kth/live/shadow/best", stored(100)))
        told = twin(redis.url, "kth", "--users", "--classes")
        assert told.returncode == 0, told.stderr
        assert "best: waits 50 % shorter (-50 to -50 %); real since 12 Dec" in told.stdout
        assert all(len(line) <= 80 for line in told.stdout.splitlines())
        found = json.loads(twin(redis.url, "kth/live", "--json").stdout)
        assert found["shadows"]["best"]["all"]["jobs"] == 990
        assert "clusters with one: kth" in twin(redis.url, "ctc").stderr
