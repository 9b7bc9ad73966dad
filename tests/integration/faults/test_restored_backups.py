"""Servers that begin again with earlier copies, as docs/operations.md says: the same decisions, byte for byte."""

import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from shadowtime.stack.servers.ports import HOST, free_port
from shadowtime.stack.servers.redis_server import BINARY
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.integration.faults.dead_letters import dead_letters
from tests.support.embedded import assert_complete, embedded
from tests.support.patience import PATIENCE
from tests.support.processes import wait_until
from tests.support.real_servers import require
from tests.support.workers import Workers

ARGUMENTS = ["--jobs", "400"]
PACE = ["--speed", "10000"]
RUN = "copied"


def client(port: int, *words: str) -> str:
    command = ["redis-cli", "-h", HOST, "-p", str(port), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE).stdout.strip()


def stop(workers: Workers) -> None:
    for process in (*workers.processes.values(), *workers.replays):
        process.send_signal(signal.SIGKILL)
        process.wait()


def put_back(server: Kafka | Redis, copy: Path) -> None:
    shutil.rmtree(server.folder / "data")
    shutil.copytree(copy, server.folder / "data")


def restore_dump(redis: Redis, dump: Path) -> None:
    """Restore a file of BGSAVE: Redis reads it without `appendonly` only, and then writes its log anew."""
    data = redis.folder / "data"
    shutil.rmtree(data)
    data.mkdir()
    shutil.copy(dump, data / "dump.rdb")
    port = free_port()
    command = [BINARY, "--dir", str(data), "--bind", HOST, "--port", str(port), "--appendonly", "no", "--save", ""]
    once = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        time.sleep(1.0)
        assert client(port, "config", "set", "appendonly", "yes") == "OK"
        wait_until(lambda: "aof_rewrite_in_progress:0" in client(port, "info", "persistence"), "not rewritten")
    finally:
        once.terminate()
        once.wait(PATIENCE)


@pytest.mark.nightly
@pytest.mark.parametrize("kept", ["redis-saved-while-it-ran", "both-copied-while-stopped"])
def test_a_run_continues_from_copies_of_a_third_of_it(tmp_path: Path, kept: str) -> None:
    require(Kafka)
    require(Redis)
    expected = embedded(*ARGUMENTS)
    path, copies = tmp_path / "kafka.jsonl", tmp_path / "copies"
    copies.mkdir()
    with (
        Kafka(tmp_path / "kafka") as kafka,
        Redis(tmp_path / "redis") as redis,
        Workers(kafka, redis, tmp_path, per_stage=1) as workers,
    ):
        workers.replay(RUN, path, *ARGUMENTS, *PACE)
        workers.wait_for_decisions(RUN, 200)
        if kept.startswith("redis"):
            client(redis.port, "bgsave")
            wait_until(lambda: "rdb_bgsave_in_progress:0" in client(redis.port, "info", "persistence"), "not saved")
            shutil.copy(redis.folder / "data" / "dump.rdb", copies)
        else:
            stop(workers)
            redis.stop()
            kafka.stop()
            shutil.copytree(redis.folder / "data", copies / "redis")
            shutil.copytree(kafka.folder / "data", copies / "kafka")
            kafka.start()
            redis.start()
            workers.tend()
            workers.replay(RUN, path, *ARGUMENTS, *PACE)
        workers.wait_for_decisions(RUN, 400)
        stop(workers)
        redis.kill()
        if kept.startswith("redis"):
            restore_dump(redis, copies / "dump.rdb")
        else:
            kafka.kill()
            put_back(redis, copies / "redis")
            put_back(kafka, copies / "kafka")
            kafka.start()
        redis.start()
        assert int(client(redis.port, "dbsize")) > 0
        workers.tend()
        replay = workers.replay(RUN, path, *ARGUMENTS)
        workers.finish(replay, PATIENCE)
        assert path.read_bytes() == expected, workers.logs()
        assert_complete(workers.kafka_settings, RUN)


@pytest.mark.nightly
def test_a_kafka_older_than_redis_is_reported_and_new_runs_are_right(tmp_path: Path) -> None:
    require(Kafka)
    require(Redis)
    expected = embedded(*ARGUMENTS)
    copy = tmp_path / "copy"
    with (
        Kafka(tmp_path / "kafka") as kafka,
        Redis(tmp_path / "redis") as redis,
        Workers(kafka, redis, tmp_path, per_stage=1) as workers,
    ):
        workers.replay(RUN, tmp_path / "lost.jsonl", *ARGUMENTS, *PACE)
        workers.wait_for_decisions(RUN, 200)
        stop(workers)
        kafka.stop()
        shutil.copytree(kafka.folder / "data", copy)
        kafka.start()
        workers.tend()
        workers.replay(RUN, tmp_path / "lost.jsonl", *ARGUMENTS, *PACE)
        workers.wait_for_decisions(RUN, 400)
        stop(workers)
        kafka.kill()
        put_back(kafka, copy)
        kafka.start()
        workers.tend()
        replay = workers.replay("new", tmp_path / "new.jsonl", *ARGUMENTS)
        workers.finish(replay, PATIENCE)
        assert (tmp_path / "new.jsonl").read_bytes() == expected, workers.logs()
        assert_complete(workers.kafka_settings, "new")
        letters = dead_letters(workers.kafka_settings, 1)
        (letter,) = letters
        assert "the log ends before offset" in letter["reason"]
