"""A topic is followed from its beginning or its end; what a Kafka refuses is told, or waited for."""

import asyncio
from contextlib import aclosing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import KafkaError

from shadowtime.shared.errors import BusError
from shadowtime.shared.stages.topics import DEAD_LETTERS, WALLTIME_ADJUSTMENTS
from shadowtime.shared.streaming.kafka import clients as bus
from shadowtime.shared.streaming.kafka import topic_admin, topic_follower
from shadowtime.shared.streaming.kafka.log_reader import LogReader, read_log
from shadowtime.shared.streaming.kafka.topic_follower import KafkaFollower, TopicFollower, subscribe
from shadowtime.shared.streaming.settings import Settings
from shadowtime.stack.servers.servers import Kafka
from tests.support.patience import PATIENCE
from tests.support.real_servers import require
from tests.support.server_control import pause, resume

TOPIC = WALLTIME_ADJUSTMENTS


async def publish(settings: Settings, *values: bytes) -> None:
    producer = bus.producer(settings)
    await producer.start()
    try:
        for value in values:
            await producer.send_and_wait(TOPIC, value, b"key", 0)
    finally:
        await producer.stop()


async def next_values(follower: TopicFollower, count: int) -> list[bytes]:
    found: list[bytes] = []
    async with asyncio.timeout(PATIENCE):
        while len(found) < count:
            found += [record.value for record in await follower.next_batch(10, 0.2)]
    return found


def test_from_the_beginning_from_the_end_and_from_one_offset_to_another(tmp_path: Path) -> None:
    require(Kafka)
    with Kafka(tmp_path / "kafka") as kafka:  # its own: it reads all that was ever written to a topic
        follow_everything(Settings(kafka_bootstrap=kafka.address))


def follow_everything(settings: Settings) -> None:

    async def go() -> None:
        await topic_admin.prepare_topics(settings)
        first = len([record async for record in read_log(settings, TOPIC, 0)])
        await publish(settings, b"1", b"2", b"3")
        async with TopicFollower(settings, TOPIC) as tail, TopicFollower(settings, TOPIC, beginning=True) as whole:
            await publish(settings, b"4")
            assert await next_values(tail, 1) == [b"4"]
            assert (await next_values(whole, first + 4))[-4:] == [b"1", b"2", b"3", b"4"]
            await publish(settings, b"5")
            await tail.skip()
            await publish(settings, b"6")
            assert await next_values(tail, 1) == [b"6"]
        reading = LogReader(settings)
        try:
            part = [record.value async for some in reading.parts(TOPIC, 0, first + 1, first + 3) for record in some]
            assert part == [b"2", b"3"]
            assert [some async for some in reading.parts(TOPIC, 0, first + 6)] == []
        finally:
            await reading.stop()
        async with aclosing(subscribe(settings, TOPIC, beginning=True)) as batches:
            messages = await anext(batches) or await anext(batches)
        assert messages[-1].behind == first + 6 - len(messages)

    asyncio.run(go())


def test_the_silence_of_kafka_is_known_until_it_answers(tmp_path: Path) -> None:
    require(Kafka)

    async def go(kafka: Kafka) -> None:
        settings = Settings(kafka_bootstrap=kafka.address)
        await topic_admin.prepare_topics(settings)
        await publish(settings, b"1")
        async with TopicFollower(settings, TOPIC, beginning=True) as follower, asyncio.timeout(PATIENCE):
            assert await next_values(follower, 1) == [b"1"]
            while True:
                await follower.next_batch(10, 0.2)
                if follower.silence < 1.0:
                    break
            pause(kafka)
            while follower.silence < 3.0:
                assert not await follower.next_batch(10, 0.2)
            resume(kafka)
            while follower.silence > 1.0:
                await follower.next_batch(10, 0.2)
            await publish(settings, b"2")
            assert await next_values(follower, 1) == [b"2"]
            assert follower.silence == 0.0

    with Kafka(tmp_path / "kafka") as kafka:
        asyncio.run(go(kafka))


def test_a_reading_ends_if_kafka_no_longer_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require(Kafka)
    monkeypatch.setattr(topic_follower, "SILENT_SECONDS", 3.0)

    async def go(kafka: Kafka) -> None:
        settings = Settings(kafka_bootstrap=kafka.address)
        await topic_admin.prepare_topics(settings)
        await publish(settings, *[b"%d" % number + b"x" * 800_000 for number in range(8)])  # several fetches
        reading, read = LogReader(settings), list[int]()

        async def read_and_pause() -> None:
            async for records in reading.parts(TOPIC, 0):
                read.append(len(records))
                pause(kafka)

        try:
            with pytest.raises(KafkaError, match="Kafka has not answered for 3 s"):
                await asyncio.wait_for(read_and_pause(), PATIENCE)
        finally:
            resume(kafka)
            await reading.stop()
        assert 0 < sum(read) < 8

    with Kafka(tmp_path / "kafka") as kafka:
        asyncio.run(go(kafka))


def test_a_topic_that_is_not_there_is_told(kafka: Kafka) -> None:
    settings = Settings(kafka_bootstrap=kafka.address)

    async def go() -> None:
        with pytest.raises(BusError, match=r"has no topic 'nowhere'; start a worker or a replay first$"):
            async with TopicFollower(settings, "nowhere"):
                pass

    asyncio.run(go())


def test_what_kafka_refuses_is_an_error_or_nothing() -> None:
    async def refuse(**_: Any) -> None:
        raise KafkaError("no")

    consumer: Any = SimpleNamespace(getmany=refuse)
    follower = KafkaFollower(Settings(), DEAD_LETTERS, consumer)
    with pytest.raises(KafkaError):
        asyncio.run(follower.next_batch(1, 0.0))
    assert asyncio.run(follower.try_next_batch(1, 0.0)) == []
