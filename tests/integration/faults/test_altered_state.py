"""State in Redis that somebody else changed is never used: the run is rebuilt from Kafka, and other runs go on."""

import asyncio
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import redis

from shadowtime.shared.messages import Envelope
from shadowtime.shared.stages.topics import DECISIONS, JOBS
from shadowtime.shared.streaming.kafka import clients as bus
from shadowtime.shared.streaming.kafka import topic_admin
from shadowtime.shared.streaming.kafka.log_reader import read_log
from shadowtime.shared.streaming.settings import Settings
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.integration.faults.dead_letters import dead_letters
from tests.support.patience import PATIENCE
from tests.support.real_servers import require
from tests.support.workers import Workers
from tests.unit.shared.streaming.worker_runs import events_of_a_run

STAGE, HONEST = "scheduler", "honest"

EVENTS = events_of_a_run(seed=45, jobs=40)
HALF = len(EVENTS) // 2

Change = Callable[[redis.Redis, Callable[[str], str]], object]


def entry(client: redis.Redis, key: Callable[[str], str], number: int) -> str:
    """Return an entry of the journal."""
    (text,) = client.lrange(key("journal"), number, number)
    return text.decode() if isinstance(text, bytes) else str(text)


CHANGES: dict[str, Change] = {
    "another-entry": lambda client, key: client.lset(key("journal"), 3, entry(client, key, 4)),
    "one-word-of-an-entry": lambda client, key: client.lset(
        key("journal"), 0, entry(client, key, 0).replace('"easy"', '"fcfs"')
    ),
    "no-journal": lambda client, key: client.delete(key("journal")),
    "no-state": lambda client, key: client.delete(key("state")),
    "no-outbox": lambda client, key: client.delete(key("outbox")),
    "position-back": lambda client, key: client.hset(key("state"), "sequence", HALF - 9),
    "position-as-text": lambda client, key: client.hset(key("state"), "sequence", "three"),
    "position-in-another-form": lambda client, key: client.hset(key("state"), "sequence", f"0{HALF - 1}"),
    "offset-ahead": lambda client, key: client.hset(key("state"), "offset", 10**9),
    "quarantined": lambda client, key: client.hset(key("state"), "quarantined", "because I say so"),
    "snapshot-of-rubbish": lambda client, key: client.hset(key("state"), "snapshot", b"\xff\x00"),
    "journal-of-another-type": lambda client, key: (client.delete(key("journal")), client.set(key("journal"), "x")),
    "state-of-another-type": lambda client, key: (client.delete(key("state")), client.set(key("state"), "x")),
    "outbox-of-another-type": lambda client, key: (client.delete(key("outbox")), client.set(key("outbox"), "x")),
}
"""Changes to the keys of a run. The stage notices each of them."""

HARMLESS: dict[str, Change] = {
    "attempts-of-another-type": lambda client, key: (client.delete(key("attempts")), client.set(key("attempts"), "x")),
    "attempts-as-text": lambda client, key: client.hset(key("attempts"), "count", "many"),
}
"""Changes to the count of attempts, which is no state. It begins again."""


def publish_all(settings: Settings, runs: Iterable[str], first: int, stop: int) -> None:
    """Publish these events of each run."""

    async def send() -> None:
        partitions = await topic_admin.prepare_topics(settings)
        async with bus.producer(settings) as producer:
            for at in range(first, stop):
                for run in runs:
                    value = Envelope(run=run, sequence=at, event=EVENTS[at]).to_bytes()
                    await producer.send(JOBS, value, run.encode(), bus.partition_of(run, partitions))

    asyncio.run(send())


def decisions(workers: Workers, settings: Settings, runs: Sequence[str], count: int) -> dict[str, list[object]]:
    """Wait until the scheduler has published `count` events of each run; return them, each once and in order."""

    async def read() -> dict[str, list[object]]:
        events: dict[str, list[object]] = {run: [] for run in runs}
        for partition in range(settings.partitions):
            async for record in read_log(settings, DECISIONS, partition):
                envelope = Envelope.from_bytes(record.value)
                if envelope.sequence == len(events[envelope.run]):
                    events[envelope.run].append(envelope.event)
        return events

    until = time.monotonic() + PATIENCE
    while min(map(len, (found := asyncio.run(read())).values())) < count:
        assert time.monotonic() < until, ({run: len(events) for run, events in found.items()}, workers.logs())
        workers.tend()
        time.sleep(0.5)
    return found


def test_an_altered_run_is_rebuilt(tmp_path: Path) -> None:
    require(Kafka)
    require(Redis)
    changes = CHANGES | HARMLESS
    with (
        Kafka(tmp_path / "kafka") as kafka,
        Redis(tmp_path / "redis") as redis_server,
        Workers(kafka, redis_server, tmp_path, state_secret="secret") as workers,
        redis.Redis.from_url(redis_server.url) as client,
    ):
        settings = Settings(kafka_bootstrap=kafka.address)
        runs = (HONEST, *changes)
        publish_all(settings, runs, 0, HALF)
        decisions(workers, settings, runs, HALF)
        (scheduler,) = (process for name, process in workers.processes.items() if name.startswith(STAGE))
        scheduler.send_signal(signal.SIGTERM)
        scheduler.wait()
        for run, change in changes.items():
            change(client, lambda part, run=run: f"shadowtime:{{{STAGE}}}:{part}:{run}")  # type: ignore[misc]
        client.sadd(f"shadowtime:{{{STAGE}}}:partition:0", b"\xff\xfe\x00")
        client.delete(f"shadowtime:{{{STAGE}}}:partition:1")
        client.set(f"shadowtime:{{{STAGE}}}:partition:1", "x")
        workers.tend()
        publish_all(settings, runs, HALF, len(EVENTS))
        found = decisions(workers, settings, runs, len(EVENTS))
        assert {run for run in runs if found[run] != found[HONEST]} == set()
        letters = dead_letters(settings, len(CHANGES), stage=STAGE, reason="in Redis is not what this stage has stored")
        assert {run for run in changes for letter in letters if f"run '{run}'" in letter["reason"]} == set(CHANGES)
        assert set(workers.starts.values()) == {1, 2}, workers.logs()
