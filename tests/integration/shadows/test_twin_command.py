"""`shadowtime twin` over a real Redis."""

import asyncio
import json
import os
import re
import subprocess
from pathlib import Path

import redis.asyncio as client

from shadowtime.services.processes import NAMES_OF
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


async def name(url: str, run: str, names: dict[str, bytes]) -> None:
    """Store names as a follower does."""
    connection = client.Redis.from_url(url)
    await RedisStore(connection, NAMES_OF).commit(Transaction(run, -1, 0, 0, 0, b"{}", (), (), 0, read_model=names))
    await connection.aclose()


def test_it_tells_what_shadows_keep(tmp_path: Path) -> None:
    require(Redis)
    with Redis(tmp_path / "redis") as redis:
        none = twin(redis.url, "kth")
        assert none.returncode == 2
        assert "cluster 'kth' has no shadow; clusters with shadows: none" in none.stderr
        asyncio.run(keep(redis.url, "kth/live/shadow/best", stored(100)))
        told = twin(redis.url, "kth", "--users", "--classes")
        assert told.returncode == 0, told.stderr
        assert "best: waits 50 % shorter (-50 to -50 %); real since 12 Dec" in told.stdout
        assert all(len(line) <= 80 for line in told.stdout.splitlines())
        found = json.loads(twin(redis.url, "kth/live", "--json").stdout)
        assert found["shadows"]["best"]["all"]["jobs"] == 990
        assert found["users"] == {}

        asyncio.run(name(redis.url, "kth/live", {"user:alice": b"7", "user:bob": b"8"}))
        named = twin(redis.url, "kth", "--users").stdout
        assert re.search(r"^alice +33 ", named, re.MULTILINE), named
        users = json.loads(twin(redis.url, "kth/live", "--json").stdout)["users"]
        assert (users["7"], users["9"]) == ("alice", "9")
        assert "clusters with shadows: kth" in twin(redis.url, "ctc").stderr
