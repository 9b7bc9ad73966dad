"""Follow a live source: its events become the log of a run, effectively once, whatever happens to anybody.

The rules, those of a stage's worker (`shared/streaming/worker/stage_worker.py`):

1. What was told, the position in the log and the outbox change in one transaction, fenced by the sequence from which
   it started. Start and recovery are one path: load, read back, deliver, go on.
2. Events leave after their transaction, in order; what a process left in the outbox leaves again, with the same
   numbers, by which whoever has them drops them.
3. The log may be ahead of what is stored, if Redis lost its last second: what it has is read back, and counts as told.
"""

import logging
from asyncio import sleep
from collections.abc import Sequence
from typing import TYPE_CHECKING

import orjson
from aiokafka.errors import KafkaError

from shadowtime.services.follower.cluster import LiveSource
from shadowtime.shared.backoff import Backoff
from shadowtime.shared.errors import BusError, FencedError, FollowError, StoreError
from shadowtime.shared.messages import ClusterOpened, Envelope, Event
from shadowtime.shared.quoting import quote, truncate
from shadowtime.shared.stages import JOBS
from shadowtime.shared.streaming import RedisStore, Settings, Transaction, read_log, topic_admin
from shadowtime.shared.streaming import clients as bus

if TYPE_CHECKING:
    from aiokafka import AIOKafkaProducer

log = logging.getLogger("shadowtime.follow")

STORE = "follow"
"""Prefix of its keys in Redis."""

BATCH = 1_000
"""Events after which a transaction ends, with their instant."""

RIVALS = 5
"""Times in a row that another follower of the run may be found at work."""


class Follower:
    """One run.

    Parameters
    ----------
    opened
        Its settings; the machine in it is what the source says.
    """

    def __init__(
        self, run: str, opened: ClusterOpened, source: LiveSource, store: RedisStore, settings: Settings
    ) -> None:
        self.run = run
        self.opened = opened
        self.source = source
        self.sequence = -1
        """Of the last event that is stored."""
        self._store = store
        self._settings = settings
        self._key = run.encode()
        self._producer: AIOKafkaProducer | None = None
        self._delivered = 0
        self._offset = -1
        self._rivals = 0

    async def follow(self) -> None:
        """Follow until cancelled, or all is told.

        Raises
        ------
        FollowError
            If the log knows the run under other settings, or its beginning is gone, or another follower has it.
        """
        backoff = Backoff(0.1, 10.0)
        self._partition = bus.partition_of(self.run, await topic_admin.prepare_topics(self._settings))
        try:
            while True:
                try:
                    await self._load()
                    while True:
                        await self._tell()
                        backoff.reset()
                        if self.source.over:
                            return
                        await self.source.listen()
                except (StoreError, BusError, KafkaError, OSError) as error:
                    self._rivals = self._rivals + 1 if isinstance(error, FencedError) else 0
                    if self._rivals >= RIVALS:
                        raise FollowError(f"another follower tells run {quote(self.run)}: end one") from None
                    pause = backoff.pause()
                    log.warning("%s; trying again in %.1f s", truncate(str(error)), pause)
                    await self._disconnect()
                    await sleep(pause)
        finally:
            await self._disconnect()
            await self.source.close()

    async def _load(self) -> None:
        """Stand where the last process stood: as stored, and beyond that as the log has it."""
        saved = await self._store.load(self.run)
        self._delivered, self._offset = 0, -1
        self.sequence = stored = -1
        if saved is not None:
            self.sequence, self._offset = saved.sequence, saved.offset
            stored = self.sequence
            state = orjson.loads(saved.snapshot or b"{}")
            self._require_same(ClusterOpened.model_validate(state["opened"]))
            self.source.restore(state["source"])
            self.source.names.restore(await self._store.read_model(self.run))

        await self._connect()
        async for record in read_log(self._settings, JOBS, self._partition, self._offset + 1):
            if record.key == self._key and (envelope := Envelope.read(record.value)) is not None:
                await self._read_back(envelope, record.offset)
        if self.sequence > stored:
            log.warning("the log of run %s is %d events ahead of Redis", quote(self.run), self.sequence - stored)
            await self._commit([], stored)
        elif saved is None:
            await self._begin(None)

        if saved is not None:
            await self._deliver(saved.outbox)
        log.info("following", extra={"run": self.run, "sequence": self.sequence})

    async def _begin(self, opened: ClusterOpened | None) -> None:
        """Meet the source; of a new run it says what it opens with."""
        opening = await self.source.meet(opened)
        self.opened = self.opened.model_copy(update=opening._asdict())

    async def _read_back(self, envelope: Envelope, offset: int) -> None:
        event = envelope.event
        if envelope.sequence > self.sequence + 1:
            raise FollowError(
                f"the log of run {quote(self.run)} has sequence {envelope.sequence}, but nothing is stored after "
                f"{self.sequence}: its beginning is gone; follow as a new one: --run NAME"
            )

        self._offset = max(self._offset, offset)
        if envelope.sequence <= self.sequence:
            return
        if isinstance(event, ClusterOpened):
            self._require_same(event)
            await self._begin(event)
        else:
            self.source.published(event)

        self.sequence = envelope.sequence

    def _require_same(self, opened: ClusterOpened) -> None:
        """Take on how the run was opened; raise `FollowError` if its settings are not ours."""
        options = self.opened.model_dump()
        names = ("cluster", "policy", "runtime", "adjustment", "wait_bound", "seed", "sample_every")
        other = [
            f"{name} {value}, not {options[name]}"
            for name in names
            if (value := getattr(opened, name)) != options[name]
        ]
        if other:
            raise FollowError(
                f"run {quote(self.run)} was opened with other settings ({', '.join(other)}); choose another --run"
            )
        self.opened = opened

    async def _tell(self) -> None:
        """Tell all instants that are complete."""
        while self.sequence < 0 or self.source.next_time() is not None:
            events: list[Event] = [self.opened] if self.sequence < 0 else []
            while len(events) < BATCH and self.source.next_time() is not None:
                events += self.source.next_instant()
            await self._commit(events, self.sequence)

    async def _commit(self, events: Sequence[Event], stored: int) -> None:
        outputs = [
            Envelope(run=self.run, cluster=self.opened.cluster, sequence=number, event=event).to_bytes()
            for number, event in enumerate(events, self.sequence + 1)
        ]
        state = {"opened": self.opened.model_dump(mode="json"), "source": self.source.snapshot()}
        await self._store.commit(
            Transaction(
                run=self.run,
                expected=stored,
                sequence=self.sequence + len(events),
                offset=self._offset,
                partition=self._partition,
                snapshot=orjson.dumps(state),
                inputs=(),
                outputs=outputs,
                delivered=self._delivered,
                read_model=self.source.names.take_fresh(),
            )
        )
        self.sequence += len(events)
        self._rivals = self._delivered = 0
        await self._deliver(outputs)

    async def _deliver(self, outputs: Sequence[bytes]) -> None:
        """Publish what a transaction has put into the outbox, and note where it lies."""
        if self._producer is None:
            raise BusError("not connected to Kafka")
        under_way = [await self._producer.send(JOBS, output, self._key, self._partition) for output in outputs]
        for sent in under_way:
            self._offset = max(self._offset, (await sent).offset)
        self._delivered += len(outputs)

    async def _connect(self) -> None:
        if self._producer is None:
            self._producer = bus.producer(self._settings)
            await self._producer.start()

    async def _disconnect(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.stop()
