"""The command `queue`, from real Redis: names, widths, JSON and CSV, and 10,000 waiting jobs."""

import asyncio
import os
import subprocess
import time
from typing import Any

import orjson
import pytest

from shadowtime.services.explained import EXPLAINED
from shadowtime.services.processes.ask.cluster_queue import ClusterQueues, QueueQuestion
from shadowtime.shared.streaming.protocols import Transaction
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.state.redis_client import connect
from shadowtime.shared.streaming.state.redis_store import RedisStore
from shadowtime.shared.streaming.state.run_follower import RedisReader
from shadowtime.stack.servers.servers import Redis
from tests.support.crowded import NAMES, RUN, Crowded
from tests.support.forked import run_forked

WAITING = 10_000


async def store(redis: Redis, crowded: Crowded) -> None:
    client = connect(Settings(redis_url=redis.url))
    try:
        await crowded.store(RedisStore(client, EXPLAINED.name))
        names = RedisStore(client, "follow")
        await names.commit(Transaction(RUN, -1, 1, 1, 0, b"{}", (), (), 0, read_model=NAMES | {"job_name:x": b"1"}))
    finally:
        await client.aclose()


def command(redis: Redis, *options: str, name: str = "queue") -> "subprocess.CompletedProcess[str]":
    environment = os.environ | {"SHADOWTIME_REDIS_URL": redis.url, "COLUMNS": "80"}
    return run_forked(name, *options, environment=environment)


def test_by_command_line(empty_redis: Redis) -> None:
    asyncio.run(store(empty_redis, Crowded()))
    everyone = command(empty_redis)
    assert everyone.returncode == 0, everyone.stderr
    lines = everyone.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert "120 waiting, 50 running" in lines[0]
    answer: Any = orjson.loads(command(empty_redis, "mine", "--user=alice", "--partition=gpu", "--json").stdout)
    assert {(row["user"], row["partition"]) for row in answer["waiting"]} == {("alice", "gpu")}
    row = answer["waiting"][7]
    why: Any = orjson.loads(command(empty_redis, "--cluster=mine", "--job", row["job_id"], "--json", name="ask").stdout)
    assert (why["starts"], why["job_number"], why["job_id"]) == (row["starts"], row["job_number"], row["job_id"])
    assert len(command(empty_redis, "mine", "--csv").stdout.splitlines()) == 171
    for options, reason in (
        (["mine", "--user=bob"], "error: --user: no user 'bob' has had a job yet; known: a.name"),
        (["other"], "error: CLUSTER: there is no cluster 'other'; known: mine"),
        (["mine", "--partition=big"], "error: --partition: no partition 'big' has had a job yet"),
        (["mine", "--sort=age"], "error: --sort 'age': unknown order; known: queue, start"),
        (["mine", "--me", "--user=bob"], "error: --me and --user exclude each other"),
        (["mine", "--csv", "--json"], "error: expected one of --json, --csv and --watch"),
    ):
        wrong = command(empty_redis, *options)
        assert (wrong.returncode, wrong.stderr.startswith(reason)) == (2, True), wrong.stderr


@pytest.mark.nightly
def test_ten_thousand_waiting_jobs_take_seconds(empty_redis: Redis) -> None:
    """A second on an idle core; the limit leaves room for a busy machine."""

    async def ask() -> float:
        await store(empty_redis, Crowded(WAITING))
        client = connect(Settings(redis_url=empty_redis.url))
        try:
            answers = ClusterQueues(EXPLAINED, RedisReader(client, EXPLAINED.name))
            await answers.queue(QueueQuestion())  # kernels are compiled
            begin = time.process_time()
            answer = await answers.queue(QueueQuestion())
            assert len(answer.waiting) == WAITING
            return time.process_time() - begin
        finally:
            await client.aclose()

    assert asyncio.run(ask()) < 5.0
