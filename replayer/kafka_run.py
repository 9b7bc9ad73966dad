"""The messages of one run in Kafka: what was published of it, what is published now, and what is answered."""

import logging
from asyncio import Future, get_running_loop
from collections.abc import AsyncIterator

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError

from shadowtime.shared.errors import ReplayError, reason_of
from shadowtime.shared.events import ClusterOpened, Envelope
from shadowtime.shared.streaming import bus
from shadowtime.shared.streaming.log_reader import read_log
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.topics import DECISIONS, JOBS, SCORES

log = logging.getLogger("shadowtime.replay")

UNCONFIRMED = 500
"""Messages that may be under way to Kafka."""


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
        self._under_way: list[Future[object]] = []

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
            self._partition = bus.partition_of(self._run, await bus.prepare_topics(self._settings))
            self._producer: AIOKafkaProducer = bus.producer(self._settings)
            self._consumer: AIOKafkaConsumer = bus.reader(self._settings)
            begun = False
            try:
                await self._producer.start()
                await self._consumer.start()
                await self._begin()
                begun = True
                return
            except (KafkaError, OSError) as error:
                if loop.time() > until:
                    raise bus.unusable(self._settings, error) from error
                log.warning("Kafka went while the replay began (%s); trying again", reason_of(error))
            finally:
                if not begun:
                    await self.stop()

    async def _begin(self) -> None:
        """Read what has been published of the run, and go to where its answers begin."""
        places = [TopicPartition(topic, self._partition) for topic in (DECISIONS, SCORES)]
        self._consumer.assign(places)
        self.published.clear()
        async for record in read_log(self._settings, JOBS, self._partition):
            if record.key == self._key:
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
            await self._consumer.seek_to_beginning(*places)
        else:
            await self._consumer.seek_to_end(*places)
            for place in places:
                await self._consumer.position(place)

    async def publish(self, envelope: Envelope) -> None:
        """Publish an event of the run, behind those before it."""
        self._under_way.append(await self._producer.send(JOBS, envelope.to_bytes(), self._key, self._partition))
        if len(self._under_way) >= UNCONFIRMED:
            await self.confirm()

    async def confirm(self) -> None:
        """Wait until Kafka has all that was published."""
        for delivery in self._under_way:
            await delivery
        self._under_way.clear()

    async def answers(self) -> AsyncIterator[tuple[str, Envelope]]:
        """Yield topic and envelope of whatever is answered, for ever; also again what was answered before."""
        async for record in self._consumer:
            if record.key == self._key:
                envelope = Envelope.read(record.value)
                if envelope is not None:
                    yield record.topic, envelope

    async def stop(self) -> None:
        """Let go of all connections."""
        await self._consumer.stop()
        await self._producer.stop()
