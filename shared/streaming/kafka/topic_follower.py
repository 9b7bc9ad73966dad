"""Followers of a topic beside the pipeline: from its beginning, its end, or the committed offsets of a group."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
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
"""Timeout in seconds for positions that are not known yet."""

Offsets = dict[Any, int]
"""The next offset to read, by partition."""

SILENT_SECONDS = 30.0
"""Seconds without an answer of Kafka after which a process that follows a topic is not healthy."""


def silence_reason(seconds: float) -> str | None:
    """Return the reason if a process is unhealthy because Kafka has not answered for `seconds`; else None.

    >>> silence_reason(2.5), silence_reason(95.2)
    (None, 'Kafka has not answered for 95 s')
    """
    return f"Kafka has not answered for {seconds:.0f} s" if seconds > SILENT_SECONDS else None


def seconds_since_answer(consumer: AIOKafkaConsumer, places: Iterable[TopicPartition], began: float) -> float:
    """Return the seconds since Kafka last answered, for the assigned partition that waits longest.

    `began` is the Unix time at which the consumer began to read them.
    """
    answers = [consumer.last_poll_timestamp(place) for place in places]
    oldest = min((began if answer is None else max(began, answer / 1000) for answer in answers), default=began)
    return max(0.0, time.time() - oldest)


class KafkaFollower:
    """The base of the followers: an asynchronous context manager that raises `BusError` if Kafka cannot be used."""

    def __init__(self, settings: Settings, topic: str, consumer: AIOKafkaConsumer) -> None:
        self._settings = settings
        self._topic = topic
        self._consumer = consumer
        self._began = time.time()
        self._places: frozenset[TopicPartition] = frozenset()
        self.silence = 0.0
        """Seconds since Kafka last answered, with records or without, for the partition that waits longest."""

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
        """Return up to `most` records, in order of each partition; none if none arrive within `seconds`.

        Raise `KafkaError` if Kafka refuses to deliver them. While Kafka is unreachable, none are returned.
        """
        fetched = await self._consumer.getmany(timeout_ms=int(1000 * seconds), max_records=most)
        places = frozenset(self._consumer.assignment())
        if places != self._places:
            self._places, self._began = places, time.time()
        # while records wait here, aiokafka sends no request, so the time since the last answer means nothing
        self.silence = 0.0 if fetched else seconds_since_answer(self._consumer, places, self._began)
        return [record for records in fetched.values() for record in records]

    async def try_next_batch(self, most: int, seconds: float) -> Sequence[Any]:
        """Return the records of `next_batch`. After an error of Kafka, log the error and return no records."""
        try:
            return await self.next_batch(most, seconds)
        except KafkaError as error:
            log.warning("%s: %s; trying again", self._topic, reason_of(error))
            return []

    def behind(self, tp: TopicPartition, offset: int) -> int:
        """Return the known number of records in a partition from an offset on; 0 if the partition is not assigned."""
        end = self._consumer.highwater(tp) if tp in self._consumer.assignment() else None
        return max(0, (end or 0) - offset)


class TopicFollower(KafkaFollower):
    """A follower of all partitions of a topic, from its beginning or its end, outside any group: it commits no offset.

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
        """Go to the end of the topic. Records before it are skipped."""
        await self._consumer.seek_to_end()

    async def messages(self) -> "Sequence[Message]":
        """Return the next messages; none if none arrive within a second.

        Raise `BusError` if Kafka refuses to deliver them.
        """
        try:
            records = await self.next_batch(MAX_AT_ONCE, POLL_SECONDS)
        except KafkaError as error:
            raise bus.unusable(self._settings, error) from error
        return [
            Message(
                record.value or b"",
                {name: (value or b"").decode(errors="replace") for name, value in record.headers},
                record.partition,
                self.behind(TopicPartition(self._topic, record.partition), record.offset + 1),
            )
            for record in records
        ]


class GroupFollower(KafkaFollower):
    """A member of a consumer group. The offsets that the group has committed show how far its members have read."""

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
            max_poll_interval_ms=24 * 3_600_000,  # the target of the records may be unavailable for long
        )
        super().__init__(settings, topic, consumer)

    async def positions(self) -> Offsets:
        """Return the positions of this member in its partitions, as far as they are known."""
        known: Offsets = {}
        with suppress(TimeoutError, KafkaError):  # a rebalance may take a partition away meanwhile
            async with asyncio.timeout(POSITION_SECONDS):
                for tp in self._consumer.assignment():
                    known[tp] = await self._consumer.position(tp)
        return known

    async def commit(self, offsets: Offsets) -> None:
        """Commit these offsets, but not of partitions that this member no longer owns. Only log an error of Kafka."""
        owned = {tp: offset for tp, offset in offsets.items() if tp in self._consumer.assignment()}
        try:
            if owned:
                await self._consumer.commit(owned)
        except KafkaError as error:
            log.warning("%s: the position cannot be stored: %s", self._topic, reason_of(error))

    async def go_back(self) -> None:
        """Go back to the committed offsets; to the beginning of a partition without one. Raise the errors of Kafka."""
        for tp in self._consumer.assignment():
            committed = await self._consumer.committed(tp)
            if tp not in self._consumer.assignment():
                continue  # a rebalance has taken it away meanwhile
            if committed is None:
                await self._consumer.seek_to_beginning(tp)
            else:
                self._consumer.seek(tp, committed)

    def lag(self, positions: Offsets) -> int:
        """Return the known number of records from these positions on."""
        return sum(self.behind(tp, offset) for tp, offset in positions.items())


# A subscription to a topic from outside the pipeline. It has no consumer group and commits nothing, and no stage waits
# for it.

MAX_AT_ONCE = 500
POLL_SECONDS = 1.0


class Message(NamedTuple):
    """A message of a topic; `behind` is the known number of messages after it in its partition."""

    value: bytes
    headers: Mapping[str, str]
    partition: int
    behind: int


async def subscribe(
    settings: Settings, topic: str, *, beginning: bool = False
) -> AsyncGenerator[Sequence[Message], None]:
    """Yield batches of messages of a topic, for ever. A batch is empty if none arrive within a second.

    Messages of one run are in order. While Kafka is unreachable, batches are empty. Close the generator to end the
    subscription.

    Raise `BusError` if Kafka cannot be reached, the topic does not exist, or Kafka refuses to deliver messages.
    """
    async with TopicFollower(settings, topic, beginning=beginning) as follower:
        while True:
            yield await follower.messages()
