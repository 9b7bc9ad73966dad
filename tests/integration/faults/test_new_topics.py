"""Topics that were just made: whoever prepares or counts them can read them at once, and nobody is told of an error."""

import asyncio
import logging
from pathlib import Path

import pytest
from aiokafka import TopicPartition

from shadowtime.shared.stages.topics import FLOW
from shadowtime.shared.streaming.kafka import clients as bus
from shadowtime.shared.streaming.kafka import topic_admin
from shadowtime.shared.streaming.settings import Settings
from shadowtime.stack.servers.servers import Kafka
from tests.support.patience import PATIENCE
from tests.support.real_servers import require

PARTITIONS = 200
"""So many that the broker takes a second to lead them all."""


@pytest.mark.nightly
def test_a_topic_that_was_just_made_can_be_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    require(Kafka)

    async def work(settings: Settings) -> None:
        assert {PARTITIONS} == set(await asyncio.gather(topic_admin.prepare_topics(settings), counted(settings)))

    async def counted(settings: Settings) -> int:
        """Another who comes while the topics are being made."""
        while not (found := await topic_admin.partitions_of(settings, FLOW[-1])):
            await asyncio.sleep(0.01)
        await read(settings, FLOW[-1])
        return found

    async def read(settings: Settings, *topics: str) -> None:
        consumer = bus.reader(settings)
        await consumer.start()
        try:
            places = [TopicPartition(topic, number) for topic in topics for number in range(PARTITIONS)]
            consumer.assign(places)
            await consumer.seek_to_end()
            await asyncio.gather(*map(consumer.position, places))
        finally:
            await consumer.stop()

    with Kafka(tmp_path) as kafka, caplog.at_level(logging.ERROR, "aiokafka"):
        settings = Settings(kafka_bootstrap=kafka.address, partitions=PARTITIONS, connect_seconds=PATIENCE)
        asyncio.run(work(settings))
        asyncio.run(read(settings, *FLOW))
    assert [record.getMessage() for record in caplog.records] == []
