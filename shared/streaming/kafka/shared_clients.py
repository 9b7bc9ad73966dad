"""Clients that the replays of one process share: a producer, readers of partitions, and the known runs.

A hundred replays with clients of their own would need two hundred connections, and each would receive the messages of
all others.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from shadowtime.shared.stages import DECISIONS, JOBS, SCORES
from shadowtime.shared.streaming.kafka import clients as bus
from shadowtime.shared.streaming.kafka import topic_admin
from shadowtime.shared.streaming.kafka.batch_sender import Sender
from shadowtime.shared.streaming.kafka.log_reader import LogReader
from shadowtime.shared.streaming.settings import Settings

UNREAD = 5_000
"""Approximate maximum number of waiting records of one run. Beyond it, the run's partition is not read."""

Heard = Sequence[Any] | Exception


class PartitionFeed:
    """Messages of `decisions` and `scores` of one partition, by run."""

    def __init__(self, settings: Settings, partition: int) -> None:
        self.failed = False
        self._consumer: AIOKafkaConsumer = bus.reader(settings, wait_ms=100)
        self._places = [TopicPartition(topic, partition) for topic in (DECISIONS, SCORES)]
        self._waiting: dict[bytes, asyncio.Queue[Heard]] = {}
        self._receiving: asyncio.Task[None] | None = None

    async def start(self, *, beginning: bool = False) -> None:
        """Begin to read at the end of the topics; with `beginning`, at their beginning."""
        consumer = self._consumer
        await consumer.start()
        consumer.assign(self._places)
        if beginning:
            await consumer.seek_to_beginning(*self._places)
        else:
            await consumer.seek_to_end(*self._places)
            for place in self._places:
                await consumer.position(place)

        self._receiving = asyncio.ensure_future(self._receive())

    def expect(self, key: bytes) -> None:
        """Keep the records of a run from now on."""
        self._waiting[key] = asyncio.Queue()

    def forget(self, key: bytes) -> None:
        """Keep no more records of a run."""
        self._waiting.pop(key, None)

    async def records(self, key: bytes) -> AsyncIterator[Any]:
        """Yield the records of an expected run, for ever. Raise the errors of Kafka."""
        waiting = self._waiting[key]
        while True:
            received = await waiting.get()
            if isinstance(received, Exception):
                raise received
            for record in received:
                yield record

    async def _receive(self) -> None:
        try:
            while True:
                for records in (await self._consumer.getmany(timeout_ms=60_000)).values():
                    runs: dict[bytes, list[Any]] = {}
                    for record in records:
                        if record.key in self._waiting:
                            runs.setdefault(record.key, []).append(record)
                    for key, its in runs.items():
                        if key in self._waiting:
                            self._waiting[key].put_nowait(its)

                while any(waiting.qsize() > UNREAD // 500 for waiting in self._waiting.values()):
                    await asyncio.sleep(0.01)
        except Exception as error:  # any error must reach all waiting readers
            self.failed = True
            for waiting in self._waiting.values():
                waiting.put_nowait(error)

    async def stop(self) -> None:
        """Close the connection."""
        if self._receiving is not None:
            self._receiving.cancel()
            await asyncio.gather(self._receiving, return_exceptions=True)
        await self._consumer.stop()


class RunClients:
    """Clients that replays over one Kafka share. Get them from `shared`; each replay must call `released`."""

    def __init__(self, settings: Settings) -> None:
        self.sender = Sender(bus.producer(settings), settings.max_output_bytes)
        self.partitions = 0
        self.users = 0
        self.broken = False
        self._settings = settings
        self._turn = asyncio.Lock()
        self._reader = LogReader(settings)
        self._known: dict[int, tuple[int, set[bytes]]] = {}
        self._feeds: dict[int, PartitionFeed] = {}

    async def start(self) -> None:
        """Connect, unless already connected."""
        async with self._turn:
            if not self.partitions:
                partitions = await topic_admin.prepare_topics(self._settings)
                await self.sender.producer.start()
                self.partitions = partitions

    async def published(self, key: bytes, partition: int) -> list[Any]:
        """Return the records of a run on topic `jobs`.

        Only records that are new since the last call for the partition are read. If there were earlier records of this
        run, the whole partition is read again.
        """
        async with self._turn:
            start, known = self._known.get(partition, (0, set()))
            if key in known:
                start = 0
            own: list[Any] = []
            async for records in self._reader.parts(JOBS, partition, start):
                own += [record for record in records if record.key == key]
                known |= {record.key for record in records}
                start = records[-1].offset + 1

            self._known[partition] = start, known
            return own

    async def feed(self, partition: int) -> PartitionFeed:
        """Return the feed of a partition. Start one if there is none, or if the last one has failed."""
        async with self._turn:
            there = self._feeds.get(partition)
            if there is not None and there.failed:
                await self._feeds.pop(partition).stop()
            if partition not in self._feeds:
                feed = PartitionFeed(self._settings, partition)
                try:
                    await feed.start()
                except BaseException:
                    await feed.stop()
                    raise

                self._feeds[partition] = feed

            return self._feeds[partition]

    async def stop(self) -> None:
        """Close all connections."""
        for feed in self._feeds.values():
            await feed.stop()
        await self._reader.stop()
        with suppress(KafkaError, OSError):
            await self.sender.producer.stop()


_SHARED: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, RunClients]] = WeakKeyDictionary()


def shared(settings: Settings) -> RunClients:
    """Return the clients that replays under these settings share in the running event loop. `start` them before use."""
    of_loop = _SHARED.setdefault(asyncio.get_running_loop(), {})
    name = repr(settings)
    if name not in of_loop or of_loop[name].broken:
        of_loop[name] = RunClients(settings)
    clients = of_loop[name]
    clients.users += 1
    return clients


async def released(clients: RunClients) -> None:
    """Release clients. The last release closes them."""
    clients.users -= 1
    if not clients.users:
        clients.broken = True
        await clients.stop()
