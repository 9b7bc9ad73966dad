"""The messages of one run in Kafka: what was published of it, what is published now, and what is answered."""

import logging
from asyncio import get_running_loop
from collections.abc import AsyncIterator, Awaitable

from aiokafka.errors import KafkaError

from shadowtime.shared.errors import ReplayError, reason_of
from shadowtime.shared.messages import ClusterOpened, Envelope
from shadowtime.shared.stages import JOBS, SCORES
from shadowtime.shared.streaming import PartitionFeed, RunClients, Settings, released, shared
from shadowtime.shared.streaming import clients as bus

log = logging.getLogger("shadowtime.replay")

BATCH = 200
"""Messages that go out together at most."""

UNCONFIRMED = 20
"""Batches, or messages of small ones, that may be under way to Kafka."""

CLOSED = b"ClusterClosed"
"""Kind of event in the last envelope of a run."""


class KafkaRun:
    """Publishes to `jobs`, and hears what comes on `decisions` and `scores`; `connect` it before use.

    `published` is what an earlier process of this run has published.
    """

    def __init__(self, run: str, opened: ClusterOpened, settings: Settings) -> None:
        self.published: list[Envelope] = []
        self._run = run
        self._key = run.encode()
        self.opened = opened
        self._settings = settings
        self._clients: RunClients | None = None
        self._feed: PartitionFeed | None = None
        self._own: PartitionFeed | None = None  # of a run that is resumed, which hears what lies there first
        self._buffer: list[bytes] = []
        self._under_way: list[Awaitable[object]] = []

    async def connect(self) -> None:
        """Go to where this run's answers begin; a Kafka that goes meanwhile is waited for.

        Raises
        ------
        BusError
            If Kafka cannot be used.
        ReplayError
            If the log knows the run under other settings.
        """
        loop = get_running_loop()
        until = loop.time() + self._settings.connect_seconds
        while True:
            self._clients = shared(self._settings)
            begun = False
            try:
                await self._clients.start()
                await self._begin(self._clients)
                begun = True
                return
            except (KafkaError, OSError) as error:
                self._clients.broken = True
                if loop.time() > until:
                    raise bus.unusable(self._settings, error) from error
                log.warning("Kafka went while the replay began (%s); trying again", reason_of(error))
            finally:
                if not begun:
                    await self.stop()

    async def _begin(self, clients: RunClients) -> None:
        """Read what has been published of the run, and go to where its answers begin."""
        self._partition = bus.partition_of(self._run, clients.partitions)
        self.published.clear()
        for record in await clients.published(self._key, self._partition):
            envelope = Envelope.read(record.value)
            if envelope is not None and envelope.sequence == len(self.published):
                self.published.append(envelope)

        if self.published:
            log.info("resuming run", extra={"run": self._run, "sequence": len(self.published)})
            first = self.published[0].event
            if isinstance(first, ClusterOpened):  # what people call it stays as it was
                self.opened = self.opened.model_copy(update={"name": first.name, "experiment": first.experiment})
            if first != self.opened:
                then, now = first.model_dump(), self.opened.model_dump()
                other = ", ".join(
                    f"{name} {then.get(name)}, not {now[name]}" for name in now if then.get(name) != now[name]
                )
                raise ReplayError(f"run {self._run!r} was opened with other settings ({other}); choose another --run")

            self._own = self._feed = PartitionFeed(self._settings, self._partition)
            self._feed.expect(self._key)
            await self._own.start(beginning=True)
        else:
            self._feed = await clients.feed(self._partition)
            self._feed.expect(self._key)

    async def publish(self, envelope: Envelope) -> None:
        """Publish an event of the run behind those before it, with those that follow it until `flush`."""
        self._buffer.append(envelope.to_bytes())
        if len(self._buffer) >= BATCH:
            await self.flush()

    async def flush(self) -> None:
        """Let go out what is to be published."""
        values, self._buffer = self._buffer, []
        if values and self._clients is not None:
            self._under_way += await self._clients.sender.send(
                JOBS, self._partition, self._key, [(value, None) for value in values]
            )
        if len(self._under_way) >= UNCONFIRMED:
            await self._arrivals()

    async def confirm(self) -> None:
        """Wait until Kafka has all that was published."""
        await self.flush()
        await self._arrivals()

    async def _arrivals(self) -> None:
        under_way, self._under_way = self._under_way, []
        for delivery in under_way:
            await delivery

    async def answers(self) -> AsyncIterator[tuple[str, Envelope | None]]:
        """Yield topic and envelope of whatever is answered, for ever; also again what was answered before.

        Of the scores only those of the end are read: there is none with any other.
        """
        if self._feed is None:
            raise ReplayError(f"run {self._run!r} is not connected")
        async for record in self._feed.records(self._key):
            if record.topic == SCORES and CLOSED not in (record.value or b""):
                yield SCORES, None
            else:
                envelope = Envelope.read(record.value)
                if envelope is not None:
                    yield record.topic, envelope

    async def stop(self) -> None:
        """Let go of all connections."""
        if self._feed is not None:
            self._feed.forget(self._key)
        if self._own is not None:
            own, self._own = self._own, None
            await own.stop()
        if self._clients is not None:
            clients, self._clients = self._clients, None
            await released(clients)
