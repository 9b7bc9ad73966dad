"""Batches of records that no producer of ours would make, on every topic: no reader ends, and the stream goes on."""

import asyncio
import os
import random
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from shadowtime.shared.stages.topics import DEAD_LETTERS, FLOW
from shadowtime.shared.streaming.kafka import partition_of
from shadowtime.shared.streaming.settings import Settings
from shadowtime.stack.servers.servers import Kafka, Redis, VictoriaMetrics
from tests.integration.faults.dead_letters import dead_letters, publish
from tests.support.embedded import embedded
from tests.support.forked import Forked
from tests.support.real_servers import require
from tests.support.stored_batches import HEADER, StoredBatchProducer, batch, mutated, packed, records, with_crc
from tests.support.workers import Workers


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[Kafka]:
    """A broker of its own: its topics are full of rubbish afterwards."""
    require(Kafka)
    with Kafka(tmp_path / "kafka") as server:
        yield server


def bad_header() -> bytes:
    """Return a batch of three records. The name of the second's header is not UTF-8."""
    plain = bytearray(batch(0, [b"{}"] * 3))
    plain[plain.index(b"name", plain.index(b"name") + 4)] = 0xFF
    return with_crc(plain)


def many_members(count: int) -> bytes:
    """Return a batch of one record, each byte of which is a member of gzip."""
    plain = batch(0, [b"x" * count])
    made = bytearray(packed(plain)[:HEADER])
    for byte in plain[HEADER:]:
        stream = zlib.compressobj(9, zlib.DEFLATED, 31)
        made += stream.compress(bytes([byte])) + stream.flush()
    return with_crc(made)


def foreign_offset() -> bytes:
    """Return a batch of one record that claims an offset 60 behind its own."""
    plain = bytearray(batch(0, [b"{}"]))
    place = plain.index(b"\x06kth", HEADER) - 1
    plain[place] = 120  # zigzag
    return with_crc(plain)


def send_all(kafka: Kafka, sent: list[tuple[str, int, bytes]]) -> list[int | None]:
    """Send batches to topics and partitions as they are. Return their offsets; None where Kafka refuses."""

    async def send() -> list[int | None]:
        offsets: list[int | None] = []
        async with StoredBatchProducer(Settings(kafka_bootstrap=kafka.address)) as producer:
            for start in range(0, len(sent), 100):
                offsets += await asyncio.gather(*(producer.send(*entry) for entry in sent[start : start + 100]))
        return offsets

    return asyncio.run(send())


def test_each_unreadable_batch_is_one_dead_letter(kafka: Kafka, redis_server: Redis, tmp_path: Path) -> None:
    settings, run = Settings(kafka_bootstrap=kafka.address), "behind-batches"
    publish(settings, FLOW[0], run, [b"{"])
    place = partition_of(run, settings.partitions)
    kinds = [bad_header(), many_members(20_000), foreign_offset()]
    sent = [(topic, place, stored) for topic in FLOW[:-1] for stored in kinds]
    offsets = send_all(kafka, sent)
    for (topic, _, stored), offset in zip(sent, offsets, strict=True):
        assert offset is not None or stored == kinds[-1], topic

    with Workers(kafka, redis_server, tmp_path) as workers:
        workers.finish(workers.replay(run, tmp_path / "decisions.jsonl", "--jobs", "40"))
        assert set(workers.starts.values()) == {1}, workers.logs()
    assert (tmp_path / "decisions.jsonl").read_bytes() == embedded("--jobs", "40")
    accepted = sum(offset is not None for offset in offsets)
    letters = dead_letters(settings, accepted, reason="cannot be read: ")
    assert {letter["topic"] for letter in letters} == set(FLOW[:-1])


@pytest.mark.nightly
def test_a_million_empty_records_in_a_batch_hold_nobody_up(kafka: Kafka, redis_server: Redis, tmp_path: Path) -> None:
    settings, run = Settings(kafka_bootstrap=kafka.address), "behind-empty"
    publish(settings, FLOW[0], run, [b"{"])
    plain = batch(0, [None] * 1_000_000, key=None, headers=())
    assert send_all(kafka, [(FLOW[0], partition_of(run, settings.partitions), packed(plain))]) != [None]
    with Workers(kafka, redis_server, tmp_path) as workers:
        workers.finish(workers.replay(run, tmp_path / "decisions.jsonl", "--jobs", "40"))
        assert set(workers.starts.values()) == {1}, workers.logs()
    assert (tmp_path / "decisions.jsonl").read_bytes() == embedded("--jobs", "40")


@pytest.mark.nightly
def test_every_reader_reads_on_behind_mutated_batches(kafka: Kafka, redis_server: Redis, tmp_path: Path) -> None:
    require(VictoriaMetrics)
    count = int(os.environ.get("SHADOWTIME_FUZZED_BATCHES", "100_000"))
    settings, run, chance = Settings(kafka_bootstrap=kafka.address), "behind-rubbish", random.Random(45)
    topics = [*FLOW, DEAD_LETTERS]
    publish(settings, FLOW[0], run, [b"{"])
    place = partition_of(run, settings.partitions)
    sent = []
    for _ in range(count):
        values = [chance.choice((b"{}", b"", None, b"x" * 30)) for _ in range(chance.randrange(1, 5))]
        sent.append((chance.choice(topics), place, mutated(batch(0, values, key=run.encode()), chance)))

    with VictoriaMetrics(tmp_path / "metrics") as store, Workers(kafka, redis_server, tmp_path) as workers:
        environment = {**workers.environment, "SHADOWTIME_VICTORIA_METRICS_URL": store.url}
        commands = [["live", "--port=0"], ["serve", "metrics"], *(["watch", topic, "--beginning"] for topic in topics)]
        with ExitStack() as ends:
            readers: list[Forked] = []
            for number, command in enumerate(commands):
                readers.append(Forked(command, environment, tmp_path / f"reader-{number}.log"))
                ends.callback(readers[-1].kill)
            offsets = send_all(kafka, sent)
            workers.finish(workers.replay(run, tmp_path / "decisions.jsonl", "--jobs", "40"), seconds=1500)
            ended = [command for command, reader in zip(commands, readers, strict=True) if reader.poll() is not None]
        assert not ended
        assert set(workers.starts.values()) == {1}, workers.logs()
    refused = [stored for (_, _, stored), offset in zip(sent, offsets, strict=True) if offset is None]
    print(f"{count - len(refused):,} of {count:,} batches were accepted")
    for stored in refused:
        _, behind = records(stored)
        assert behind > 0
    assert (tmp_path / "decisions.jsonl").read_bytes() == embedded("--jobs", "40")
    assert not [path.name for path in tmp_path.glob("*.log") if "Traceback" in path.read_text(errors="replace")]
