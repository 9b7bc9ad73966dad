"""Messages that go out at the same time lie in common batches, and arrive in the order of each run."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError, MessageSizeTooLargeError, ProducerClosed

from shadowtime.services.pipeline import STAGES
from shadowtime.shared.errors import MessageRejected
from shadowtime.shared.stages.topics import SCORES
from shadowtime.shared.streaming.kafka import clients as bus
from shadowtime.shared.streaming.kafka import topic_admin
from shadowtime.shared.streaming.kafka.batch_sender import Sender
from shadowtime.shared.streaming.kafka.log_reader import read_log
from shadowtime.shared.streaming.kafka.stage_stream import KafkaStream
from shadowtime.shared.streaming.settings import Settings
from shadowtime.stack.servers.servers import Kafka

PROMPT = 4.0
"""Seconds that are less than a replaced producer is waited for."""


async def sender(settings: Settings) -> tuple[Sender, list[int]]:
    """Return a sender that is ready, and where it is noted how many messages each of its batches has."""
    await topic_admin.prepare_topics(settings)
    producer = bus.producer(settings)
    await producer.start()
    send_batch, batches = producer.send_batch, []

    async def noted(batch: Any, topic: str, *, partition: int) -> Any:
        batches.append(batch.record_count())
        return await send_batch(batch, topic, partition=partition)

    producer.send_batch = noted
    return Sender(producer, settings.max_output_bytes), batches


async def arrived(sending: Sender, partition: int, key: bytes, values: Sequence[bytes]) -> None:
    for delivery in await sending.send(SCORES, partition, key, [(value, 1_000) for value in values]):
        await delivery


def test_runs_that_send_at_the_same_time_share_a_batch_for_each_partition(kafka: Kafka) -> None:
    settings = Settings(kafka_bootstrap=kafka.address)
    keys = [b"sent-%d" % number for number in range(12)]

    async def work() -> None:
        sending, batches = await sender(settings)
        try:
            for turn in range(3):
                values = [b"%d" % (5 * turn + number) for number in range(5)]
                await asyncio.gather(*(arrived(sending, at % 2, key, values) for at, key in enumerate(keys)))
            await arrived(sending, 0, b"nothing", [])
        finally:
            await sending.producer.stop()
        assert batches == [30, 30] * 3
        for at, key in enumerate(keys):
            found = [each async for each in read_log(settings, SCORES, at % 2) if each.key == key]
            assert [each.value for each in found] == [b"%d" % number for number in range(15)]
            assert {each.timestamp for each in found} == {1_000}

    asyncio.run(work())


def test_what_does_not_fit_one_batch_lies_in_several(kafka: Kafka) -> None:
    settings = Settings(kafka_bootstrap=kafka.address)
    values = {key: [key + b"x" * size for size in (90_000, 150_000, 400_000, 9)] for key in (b"large-a", b"large-b")}

    async def work() -> None:
        sending, batches = await sender(settings)
        try:
            await asyncio.gather(*(arrived(sending, 1, key, its) for key, its in values.items()))
        finally:
            await sending.producer.stop()
        assert sum(batches) == 8
        assert len(batches) > 3
        for key, its in values.items():
            assert [each.value async for each in read_log(settings, SCORES, 1) if each.key == key] == its

    asyncio.run(work())


def test_whoever_sends_through_a_producer_that_is_closed_hears_it(kafka: Kafka) -> None:
    async def work() -> None:
        sending, _ = await sender(Settings(kafka_bootstrap=kafka.address))
        await arrived(sending, 0, b"a", [b"in time"])
        await sending.producer.stop()
        ends = await asyncio.gather(
            *(arrived(sending, 0, key, [b"late"]) for key in (b"a", b"b")), return_exceptions=True
        )
        assert [type(end) for end in ends] == [ProducerClosed] * 2
        with pytest.raises(KafkaError):
            await arrived(sending, 0, b"a", [b"later"])

    asyncio.run(work())


def test_one_that_is_too_large_or_not_waited_for_is_its_senders_alone(kafka: Kafka) -> None:
    settings = Settings(kafka_bootstrap=kafka.address)

    async def work() -> None:
        sending, _ = await sender(settings)
        large = b"x" * (settings.max_output_bytes + 1)
        try:
            ends = await asyncio.gather(
                *(arrived(sending, 0, key, [value]) for key, value in ((b"a", b"1"), (b"large", large), (b"c", b"2"))),
                return_exceptions=True,
            )
            assert [type(end) for end in ends] == [type(None), MessageSizeTooLargeError, type(None)]
            [one], [other] = await asyncio.gather(
                *(sending.send(SCORES, 0, key, [(b"3", None)]) for key in (b"a", b"c"))
            )
            asyncio.ensure_future(one).cancel()
            await other
        finally:
            await sending.producer.stop()

    asyncio.run(work())


def test_a_new_producer_does_not_wait_for_what_the_old_one_cannot_deliver(kafka: Kafka) -> None:
    """After a crash of Kafka, a worker waited for that until its watchdog ended it."""
    settings = Settings(kafka_bootstrap=kafka.address, watchdog_seconds=20)

    async def work() -> None:
        await topic_admin.prepare_topics(settings)
        stream = KafkaStream(STAGES[-1], settings)
        await stream.start()
        try:
            old = stream._sender.producer  # noqa: SLF001
            batch = old.create_batch()
            batch.append(timestamp=None, key=b"lost", value=b"lost")
            old._sender._muted_partitions.add(TopicPartition(SCORES, 1))  # noqa: SLF001
            lost = await old.send_batch(batch, SCORES, partition=1)
            async with asyncio.timeout(PROMPT):
                with pytest.raises(MessageRejected):
                    await stream.publish(0, "large", [bytes(2 * settings.max_output_bytes)], [None])
                await stream.publish(0, "small", [b"small"], [None])
            with pytest.raises(KafkaError, match="replaced"):
                await lost
        finally:
            await stream.stop()

    asyncio.run(work())
