"""The pipeline over Kafka: publish the events of a source, and obey what comes back.

A closed replay is a barrier: what follows an instant is published only after its `Decided`. It runs ahead past an
instant only where that must be empty, so order and sequence are those of the strict barrier. A replay that was killed
resumes: the source is driven again with the decisions that lie in the log, and what lies there is not published again.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import TypeVar

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from shadowtime.replayer.embedded import Observer
from shadowtime.replayer.pace import Pace
from shadowtime.replayer.source import Source
from shadowtime.shared.errors import ReplayError, reason_of
from shadowtime.shared.events import ClusterClosed, ClusterOpened, Decided, Envelope, Event, Rejected, SchedulingPoint
from shadowtime.shared.streaming import bus
from shadowtime.shared.streaming.log_reader import read_log
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.topics import DECISIONS, JOBS, SCORES

log = logging.getLogger("shadowtime.replay")

Answer = TypeVar("Answer")

UNCONFIRMED = 500
"""Messages that may be under way to Kafka."""


class StreamedReplay:
    """One run over Kafka.

    Parameters
    ----------
    opened, source, observers
        As for an embedded replay; observers see every envelope of the `decisions` topic, in order and once.
    run
        Name of the run; it is resumed if the log knows it.
    starts_only
        Whether the policy decides nothing when nothing fits, so that the replay may run ahead.
    """

    def __init__(
        self,
        opened: ClusterOpened,
        source: Source,
        observers: Sequence[Observer],
        run: str,
        settings: Settings,
        *,
        starts_only: bool,
        pace: Pace | None = None,
    ) -> None:
        self.run = run
        self._opened = opened
        self._source = source
        self._observers = observers
        self._settings = settings
        self._starts_only = starts_only
        self._pace = pace
        self._sequence = 0
        self._published: list[Envelope] = []  # what an earlier process of this run has published
        self._seen = -1
        self._heard = 0
        self._closed: asyncio.Future[Envelope] = asyncio.get_running_loop().create_future()
        self._decided: dict[int, Decided] = {}
        self._awaited: dict[int, asyncio.Future[Decided]] = {}
        self._must_be_empty: set[int] = set()
        self._under_way: list[asyncio.Future[object]] = []

    async def run_to_end(self) -> Envelope:
        """Replay, and return the envelope that bears the scores.

        Raises
        ------
        ReplayError
            If an event was rejected, a decision cannot be carried out, no answer comes, or the log of a resumed run
            was made under other settings.
        BusError
            If Kafka cannot be used.
        """
        consumer = await self._connect()
        listening = asyncio.ensure_future(self._listen(consumer))
        telling = asyncio.ensure_future(self._tell_all())
        try:
            done, _ = await asyncio.wait((listening, telling), return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            return await telling
        except (KafkaError, OSError) as error:
            raise bus.unusable(self._settings, error) from error
        finally:
            listening.cancel()
            telling.cancel()
            await asyncio.gather(listening, telling, return_exceptions=True)
            await consumer.stop()
            await self._producer.stop()

    async def _connect(self) -> AIOKafkaConsumer:
        """Return a consumer where this run's answers begin; a Kafka that goes while we begin is waited for."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._settings.connect_seconds
        while True:
            self._partition = bus.partition_of(self.run, await bus.prepare_topics(self._settings))
            self._producer = bus.producer(self._settings)
            consumer = bus.reader(self._settings)
            begun = False
            try:
                await self._producer.start()
                await consumer.start()
                await self._begin(consumer)
                begun = True
                return consumer
            except (KafkaError, OSError) as error:
                if loop.time() > until:
                    raise bus.unusable(self._settings, error) from error
                log.warning("Kafka went while the replay began (%s); trying again", reason_of(error))
            finally:
                if not begun:
                    await consumer.stop()
                    await self._producer.stop()

    async def _begin(self, consumer: AIOKafkaConsumer) -> None:
        """Go to where this run's answers begin, and read what has been published of it."""
        places = [TopicPartition(topic, self._partition) for topic in (DECISIONS, SCORES)]
        consumer.assign(places)
        self._published.clear()
        async for record in read_log(self._settings, JOBS, self._partition):
            if record.key == self.run.encode():
                envelope = Envelope.read(record.value)
                if envelope is not None and envelope.sequence == len(self._published):
                    self._published.append(envelope)
        if self._published:
            log.info("resuming run", extra={"run": self.run, "sequence": len(self._published)})
            if self._published[0].event != self._opened:
                then, now = self._published[0].event.model_dump(), self._opened.model_dump()
                other = ", ".join(
                    f"{name} {then.get(name)}, not {now[name]}" for name in now if then.get(name) != now[name]
                )
                raise ReplayError(f"run {self.run!r} was opened with other settings ({other}); choose another --run")
            await consumer.seek_to_beginning(*places)
        else:
            await consumer.seek_to_end(*places)
            for place in places:
                await consumer.position(place)

    async def _tell_all(self) -> Envelope:
        await self._tell(self._opened)
        time = self._opened.time
        while (due := self._source.next_time()) is not None:
            if self._pace is not None and self._sequence >= len(self._published):  # what was told is not told again
                await asyncio.sleep(max(0.0, self._pace.ahead(due)))
            time = due
            events = self._source.next_instant()
            point = -1
            for event in events:
                if isinstance(event, SchedulingPoint):
                    point = self._sequence
                await self._tell(event)
            if self._opened.mode == "recorded":
                continue
            if self._starts_only and not self._source.can_start():
                self._must_be_empty.add(point)
                continue
            for event in self._source.apply(await self._answer(point)):
                await self._tell(event)
        await self._tell(ClusterClosed(time=time))
        await self._confirm()
        return await self._wait_for(self._closed, "the scores")

    async def _answer(self, point: int) -> Decided:
        if point in self._decided:
            return self._decided.pop(point)
        awaited = self._awaited[point] = asyncio.get_running_loop().create_future()
        return await self._wait_for(awaited, f"the decision at sequence {point}")

    async def _wait_for(self, awaited: "asyncio.Future[Answer]", what: str) -> Answer:
        """Wait for an answer as long as anything is answered: stages may be far behind a recorded replay."""
        patience = self._settings.barrier_seconds
        while not awaited.done():
            heard = self._heard
            await asyncio.wait({awaited}, timeout=patience)
            if not awaited.done() and self._heard == heard:
                raise ReplayError(
                    f"run {self.run!r}: {what} did not come within {patience:.0f} s; are all stages running? See: "
                    f"shadowtime watch dead-letters --beginning. Resume with --run {self.run}"
                )
        return awaited.result()

    async def _tell(self, event: Event) -> None:
        """Publish the next event of the run, unless the log has it already."""
        sequence, self._sequence = self._sequence, self._sequence + 1
        if sequence < len(self._published):
            if self._published[sequence].event != event:
                raise ReplayError(
                    f"run {self.run!r} cannot be resumed: at sequence {sequence} its log has "
                    f"{self._published[sequence].event}, this replay {event}: another trace or other settings?"
                )
            return
        envelope = Envelope(run=self.run, cluster=self._opened.cluster, sequence=sequence, event=event)
        value = envelope.to_bytes()
        self._under_way.append(await self._producer.send(JOBS, value, self.run.encode(), self._partition))
        if len(self._under_way) >= UNCONFIRMED:
            await self._confirm()

    async def _confirm(self) -> None:
        """Wait until Kafka has all that was published."""
        for delivery in self._under_way:
            await delivery
        self._under_way.clear()

    async def _listen(self, consumer: AIOKafkaConsumer) -> None:
        """Take in decisions and the scores, each sequence once."""
        key = self.run.encode()
        async for record in consumer:
            if record.key != key:
                continue
            envelope = Envelope.read(record.value)
            if envelope is None:
                continue
            self._heard += 1
            if record.topic == SCORES:
                if isinstance(envelope.event, ClusterClosed) and not self._closed.done():
                    self._closed.set_result(envelope)
                continue
            if envelope.sequence != self._seen + 1:
                continue
            self._seen = envelope.sequence
            self._take(envelope)

    def _take(self, envelope: Envelope) -> None:
        event = envelope.event
        if isinstance(event, Rejected):
            raise ReplayError(f"event {envelope.sequence} of run {self.run!r} was rejected: {event.reason}")
        for observer in self._observers:
            observer(envelope)
        if not isinstance(event, Decided) or self._opened.mode == "recorded":
            return
        if envelope.sequence in self._must_be_empty:
            self._must_be_empty.remove(envelope.sequence)
            if event.starts or event.kills:
                raise ReplayError(
                    f"the decision at sequence {envelope.sequence} starts jobs although none fits: {event}"
                )
        elif (awaited := self._awaited.pop(envelope.sequence, None)) is not None:
            awaited.set_result(event)
        else:
            self._decided[envelope.sequence] = event
