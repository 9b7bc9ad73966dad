"""Follow a topic beside the pipeline: all of it, only what comes from now on, or from where one stopped."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, NamedTuple, Self

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from shadowtime.shared.errors import BusError, reason_of
from shadowtime.shared.streaming.kafka import clients as bus
from shadowtime.shared.streaming.kafka import topic_admin
from shadowtime.shared.streaming.settings import Settings

log = logging.getLogger("shadowtime.follower")

POSITION_SECONDS = 2.0
"""Patience with Kafka where a position is not known yet."""

Offsets = dict[Any, int]
"""The next offset to read, by partition."""


class KafkaFollower:
    """The base of both followers: an asynchronous context that raises `BusError` if Kafka cannot be used."""

    def __init__(self, settings: Settings, topic: str, consumer: AIOKafkaConsumer) -> None:
        self._settings = settings
        self._topic = topic
        self._consumer = consumer

    async def __aenter__(self) -> Self:
        try:
            await self._begin()
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

    async def _begin(self) -> None:
        await self._consumer.start()

    async def next_batch(self, most: int, seconds: float) -> Sequence[Any]:
        """Return up to so many records, in order of each partition; none if none came within so many seconds.

        Raises
        ------
        KafkaError
            If Kafka does not give them; while it is away there are just none.
        """
        fetched = await self._consumer.getmany(timeout_ms=int(1000 * seconds), max_records=most)
        return [record for records in fetched.values() for record in records]

    async def try_next_batch(self, most: int, seconds: float) -> Sequence[Any]:
        """Return what `next_batch` does; none if Kafka does not give them, which a remark tells of."""
        try:
            return await self.next_batch(most, seconds)
        except KafkaError as error:
            log.warning("%s: %s; trying again", self._topic, reason_of(error))
            return []

    def behind(self, place: TopicPartition, offset: int) -> int:
        """Return how many records are known to lie in a partition from an offset on."""
        return max(0, (self._consumer.highwater(place) or 0) - offset)


class TopicFollower(KafkaFollower):
    """Every partition of a topic from its beginning or its end on, outside any group: nothing is remembered.

    Raises `BusError` also if the topic does not exist.
    """

    def __init__(self, settings: Settings, topic: str, *, beginning: bool = False) -> None:
        super().__init__(settings, topic, bus.reader(settings))
        self._beginning = beginning

    async def _begin(self) -> None:
        partitions = await topic_admin.partitions_of(self._settings, self._topic)
        if not partitions:
            raise BusError(
                f"Kafka at {self._settings.kafka_bootstrap} has no topic {self._topic!r}; "
                "start a worker or a replay first"
            )
        await super()._begin()
        self._consumer.assign([TopicPartition(self._topic, number) for number in range(partitions)])
        await (self._consumer.seek_to_beginning() if self._beginning else self.skip())

    async def skip(self) -> None:
        """Go to the end of the topic: what lies before is given up."""
        await self._consumer.seek_to_end()


class GroupFollower(KafkaFollower):
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
        return sum(self.behind(place, offset) for place, offset in positions.items())


# Subscribe to a topic from outside the flow: no consumer group, nothing committed, nobody waits for it.

MAX_AT_ONCE = 500
POLL_SECONDS = 1.0


class Message(NamedTuple):
    """A message of a topic; `behind` counts those that lie after it in its partition."""

    value: bytes
    headers: Mapping[str, str]
    partition: int
    behind: int


async def subscribe(
    settings: Settings, topic: str, *, beginning: bool = False
) -> AsyncGenerator[Sequence[Message], None]:
    """Yield the messages of a topic for ever, those that come together at once, and none when a second brings none.

    Those of one run are in order. While Kafka is away there are none; whoever closes the generator ends the
    subscription.

    Raises
    ------
    BusError
        If Kafka cannot be reached, or the topic does not exist.
    """
    async with TopicFollower(settings, topic, beginning=beginning) as follower:
        while True:
            yield [
                Message(
                    record.value or b"",
                    {name: value.decode(errors="replace") for name, value in record.headers},
                    record.partition,
                    follower.behind(TopicPartition(topic, record.partition), record.offset + 1),
                )
                for record in await follower.next_batch(MAX_AT_ONCE, POLL_SECONDS)
            ]
