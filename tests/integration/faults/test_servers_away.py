"""Kafka and Redis away: at the start a clear error, later the worker goes on by itself when they are back."""

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shadowtime.services.pipeline import STAGES
from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.messages.envelope import Envelope, SchedulingPoint
from shadowtime.shared.stages.snapshot_head import SNAPSHOT_SCHEMA
from shadowtime.shared.streaming.kafka.clients import partition_of
from shadowtime.shared.streaming.protocols import Transaction
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.state.redis_client import connect
from shadowtime.shared.streaming.state.redis_store import RedisStore
from shadowtime.shared.streaming.worker.faust_app import STOP_SECONDS
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.integration.faults.dead_letters import dead_letters, publish
from tests.support.embedded import embedded
from tests.support.patience import PATIENCE
from tests.support.real_servers import require
from tests.support.topic_logs import sequences, without_duplicates
from tests.support.workers import Workers

NOWHERE = "127.0.0.1:1"


def worker(*flags: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "shadowtime", "serve", "scheduler", "--web-port=0", *flags]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)


def test_kafka_unreachable_at_the_start() -> None:
    ended = worker(f"--kafka-bootstrap={NOWHERE}")
    assert ended.returncode == 2
    assert f"Kafka at {NOWHERE} cannot be used" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_redis_unreachable_at_the_start(kafka: Kafka) -> None:
    ended = worker(f"--kafka-bootstrap={kafka.address}", f"--redis-url=redis://{NOWHERE}/0")
    assert ended.returncode == 2
    assert "Redis cannot be used" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_replay_without_kafka() -> None:
    command = [
        sys.executable,
        "-m",
        "shadowtime",
        "replay",
        "--transport",
        "kafka",
        "--set",
        f"kafka-bootstrap={NOWHERE}",
    ]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 2
    assert f"Kafka at {NOWHERE} cannot be used" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_replay_without_workers_names_the_remedy(kafka: Kafka) -> None:
    settings = ["--set", f"kafka-bootstrap={kafka.address}", "--set", "barrier-seconds=2"]
    command = [sys.executable, "-m", "shadowtime", "replay", "--transport", "kafka", "--jobs", "5", *settings]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 2
    assert "did not arrive within 2 s; check that all stages run" in ended.stderr


@pytest.mark.parametrize("seconds", [4, pytest.param(30, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("lost", ["kafka", "redis"])
def test_lost_in_the_middle_of_a_run(tmp_path: Path, lost: str, seconds: int) -> None:
    require(Kafka)
    require(Redis)
    arguments = ["--jobs", "150"]
    expected = embedded(*arguments)
    with (
        Kafka(tmp_path / "kafka") as kafka,
        Redis(tmp_path / "redis") as redis,
        Workers(kafka, redis, tmp_path) as workers,
    ):
        replay = workers.replay("away", tmp_path / "decisions.jsonl", *arguments)
        workers.wait_for_decisions("away")
        assert replay.poll() is None, "the replay ended before anything was lost"
        server: Kafka | Redis = kafka if lost == "kafka" else redis
        server.stop()
        time.sleep(seconds)
        server.start()
        workers.finish(replay)
        assert (tmp_path / "decisions.jsonl").read_bytes() == expected


@pytest.mark.nightly
def test_a_worker_ends_although_its_servers_are_gone(tmp_path: Path) -> None:
    require(Kafka)
    require(Redis)
    with (
        Kafka(tmp_path / "kafka") as kafka,
        Redis(tmp_path / "redis") as redis,
        Workers(kafka, redis, tmp_path, typed=True) as workers,
    ):
        workers.replay("gone", tmp_path / "decisions.jsonl", "--jobs", "150")
        workers.wait_for_decisions("gone")
        kafka.kill()
        redis.kill()
        until = time.monotonic() + 30 + STOP_SECONDS
        for name in workers.names:
            workers.signal(name, signal.SIGTERM)
        for name in workers.names:
            workers.processes[name].wait(until - time.monotonic())


@pytest.mark.nightly
def test_redis_full_stalls_and_goes_on(tmp_path: Path) -> None:
    require(Kafka)
    require(Redis)
    arguments = ["--jobs", "250"]
    expected = embedded(*arguments)
    with (
        Kafka(tmp_path / "kafka") as kafka,
        Redis(tmp_path / "redis", settings={"maxmemory-policy": "noeviction"}) as redis,
        Workers(kafka, redis, tmp_path) as workers,
    ):

        async def set_memory(limit: str) -> None:
            client = connect(Settings(redis_url=redis.url))
            await client.config_set("maxmemory", limit)
            await client.aclose()

        replay = workers.replay("full", tmp_path / "decisions.jsonl", *arguments)
        workers.wait_for_decisions("full")
        asyncio.run(set_memory("1mb"))
        time.sleep(4)
        assert replay.poll() is None
        assert "maxmemory" in workers.logs()
        asyncio.run(set_memory("0"))
        workers.finish(replay)
        assert (tmp_path / "decisions.jsonl").read_bytes() == expected


@pytest.mark.nightly
def test_redis_lost_altogether_is_rebuilt(tmp_path: Path) -> None:
    require(Kafka)
    require(Redis)
    arguments = ["--jobs", "250"]
    expected = embedded(*arguments)
    with Kafka(tmp_path / "kafka") as kafka, Redis(tmp_path / "redis") as redis:
        settings = Settings(kafka_bootstrap=kafka.address, redis_url=redis.url)
        with Workers(kafka, redis, tmp_path) as workers:
            replay = workers.replay("lost", tmp_path / "decisions.jsonl", *arguments)
            workers.wait_for_decisions("lost")
            assert replay.poll() is None
        replay.kill()
        replay.wait()

        async def lose() -> None:
            client = connect(settings)
            await client.flushall()
            await client.aclose()

        asyncio.run(lose())
        for stage in STAGES:
            command = [sys.executable, "-m", "shadowtime", "rebuild", stage.name]
            flags = [f"--kafka-bootstrap={kafka.address}", f"--redis-url={redis.url}"]
            ended = subprocess.run([*command, *flags], cwd=ROOT, capture_output=True, text=True, check=False)
            assert ended.returncode == 0, ended.stderr
            assert "run lost rebuilt up to sequence" in ended.stderr
        with Workers(kafka, redis, tmp_path) as workers:
            workers.finish(workers.replay("lost", tmp_path / "decisions.jsonl", *arguments))
        assert (tmp_path / "decisions.jsonl").read_bytes() == expected
        found = sequences(settings, "lost", partition_of("lost", settings.partitions))
        assert len({len(without_duplicates(numbers)) for numbers in found.values()}) == 1


@pytest.mark.nightly
def test_sigterm_under_load_ends_cleanly(kafka: Kafka, redis_server: Redis, tmp_path: Path) -> None:
    with Workers(kafka, redis_server, tmp_path, typed=True) as workers:
        replay = workers.replay("sigterm", tmp_path / "decisions.jsonl", "--jobs", "2000")
        workers.wait_for_decisions("sigterm")
        assert replay.poll() is None
        for name in workers.names:
            workers.signal(name, signal.SIGTERM)
        codes = {name: process.wait(timeout=PATIENCE) for name, process in workers.processes.items()}
        assert codes == dict.fromkeys(codes, 0), workers.logs()
        replay.send_signal(signal.SIGINT)
        assert replay.wait(timeout=PATIENCE) == 130
        assert not (tmp_path / "decisions.jsonl").exists()
        assert "Traceback" not in workers.logs()


def test_a_snapshot_of_another_schema_quarantines_its_run_with_the_remedy(kafka: Kafka, tmp_path: Path) -> None:
    require(Redis)
    with Redis(tmp_path / "redis") as redis:
        with Workers(kafka, redis, tmp_path, snapshot_every="10") as workers:
            workers.finish(workers.replay("old", tmp_path / "decisions.jsonl", "--jobs", "20"))

        async def age() -> int:
            client = connect(Settings(redis_url=redis.url))
            store = RedisStore(client, "scheduler")
            saved = await store.load("old")
            assert saved is not None
            assert saved.snapshot is not None
            older = saved.snapshot.replace(f'"schema":{SNAPSHOT_SCHEMA}'.encode(), b'"schema":0')
            await store.forget("old")
            place = (saved.sequence, saved.offset, saved.partition)
            await store.commit(Transaction("old", -1, *place, older, (), (), 0, log=saved.log))
            await client.aclose()
            return saved.sequence

        following = Envelope(run="old", sequence=asyncio.run(age()) + 1, event=SchedulingPoint(time=10**9))
        settings = Settings(kafka_bootstrap=kafka.address)
        publish(settings, "wait-bounds", "old", [following.to_bytes()])
        workers = Workers(kafka, redis, tmp_path)
        workers.names = ["scheduler-0"]
        with workers:
            (letter,) = dead_letters(settings, 1, reason="schema 0")
            assert workers.processes["scheduler-0"].poll() is None
    assert f"the snapshot has schema 0, expected {SNAPSHOT_SCHEMA}" in letter["reason"]
    assert "shadowtime rebuild scheduler --run 'old'" in letter["reason"]
