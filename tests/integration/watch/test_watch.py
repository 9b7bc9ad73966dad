"""The command `watch`, on a terminal and in a pipe."""

import asyncio
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import orjson
import pytest

from shadowtime.services.follower.io.follower import STORE
from shadowtime.services.processes.watch import KINDS
from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.streaming.kafka import clients as bus
from shadowtime.shared.streaming.kafka import topic_admin
from shadowtime.shared.streaming.protocols import Transaction
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.state.redis_client import connect
from shadowtime.shared.streaming.state.redis_store import RedisStore
from shadowtime.stack.servers.ports import free_port
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.support.forked import run_forked
from tests.support.patience import PATIENCE
from tests.support.watched import envelopes


@pytest.fixture(scope="module")
def settings(kafka: Kafka) -> Settings:
    """A topic with one run of its own on it."""
    settings = Settings(kafka_bootstrap=kafka.address)

    async def publish() -> None:
        partitions = await topic_admin.prepare_topics(settings)
        producer = bus.producer(settings)
        await producer.start()
        for each in envelopes("watched", "watched"):
            place = bus.partition_of("watched", partitions)
            await producer.send_and_wait("scores", each.to_bytes(), b"watched", place)
        await producer.stop()

    asyncio.run(publish())
    return settings


def command(settings: Settings, *arguments: str) -> list[str]:
    options = ["--beginning", f"--kafka-bootstrap={settings.kafka_bootstrap}", "--cluster=watched"]
    return [sys.executable, "-m", "shadowtime", "watch", "scores", *options, *arguments]


def test_json_lines_into_a_pipe(settings: Settings) -> None:
    done = subprocess.run(
        command(settings, "--user=8", "--count=4"), cwd=ROOT, capture_output=True, timeout=PATIENCE, check=True
    )
    found = [orjson.loads(line) for line in done.stdout.splitlines()]
    assert [each["sequence"] for each in found] == [2, 4, 5, 6]
    assert done.stderr == b""


def test_names_of_a_followed_cluster_are_read_from_redis(
    settings: Settings, redis_server: Redis, terminal: tuple[int, int]
) -> None:
    stored = settings.model_copy(update={"redis_url": redis_server.url})

    async def store() -> None:
        client = connect(stored)
        names = {"user:alice": b"8", "user:bob": b"7"}
        await RedisStore(client, STORE).commit(Transaction("watched", -1, 1, 1, 0, b"{}", (), (), 0, read_model=names))
        await client.aclose()

    asyncio.run(store())
    by_name = command(settings, "--user=alice", "--count=4", f"--redis-url={redis_server.url}")
    done = subprocess.run(by_name, cwd=ROOT, capture_output=True, timeout=PATIENCE, check=True)
    assert [orjson.loads(line)["sequence"] for line in done.stdout.splitlines()] == [2, 4, 5, 6]
    ours, theirs = terminal
    away = command(settings, "--count=8", f"--redis-url=redis://127.0.0.1:{free_port()}")
    with subprocess.Popen(away, cwd=ROOT, stdout=theirs, stderr=subprocess.PIPE) as process:
        os.close(theirs)
        assert "job 2" in read_until(ours, "completed after 30 s")  # without Redis there are numbers
        assert process.wait(timeout=PATIENCE) == 0


def read_until(descriptor: int, wanted: str) -> str:
    found, until = "", time.monotonic() + PATIENCE
    while wanted not in found:
        assert time.monotonic() < until, found
        found += os.read(descriptor, 4096).decode()
    return found


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    ours, theirs = pty.openpty()
    yield ours, theirs
    os.close(ours)


def test_sentences_on_a_terminal_and_ctrl_c_is_quiet(settings: Settings, terminal: tuple[int, int]) -> None:
    ours, theirs = terminal
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen(
        command(settings), cwd=ROOT, stdout=theirs, stderr=subprocess.PIPE, env=environment
    ) as process:
        os.close(theirs)
        shown = read_until(ours, "completed after 30 s")
        assert "the run begins: 16 procs; easy" in shown
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert process.wait(timeout=PATIENCE) == 130


def test_json_on_a_terminal_where_asked_for(settings: Settings, terminal: tuple[int, int]) -> None:
    ours, theirs = terminal
    with subprocess.Popen(command(settings, "--json", "--count=1"), cwd=ROOT, stdout=theirs) as process:
        os.close(theirs)
        assert '"kind":"ClusterOpened"' in read_until(ours, "\n")
        assert process.wait(timeout=PATIENCE) == 0


def test_a_reader_that_goes_away_ends_it_quietly(settings: Settings) -> None:
    with subprocess.Popen(command(settings), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=PATIENCE) == 0


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["decision"], "unknown topic 'decision'; did you mean 'decisions'? known: jobs, "),
        (["dead-letters", "--user=3"], "dead letters cannot be selected by cluster"),
        (
            ["decisions", "--kind=decided"],
            f"unknown kind 'decided' of events; did you mean 'Decided'? known: {', '.join(KINDS)}",
        ),
        (["decisions", f"--kafka-bootstrap=127.0.0.1:{free_port()}", "--connect-seconds=0.5"], "cannot be used"),
    ],
)
def test_what_cannot_be_watched_is_told_in_a_line(arguments: list[str], reason: str) -> None:
    done = run_forked("watch", *arguments)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert reason in line
