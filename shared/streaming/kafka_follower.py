"""Follow a topic beside the pipeline: from where one stopped, or only what comes from now on."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from shadowtime.shared.errors import reason_of
from shadowtime.shared.streaming import bus
from shadowtime.shared.streaming.settings import Settings

log = logging.getLogger("shadowtime.follower")

POSITION_SECONDS = 2.0
"""Patience with Kafka where a position is not known yet."""

Offsets = dict[Any, int]
"""The next offset to read, by partition."""


class _Follower:
    """What both kinds have in common; use it as an asynchronous context."""

    def __init__(self, settings: Settings, topic: str, consumer: AIOKafkaConsumer) -> None:
        self._settings = settings
        self._topic = topic
        self._consumer = consumer

    async def __aenter__(self) -> Self:
        try:
            await bus.prepare_topics(self._settings)
            await self._consumer.start()
        except BaseException as error:
            await self._consumer.stop()
            if isinstance(error, KafkaError | OSError):
                raise bus.unusable(self._settings, error) from error
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._consumer.stop()

    async def next_batch(self, most: int, patience: float) -> Sequence[Any]:
        """Return up to so many records, in order of each partition; none if none came within `patience` seconds."""
        try:
            found = await self._consumer.getmany(timeout_ms=int(1000 * patience), max_records=most)
        except KafkaError as error:
            log.warning("%s: %s; trying again", self._topic, reason_of(error))
            return []
        return [record for records in found.values() for record in records]


class GroupFollower(_Follower):
    """A member of a group, which remembers how far its members have come."""

    def __init__(self, settings: Settings, topic: str, group: str) -> None:
        consumer = AIOKafkaConsumer(
            topic,
            **bus.connection(settings),
            group_id=f"shadowtime-{group}",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            max_partition_fetch_bytes=4 * settings.max_message_bytes,
            session_timeout_ms=6_000,
            heartbeat_interval_ms=1_000,
            max_poll_interval_ms=24 * 3_600_000,  # what is followed into may be away for long
        )
        super().__init__(settings, topic, consumer)

    async def positions(self) -> Offsets:
        """Return how far this member has read, of the partitions where it knows."""
        known: Offsets = {}
        with suppress(TimeoutError):
            async with asyncio.timeout(POSITION_SECONDS):
                for place in self._consumer.assignment():
                    known[place] = await self._consumer.position(place)
        return known

    async def commit(self, offsets: Offsets) -> None:
        """Remember that what lies before these offsets is done with; partitions that others own now are left out."""
        owned = {place: offset for place, offset in offsets.items() if place in self._consumer.assignment()}
        try:
            if owned:
                await self._consumer.commit(owned)
        except KafkaError as error:
            log.warning("%s: the position cannot be stored: %s", self._topic, reason_of(error))

    async def go_back(self) -> None:
        """Read again from what was remembered last."""
        for place in self._consumer.assignment():
            committed = await self._consumer.committed(place)
            if committed is None:
                await self._consumer.seek_to_beginning(place)
            else:
                self._consumer.seek(place, committed)

    def lag(self, positions: Offsets) -> int:
        """Return how many records are known to lie ahead of these positions."""
        return sum(max(0, (self._consumer.highwater(place) or 0) - at) for place, at in positions.items())


class TailFollower(_Follower):
    """Outside any group; begins at the end of the topic and remembers nothing."""

    def __init__(self, settings: Settings, topic: str) -> None:
        super().__init__(settings, topic, bus.reader(settings))

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        partitions = await bus.partitions_of(self._settings, self._topic)
        self._consumer.assign([TopicPartition(self._topic, number) for number in range(partitions)])
        await self.skip()
        return self

    async def skip(self) -> None:
        """Go to the end of the topic: what lies before is given up."""
        await self._consumer.seek_to_end()
