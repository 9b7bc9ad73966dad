"""The follower of a live source. It publishes the source's events as the log of a run, effectively once.

The rules are those of a stage's worker (`shared/streaming/worker/stage_worker.py`):

1. The published state, the position in the log and the outbox change in one transaction. It is fenced: it fails unless
   the stored sequence is the expected one. Start and recovery are one path: load, read back, deliver, continue.
2. Events are delivered after their transaction, in order. Events that a process left in the outbox are delivered again
   with the same sequence numbers, so that consumers drop duplicates.
3. The log may be ahead of the stored state, if Redis lost its last second. Then the events of the log are read back,
   and count as published.
4. A transaction stores the events themselves in a journal. A snapshot of the state replaces the journal now and then:
   its cost is at most 1 / `SHARE` of the time. After a restart, the events of the journal count as published, too.
   A source whose observations are `seen_once` has a snapshot in each transaction.
"""

import logging
import os
import time
from asyncio import CancelledError, create_task, sleep
from collections.abc import Sequence
from contextlib import suppress
from secrets import token_hex
from socket import gethostname
from typing import TYPE_CHECKING

import orjson
from aiokafka.errors import KafkaError

from shadowtime.services.follower.cluster import LiveSource
from shadowtime.shared.backoff import Backoff
from shadowtime.shared.errors import BusError, FencedError, FollowError, ShadowtimeError, StateAltered, StoreError
from shadowtime.shared.messages import ClusterOpened, Envelope, Event
from shadowtime.shared.quoting import quote, truncate
from shadowtime.shared.stages import JOBS
from shadowtime.shared.streaming import RedisStore, Settings, Transaction, read_log, topic_admin
from shadowtime.shared.streaming import clients as bus

if TYPE_CHECKING:
    from aiokafka import AIOKafkaProducer

log = logging.getLogger("shadowtime.follow")

STORE = "follow"
"""Prefix of the keys of followers in Redis."""

BATCH = 1_000
"""Number of events from which on no further instant is added to a transaction."""

SHARE = 200
"""Least ratio of the seconds between two snapshots to the seconds that a snapshot takes."""

LEAST_SECONDS, IDLE_SECONDS = 10.0, 3_600.0
"""Least seconds between two snapshots, and between two snapshots without an event between them."""

RIVALS = 5
"""Number of fenced transactions in a row after which another follower of the run is assumed."""

AWAY = 60.0
"""Seconds of failures after which a follower is unhealthy."""

CLAIM = 10
"""Seconds for which a follower claims its run. A claim that is not renewed has lapsed: its process is gone."""


class Follower:
    """The follower of one run.

    `opened` has the settings of the run. In a new run, the source sets its machine and its times.
    """

    def __init__(
        self, run: str, opened: ClusterOpened, source: LiveSource, store: RedisStore, settings: Settings
    ) -> None:
        self.run = run
        self.opened = opened
        self.source = source
        self.sequence = -1
        """Sequence of the last stored event; -1 if there is none."""
        self._store = store
        self._settings = settings
        self._key = run.encode()
        self._producer: AIOKafkaProducer | None = None
        self._delivered = 0
        self._offset = -1
        self._log = ""
        self._rivals = 0
        self._journal = 0
        """Number of events since the last snapshot."""
        self._stored_at = self._cost = 0.0
        self._failing_since: float | None = None
        self._failure = ""
        self._ended = False
        self.owner = f"process {os.getpid()} on {gethostname()} {token_hex(8)}".encode()

    @property
    def behind(self) -> float:
        """Lag of the published log behind the cluster, in seconds. It grows while Kafka or Redis fails."""
        return self.source.load.behind + self._failing_seconds

    @property
    def _failing_seconds(self) -> float:
        return 0.0 if self._failing_since is None else time.monotonic() - self._failing_since

    def failure(self) -> str | None:
        """Return why the follower has ended, or has published nothing for `AWAY` seconds; None if it works."""
        if self._ended:
            return f"has ended: {self._failure}"
        if (seconds := self._failing_seconds) < AWAY:
            return None
        return f"has published nothing for {seconds:.0f} s: {self._failure}"

    def _note_failure(self, error: Exception) -> None:
        self._failing_since = time.monotonic() if self._failing_since is None else self._failing_since
        self._failure = truncate(str(error))

    async def follow(self) -> None:
        """Follow until cancelled, or until the source has ended. Later failures of Kafka and Redis are retried.

        Raises
        ------
        FollowError
            If the log of the run has other settings or a gap, or another follower publishes the run.
        BusError, StoreError
            If Kafka or Redis fails at the start.
        """
        backoff = Backoff(0.1, 10.0)
        renewing = create_task(self.renew())
        try:
            await self.claim()
            self._partition = bus.partition_of(self.run, await topic_admin.prepare_topics(self._settings))
            while True:
                try:
                    await self._load()
                    while True:
                        await self._publish_complete()
                        backoff.reset()
                        self._failing_since = None
                        if self._due() or (self.source.over and self._journal):
                            await self._commit([], self.sequence, whole=True)
                        if self.source.over:
                            return
                        await self._listen()
                except (StoreError, BusError, KafkaError, OSError) as error:
                    self._note_failure(error)
                    self._rivals = self._rivals + 1 if isinstance(error, FencedError) else 0
                    if self._rivals >= RIVALS:
                        raise FollowError(f"run {quote(self.run)} has two followers; stop one of them") from None
                    pause = backoff.pause()
                    log.warning("%s; retrying in %.1f s", truncate(str(error)), pause)
                    await self._disconnect()
                    await sleep(pause)
        except ShadowtimeError as error:
            self._note_failure(error)
            self._ended = True
            raise
        finally:
            renewing.cancel()
            with suppress(StoreError):
                await self._store.release(self.run, self.owner)
            await self._disconnect()
            await self.source.close()

    async def _listen(self) -> None:
        """Wait for new facts. If the process is ended meanwhile, store a snapshot: another version can restore it."""
        try:
            await self.source.listen()
        except CancelledError:
            if self._journal:
                with suppress(StoreError, BusError, KafkaError, OSError):
                    await self._commit([], self.sequence, whole=True)
            raise

    def _due(self) -> bool:
        """Return whether a snapshot may be taken. The pause since the last one must suit its cost, see `SHARE`."""
        rest = LEAST_SECONDS if self._journal else IDLE_SECONDS  # without events, the positions in logs move
        return time.monotonic() >= self._stored_at + max(rest, SHARE * self._cost)

    async def claim(self) -> None:
        """Claim the run. Raise `FollowError` if another process still claims it after `CLAIM` + 2 seconds."""
        for last in (*[False] * (CLAIM + 2), True):
            holder = await self._store.claim(self.run, self.owner, CLAIM)
            if holder == self.owner:
                return
            if last:
                break
            await sleep(1.0)
        who = quote(holder.decode(errors="replace").rpartition(" ")[0])
        raise FollowError(
            f"run {quote(self.run)} has a follower already: {who}; stop it first, or choose another --run"
        )

    async def renew(self) -> None:
        """Renew the claim until cancelled. Without Redis, the claim lapses, and transactions are fenced."""
        while True:
            await sleep(CLAIM / 4)
            with suppress(StoreError):
                await self._store.claim(self.run, self.owner, CLAIM)

    async def _load(self) -> None:
        """Restore the state from Redis and from later events of the log, or open a new run. Deliver the outbox."""
        try:
            saved = await self._store.load(self.run)
        except StateAltered as error:
            raise FollowError(f"{error}; follow the cluster as a new run: --run NAME") from None
        self._delivered, self._offset = 0, -1
        self._log = await topic_admin.identity_of(self._settings, JOBS)
        self.sequence = stored = -1
        if saved is not None:
            self.sequence = saved.sequence
            self._offset = saved.offset if saved.log == self._log else -1  # read another log from its beginning
            stored = self.sequence
            state = orjson.loads(saved.snapshot or b"{}")
            self._require_same(ClusterOpened.model_validate(state["opened"]))
            self.source.restore(state["source"])
            self.source.names.restore(await self._store.read_model(self.run))
            for stored_event in saved.journal:
                self.source.published(Envelope.from_bytes(stored_event).event)
            self._journal, self._stored_at = len(saved.journal), time.monotonic()

        await self._connect()
        async for record in read_log(self._settings, JOBS, self._partition, self._offset + 1):
            if record.key == self._key and (envelope := Envelope.read(record.value)) is not None:
                await self._read_back(envelope, record.offset)
        if self.sequence > stored:
            log.warning(
                "the log of run %s was %d events ahead of Redis; they are read back",
                quote(self.run),
                self.sequence - stored,
            )
            await self._commit([], stored, whole=True)
        elif saved is None:
            await self._begin(None)

        if saved is not None:
            await self._deliver(saved.outbox)
        log.info("following", extra={"run": self.run, "sequence": self.sequence})

    async def _begin(self, opened: ClusterOpened | None) -> None:
        """Connect to the cluster, and copy the opening to `self.opened`. `opened` is as in `LiveSource.meet`."""
        opening = await self.source.meet(opened)
        self.opened = self.opened.model_copy(update=opening._asdict())

    async def _read_back(self, envelope: Envelope, offset: int) -> None:
        event = envelope.event
        if envelope.sequence > self.sequence + 1:
            raise FollowError(
                f"run {quote(self.run)} cannot continue: expected sequence {self.sequence + 1} next in Kafka's log, "
                f"found {envelope.sequence}; follow the cluster as a new run: --run NAME"
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
        """Adopt the opening event of the run. Raise `FollowError` if its settings differ from `self.opened`."""
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

    async def _publish_complete(self) -> None:
        """Publish all instants that are complete."""
        while self.sequence < 0 or self.source.next_time() is not None:
            events: list[Event] = [self.opened] if self.sequence < 0 else []
            while len(events) < BATCH and self.source.next_time() is not None:
                events += self.source.next_instant()
            if events:  # there are none while the source repeats the events of the journal
                whole = self.sequence < 0 or self.source.seen_once or self._due()
                await self._commit(events, self.sequence, whole=whole)

    async def _commit(self, events: Sequence[Event], stored: int, *, whole: bool) -> None:
        """Commit events in Redis, and deliver them. With `whole`, a snapshot replaces the journal.

        `stored` is the sequence that Redis must have before the commit.
        """
        outputs = [
            Envelope(run=self.run, cluster=self.opened.cluster, sequence=number, event=event).to_bytes()
            for number, event in enumerate(events, self.sequence + 1)
        ]
        snapshot = self._snapshot() if whole else None
        await self._store.commit(
            Transaction(
                run=self.run,
                expected=stored,
                sequence=self.sequence + len(events),
                offset=self._offset,
                partition=self._partition,
                snapshot=snapshot,
                inputs=() if whole else outputs,
                outputs=outputs,
                delivered=self._delivered,
                read_model=self.source.names.take_fresh(),
                log=self._log,
            )
        )
        self.sequence += len(events)
        self._rivals = self._delivered = 0
        self._journal = 0 if whole else self._journal + len(events)
        await self._deliver(outputs)

    def _snapshot(self) -> bytes:
        """Return the whole state, and note the time that this took."""
        began = time.monotonic()
        state = {"opened": self.opened.model_dump(mode="json"), "source": self.source.snapshot()}
        snapshot = orjson.dumps(state)
        self._stored_at = time.monotonic()
        self._cost = self._stored_at - began
        return snapshot

    async def _deliver(self, outputs: Sequence[bytes]) -> None:
        """Send the outputs of a transaction to Kafka, and record the offset of the last one."""
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
