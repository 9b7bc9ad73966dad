"""Messages that no stage can use: each is a dead letter with its place, and the stream goes on."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.record._crecords import default_records

from shadowtime.shared.bounds import MAX_UNPACKED
from shadowtime.shared.messages.envelope import (
    SCHEMA_VERSION,
    ClusterOpened,
    Envelope,
    Event,
    JobStarted,
    SchedulingPoint,
)
from shadowtime.shared.stages.topics import FLOW
from shadowtime.shared.streaming.kafka import clients as bus
from shadowtime.shared.streaming.kafka import topic_admin
from shadowtime.shared.streaming.settings import Settings
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.integration.faults.dead_letters import dead_letters, publish
from tests.support.embedded import embedded
from tests.support.patience import PATIENCE
from tests.support.workers import Workers

LIMIT = 20_000
"""Bytes that a worker takes here."""


@pytest.fixture(scope="module")
def settings(kafka: Kafka) -> Settings:
    return Settings(kafka_bootstrap=kafka.address)


@pytest.fixture(scope="module")
def workers(kafka: Kafka, redis_server: Redis, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    folder = tmp_path_factory.mktemp("workers")
    with Workers(kafka, redis_server, folder, max_message_bytes=str(LIMIT)) as running:
        yield running


def publish_packed(settings: Settings, topic: str, run: str, codec: str, value: bytes) -> None:
    """Publish one message in a packed batch."""

    async def send() -> None:
        partition = bus.partition_of(run, await topic_admin.prepare_topics(settings))
        producer = AIOKafkaProducer(
            bootstrap_servers=settings.kafka_bootstrap, compression_type=codec, max_request_size=2**30
        )
        async with producer:
            await producer.send_and_wait(topic, value, run.encode(), partition)

    asyncio.run(send())


def as_snappy(data: bytes) -> bytes:
    """Return at most 16 KiB as snappy does, without packing anything."""
    parts = [bytes(data)[at : at + 60] for at in range(0, len(data), 60)]
    literals = b"".join(bytes([(len(part) - 1) << 2]) + part for part in parts)
    return bytes([len(data) & 127 | 128, len(data) >> 7]) + literals


def assert_as_embedded(folder: Path, jobs: int) -> None:
    """Require of the decision log in a folder that it is that of the embedded pipeline."""
    assert (folder / "decisions.jsonl").read_bytes() == embedded("--jobs", str(jobs))


@pytest.mark.parametrize("topic", FLOW[:-1])
def test_malformed_oversized_and_foreign_messages(settings: Settings, workers: Workers, topic: str) -> None:
    most = LIMIT if topic == "jobs" else 8 * LIMIT  # a stage may say more than it is told
    foreign = Envelope(run="foreign", sequence=0, event=ClusterOpened(time=0, cluster="x", processors=1))
    values = [
        b"{not json",
        b"x" * (most + 1),
        foreign.model_dump_json().replace(f'"schema_version":{SCHEMA_VERSION}', '"schema_version":99').encode(),
    ]
    places = publish(settings, topic, "rubbish", values)
    letters = [dead_letters(settings, 1, **place)[0] for place in places]
    assert [letter["bytes"] for letter in letters] == [str(len(value)) for value in values]
    assert "not an envelope of this schema" in letters[0]["reason"]
    assert f"the limit is {most}" in letters[1]["reason"]
    assert "schema_version" in letters[2]["reason"]


def test_the_stream_goes_on_behind_bad_messages(settings: Settings, workers: Workers, tmp_path: Path) -> None:
    """On every topic, on the partition of the run, before it begins."""
    run = "after-rubbish"
    for topic in FLOW[:-1]:
        publish(settings, topic, run, [b"{", b"\x00" * 100])
    workers.finish(workers.replay(run, tmp_path / "decisions.jsonl", "--jobs", "40"))
    assert_as_embedded(tmp_path, 40)


def test_the_stream_goes_on_behind_packed_batches(
    settings: Settings, workers: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A codec that no reader knows ended the stage for good; a megabyte that is a gigabyte held it up."""
    compressors = AIOKafkaProducer._COMPRESSORS  # noqa: SLF001 - the one place where it looks for a codec
    monkeypatch.setitem(compressors, "snappy", (lambda: True, 2))
    monkeypatch.setattr("aiokafka.codec.has_snappy", lambda: True)
    monkeypatch.setattr(default_records, "snappy_encode", as_snappy)
    run = "after-batches"
    for topic in FLOW[:-1]:
        publish_packed(settings, topic, run, "snappy", bytes(200))
        publish_packed(settings, topic, run, "gzip", bytes(4 * MAX_UNPACKED))
    workers.finish(workers.replay(run, tmp_path / "decisions.jsonl", "--jobs", "40"))
    assert_as_embedded(tmp_path, 40)
    letters = dead_letters(settings, 2 * len(FLOW[:-1]), reason="cannot be read: ")
    assert {letter["topic"] for letter in letters} == set(FLOW[:-1])


def test_a_broken_rule_is_rejected_and_the_replay_stops_with_it(
    settings: Settings, workers: Workers, tmp_path: Path
) -> None:
    """Somebody else writes into the run's log: a start for a job never submitted."""
    run = "forged-start"
    opened = ClusterOpened(time=0, cluster="x", processors=8)
    events: list[Event] = [opened, JobStarted(time=1, job_number=77, processors=1), SchedulingPoint(time=1)]
    envelopes = [Envelope(run=run, sequence=number, event=event) for number, event in enumerate(events)]
    publish(settings, "jobs", run, [envelope.model_dump_json().encode() for envelope in envelopes])
    (letter,) = dead_letters(settings, 1, reason="job 77")
    assert letter["reason"] == "job 77, started at 1, neither waits nor runs"
    assert (letter["stage"], letter["topic"]) == ("runtime_distribution", "jobs")
    # The log of the run is not what this replay would tell: it says so and stops.
    process = workers.replay(run, tmp_path / "decisions.jsonl", "--jobs", "5")
    assert process.wait(timeout=PATIENCE) == 2
    assert "was opened with other settings" in workers.logs()


def test_forged_and_duplicate_sequences_change_nothing(settings: Settings, workers: Workers, tmp_path: Path) -> None:
    run = "forged-sequence"
    process = workers.replay(run, tmp_path / "decisions.jsonl", "--jobs", "300")
    workers.wait_for_decisions(run)
    point = SchedulingPoint(time=1)
    for topic in ("jobs", "wait-bounds"):
        forged = [Envelope(run=run, sequence=number, event=point) for number in (1_000_000, 0)]
        publish(settings, topic, run, [envelope.model_dump_json().encode() for envelope in forged])
    workers.finish(process)
    assert_as_embedded(tmp_path, 300)
    letters = dead_letters(settings, 2, reason=f"sequence 1000000 of run '{run}'")
    assert {letter["topic"] for letter in letters} == {"jobs", "wait-bounds"}
