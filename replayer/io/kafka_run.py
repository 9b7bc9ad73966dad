"""The Kafka messages of one run: events published by an earlier process, events to publish, and the answers."""

import logging
from asyncio import get_running_loop
from collections.abc import AsyncIterator, Awaitable

from aiokafka.errors import KafkaError

from shadowtime.shared.errors import ReplayError, reason_of
from shadowtime.shared.messages import ClusterOpened, Envelope, FrozenModel
from shadowtime.shared.quoting import truncate
from shadowtime.shared.stages import JOBS, SCORES
from shadowtime.shared.streaming import PartitionFeed, RunClients, Settings, released, shared
from shadowtime.shared.streaming import clients as bus

log = logging.getLogger("shadowtime.replay")

BATCH = 200
"""Maximum number of messages that are sent together."""

UNCONFIRMED = 20
"""Minimum number of unconfirmed deliveries at which `flush` waits for their confirmation."""

CLOSED = b"ClusterClosed"
"""Event kind of the last envelope of a run, as in the message bytes."""


class KafkaRun:
    """The Kafka connection of a run: it publishes to `jobs` and reads `decisions` and `scores`. Call `connect` first.

    `published` has the envelopes that an earlier process of this run published.
    """

    def __init__(self, run: str, opened: ClusterOpened, settings: Settings) -> None:
        self.published: list[Envelope] = []
        self._run = run
        self._key = run.encode()
        self.opened = opened
        self._settings = settings
        self._clients: RunClients | None = None
        self._feed: PartitionFeed | None = None
        self._own: PartitionFeed | None = None  # only a resumed run has this feed, which reads from the beginning
        self._buffer: list[bytes] = []
        self._under_way: list[Awaitable[object]] = []

    async def connect(self) -> None:
        """Connect, and seek to the beginning of this run's answers. Retry for `connect_seconds` while Kafka fails.

        Raises
        ------
        BusError
            If Kafka cannot be used.
        ReplayError
            If the run is in the log with other settings, or without its beginning.
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
                log.warning("Kafka failed while the replay started: %s; trying again", reason_of(error))
            finally:
                if not begun:
                    await self.stop()

    async def _begin(self, clients: RunClients) -> None:
        """Read the published envelopes of the run, and seek to the beginning of its answers."""
        self._partition = bus.partition_of(self._run, clients.partitions)
        self.published.clear()
        first_left: int | None = None
        for record in await clients.published(self._key, self._partition):
            envelope = Envelope.read(record.value)
            if envelope is not None and envelope.sequence == len(self.published):
                self.published.append(envelope)
            elif envelope is not None and first_left is None:
                first_left = envelope.sequence

        if first_left is not None and not self.published:
            raise ReplayError(
                f"run {self._run!r} cannot be resumed: topic {JOBS} has it only from sequence {first_left} on, "
                "as Kafka deletes old messages (retention_hours); choose another --run"
            )
        if self.published:
            log.info("resuming run", extra={"run": self._run, "sequence": len(self.published)})
            first = self.published[0].event
            if isinstance(first, ClusterOpened):  # keep the display names of the first process
                self.opened = self.opened.model_copy(update={"name": first.name, "experiment": first.experiment})
            if first != self.opened:
                other = different(first, self.opened)
                raise ReplayError(f"run {self._run!r} was opened with other settings ({other}); choose another --run")

            self._own = self._feed = PartitionFeed(self._settings, self._partition)
            self._feed.expect(self._key)
            await self._own.start(beginning=True)
        else:
            self._feed = await clients.feed(self._partition)
            self._feed.expect(self._key)

    async def publish(self, envelope: Envelope) -> None:
        """Queue an event of the run. It is sent with others, when `BATCH` events are queued or at `flush`."""
        self._buffer.append(envelope.to_bytes())
        if len(self._buffer) >= BATCH:
            await self.flush()

    async def flush(self) -> None:
        """Send the queued messages. If `UNCONFIRMED` deliveries or more are unconfirmed, wait for all of them."""
        values, self._buffer = self._buffer, []
        if values and self._clients is not None:
            self._under_way += await self._clients.sender.send(
                JOBS, self._partition, self._key, [(value, None) for value in values]
            )
        if len(self._under_way) >= UNCONFIRMED:
            await self._arrivals()

    async def confirm(self) -> None:
        """Send the queued messages, and wait until Kafka has confirmed all messages."""
        await self.flush()
        await self._arrivals()

    async def _arrivals(self) -> None:
        under_way, self._under_way = self._under_way, []
        for delivery in under_way:
            await delivery

    async def answers(self) -> AsyncIterator[tuple[str, Envelope | None]]:
        """Yield the topic and envelope of every answer, for ever. This includes the answers to an earlier process.

        Only final scores are parsed. Other scores have the envelope None.

        Raise `ReplayError` if the run is not connected.
        """
        if self._feed is None:
            raise ReplayError(f"run {self._run!r} is not connected to Kafka; call connect first")
        async for record in self._feed.records(self._key):
            if record.topic == SCORES and CLOSED not in (record.value or b""):
                yield SCORES, None
            else:
                envelope = Envelope.read(record.value)
                if envelope is not None:
                    yield record.topic, envelope

    async def stop(self) -> None:
        """Release all connections."""
        if self._feed is not None:
            self._feed.forget(self._key)
        if self._own is not None:
            own, self._own = self._own, None
            await own.stop()
        if self._clients is not None:
            clients, self._clients = self._clients, None
            await released(clients)


def different(first: FrozenModel, again: FrozenModel) -> str:
    """Return the fields in which two events differ, each with both values, as one short text.

    >>> from shadowtime.shared.messages import SchedulingPoint
    >>> different(SchedulingPoint(time=5), SchedulingPoint(time=7))
    'time 5, not 7'
    """
    if type(first) is not type(again):
        return f"{type(first).__name__}, not {type(again).__name__}"
    then, now = first.model_dump(), again.model_dump()
    return truncate(
        ", ".join(f"{name} {then[name]}, not {now[name]}" for name in now if then[name] != now[name]), MAX_SHOWN
    )


MAX_SHOWN = 200
"""Maximum length of the differences in a message, in characters."""
