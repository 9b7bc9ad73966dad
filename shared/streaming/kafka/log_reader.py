"""Reader of the records of a partition from one offset up to another."""

import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaTimeoutError

from shadowtime.shared.streaming.kafka import clients as bus
from shadowtime.shared.streaming.kafka.topic_follower import seconds_since_answer, silence_reason
from shadowtime.shared.streaming.settings import Settings

PART = 500
"""The maximum number of records that are read at once."""

FETCH_MS = 5
"""Milliseconds that Kafka waits for records that are not there yet. Requests behind a fetch wait as long."""


class LogReader:
    """Reads ranges of partitions in parts. It connects at the first range."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._consumer: AIOKafkaConsumer | None = None

    async def parts(
        self, topic: str, partition: int, start: int = 0, stop: int | None = None
    ) -> AsyncIterator[Sequence[Any]]:
        """Yield the records from offset `start` up to `stop` (the present end if None), up to `PART` at a time.

        Raise `KafkaError` if Kafka cannot deliver them, and `KafkaTimeoutError` if it has not answered for
        `SILENT_SECONDS`.
        """
        consumer, tp = await self._connected(), TopicPartition(topic, partition)
        first = (await consumer.beginning_offsets([tp]))[tp]
        end = (await consumer.end_offsets([tp]))[tp]
        start, stop = max(start, first), end if stop is None else min(stop, end)
        if start >= stop:
            return
        consumer.assign([tp])
        try:
            consumer.seek(tp, start)
            began = time.time()
            while await consumer.position(tp) < stop:
                batch = await consumer.getmany(tp, timeout_ms=1000, max_records=PART)
                records = [record for record in batch.get(tp, ()) if record.offset < stop]
                if records:
                    yield records
                    began = time.time()  # aiokafka sends no request while nobody takes its records
                elif reason := silence_reason(seconds_since_answer(consumer, [tp], began)):
                    raise KafkaTimeoutError(reason)
        finally:
            if tp in consumer.assignment():
                consumer.pause(tp)  # else it keeps fetching, which delays its other requests

    async def first_since(self, topic: str, partition: int, since: int) -> int:
        """Return the offset of the first record with a timestamp of Unix second `since` or later; the end without one.

        Raise `KafkaError` if Kafka does not answer.
        """
        consumer, tp = await self._connected(), TopicPartition(topic, partition)
        first = (await consumer.offsets_for_times({tp: max(0, since) * 1000})).get(tp)
        return await self.end(topic, partition) if first is None else int(first.offset)

    async def end(self, topic: str, partition: int) -> int:
        """Return the offset behind the last record; raise `KafkaError` if Kafka does not answer."""
        consumer, tp = await self._connected(), TopicPartition(topic, partition)
        return int((await consumer.end_offsets([tp]))[tp])

    async def _connected(self) -> AIOKafkaConsumer:
        if self._consumer is None:
            self._consumer = await bus.started(bus.reader(self._settings, wait_ms=FETCH_MS))
        return self._consumer

    async def stop(self) -> None:
        """Close the connection."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            await consumer.stop()


async def read_log(
    settings: Settings,
    topic: str,
    partition: int,
    start: int = 0,
    stop: int | None = None,
    *,
    since: int | None = None,
) -> AsyncIterator[Any]:
    """Yield the records of a partition from offset `start` up to `stop` (the present end if None).

    With `since`, begin at the first record with a timestamp of this Unix second or later. Raise `KafkaError` if Kafka
    cannot deliver the records.
    """
    reading = LogReader(settings)
    try:
        if since is not None:
            start = max(start, await reading.first_since(topic, partition, since))
        async for part in reading.parts(topic, partition, start, stop):
            for record in part:
                yield record
    finally:
        await reading.stop()
