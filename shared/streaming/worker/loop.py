"""The loop of a worker: records arrive, wait for their run's turn, are handled, and are acknowledged."""

import asyncio
import gc
import logging
import os
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import aclosing, suppress
from itertools import chain
from typing import Any

import faust
from faust.types import TP

from shadowtime.shared.errors import BusError
from shadowtime.shared.stages import Stage, described
from shadowtime.shared.streaming.kafka import MAX_KEY_LENGTH, KafkaStream, clients, name_of, topic_admin
from shadowtime.shared.streaming.protocols import Record
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.state import RedisStore, connect
from shadowtime.shared.streaming.worker.context import WorkerContext, WorkerMetrics
from shadowtime.shared.streaming.worker.fair_queue import NEW_KEYS, TURN_SECONDS, FairQueue
from shadowtime.shared.streaming.worker.left_records import LeftReader, LeftRecords, LogReading, Unhandled
from shadowtime.shared.streaming.worker.slices import SLICE_BYTES, Effort
from shadowtime.shared.streaming.worker.stage_worker import Received, StageWorker
from shadowtime.shared.streaming.worker.time_limited_thread import TimeLimitExceeded

log = logging.getLogger("shadowtime.runner")

GATHER_SECONDS = 0.02
"""Maximum seconds that a batch waits for events that Kafka has and faust has not handed over yet."""

TURNS_AT_ONCE = 100
"""The maximum number of runs that are handled together. They share the cost of a transaction and a delivery."""

HANDLING_SECONDS, FEWEST_AT_ONCE = 0.05, 25
"""While runs without a backlog are at work, the limit to the records that are handled together falls as long as that
takes longer than `HANDLING_SECONDS`, but not below `FEWEST_AT_ONCE`."""

FAILED_SECONDS = 1.0
"""Pause in seconds after a turn that failed."""

IDENTITY_SECONDS = 5.0
"""Seconds after which Kafka is asked again whether the topic is still the same."""

UNEVEN_SECONDS = 0.05
"""The maximum distance, in seconds of accumulated cost, between successive turns that are handled together."""

WAITING, WAITING_BYTES = 20_000, 64_000_000
"""The maximum numbers of records, and of their bytes, that wait for a turn. Beyond them, faust hands over no more."""

WAITING_EACH = WAITING // 2, 20, 1
"""The maximum number of waiting records of a run: while less than half of `WAITING` and `WAITING_BYTES` is used, while
less than three quarters is used, and beyond. Further records are left in the log, for the sake of other runs. Runs that
are known to have no backlog have the second number at least."""

READ_AGAIN = WAITING // 20
"""The minimum number of records that are read from the log together, unless a run has few waiting records."""

READING_SECONDS = 0.2
"""Seconds after which a reading of the log ends. The next one for the same run goes on there."""

SHORT_BACKLOG = 100
"""The maximum number of left records of a run with a short backlog."""

NO_RUN = b"\xff%d"
"""The key under which the records of a partition wait that no run can have. No name of a run has such a key."""

STORE_SECONDS, STORE_SHARE, STORED_FROM = 2.0, 0.01, 1_000
"""Least number of seconds after which it is stored again which records are not handled, largest share of the time that
this takes, and the number of offsets from the first left record to the last received one from which it is done."""

READ_BACK = 5_000
"""The number of records that the next owner of a partition receives again in one go: the last ones. Most unhandled
records of runs without a backlog are among them."""

LEFT_SECONDS = 1.0
"""Seconds until records in the log are read again after Kafka failed."""


def most_waiting(turns: FairQueue[Received]) -> int:
    """Return the maximum number of waiting records of a run, while so much of the queue is used."""
    ample, few, one = WAITING_EACH
    taken = turns.share_taken
    return ample if taken < 0.5 else few if taken < 0.75 else one


def next_reading(left: LeftRecords, turns: FairQueue[Received], *, short_first: bool = True) -> LogReading | None:
    """Return the next reading of left records, in O(runs with left records); None if nothing is to be read now.

    The log is read in large parts, so few readings take many records. One for a run with a short backlog takes records
    of all such runs on the way: after a restart there may be hundreds, and live ones among them. While half of the
    queue is used, only runs with few waiting records are read. If more is used, only runs without any are read, and
    one record of each other run. So there is room for new records.

    Parameters
    ----------
    short_first
        Whether runs with a short backlog come first. Every other reading they do not: under attack there may always be
        some, and a run with a longer backlog would never be read.
    """
    if not left:
        return None
    readings = (_of_short_backlog, _of_any_backlog) if short_first else (_of_any_backlog, _of_short_backlog)
    return next((reading for find in readings if (reading := find(left, turns)) is not None), None)


def _of_short_backlog(left: LeftRecords, turns: FairQueue[Received]) -> LogReading | None:
    few = WAITING_EACH[1]
    short = [run for run in left.keys if turns.count(run) <= few // 2 and left.count(run) <= SHORT_BACKLOG]
    if not short:
        return None
    return LogReading(min(short, key=turns.count), few, few, few if turns.full else READ_AGAIN, SHORT_BACKLOG)


def _of_any_backlog(left: LeftRecords, turns: FairQueue[Received]) -> LogReading | None:
    ample, few, one = WAITING_EACH
    key, waiting, most = min(left.keys, key=turns.count), len(turns), most_waiting(turns)
    if most == ample and waiting + READ_AGAIN <= WAITING // 2:
        return LogReading(key, one, ample, WAITING // 2 - waiting)
    limit = one if most == one or waiting > 5 * WAITING // 8 else few
    return LogReading(key, few, limit, READ_AGAIN) if turns.count(key) <= limit // 2 and not turns.full else None


class WorkerLoop:
    """The loop between faust and the stage worker."""

    def __init__(self, app: faust.App, stage: Stage, settings: Settings, metrics: WorkerMetrics) -> None:
        self.app = app
        self.stage = stage
        self.settings = settings
        self.metrics = metrics
        self.turns: FairQueue[Received] = FairQueue(WAITING, WAITING_BYTES)
        self.worker: StageWorker | None = None
        self.store: RedisStore | None = None
        self._ready = asyncio.Event()
        self._new_partitions: set[int] = set()
        self._taking = False
        """Whether newly assigned partitions are being taken."""
        self._topic_is_new = False
        """Whether the topic was deleted and made again since Kafka was asked for the first time."""
        self._arrived = asyncio.Event()
        self._below_limit = asyncio.Event()
        self._partitions = settings.partitions
        self._left = LeftRecords()
        self._reading: asyncio.Task[None] | None = None
        """The task that reads left records again."""
        self._short_first = True
        """Whether the next reading is for a run with a short backlog, if there is one."""
        self._store_due = 0.0
        """The time from which on it is stored again which records are not handled."""
        self._at_once = settings.batch_size
        """The maximum number of records that are handled together while runs without a backlog are at work."""
        self._last: Any = None
        self.read_offsets: dict[Any, int] = {}
        """Offset of the last record of each partition that faust handed over."""
        self.last_progress = time.monotonic()
        self.busy = False
        """Whether records or partitions are being handled."""
        self.failed_turns = 0
        """The number of turns that failed since the last one that succeeded."""
        self.failure = ""
        """The error of the last turn that failed."""
        self.task: asyncio.Task[Any] | None = None
        """The task of `process`."""

    def assigned(self, partitions: Any) -> None:
        """Note partitions that this worker now owns."""
        self._new_partitions |= {
            assignment.partition for assignment in partitions if assignment.topic == self.stage.reads
        }
        self._arrived.set()

    def went_back(self, partition: int, read: int) -> None:
        """Register that Kafka delivers records before offset `read` again, unasked: the log may have been replaced."""
        if self.worker is not None:
            self.worker.doubt(partition, read)
            self._arrived.set()

    async def ready(self) -> None:
        """Return when another record may wait for its turn: not while too many wait, or partitions are being taken."""
        await self._ready.wait()
        while self.turns.full or self._new_partitions or self._taking:
            self._below_limit.clear()
            await self._below_limit.wait()

    def receive(self, message: Any) -> None:
        """Put a record into the queue for its turn."""
        worker = self.worker
        if worker is None:
            return
        received = worker.receive(message)
        key = self._key_of(message)
        if self._was_handled(worker, key, message):
            self._consumer.handled(message.tp, message.offset)
        elif self._left.covers(key, message.partition, message.offset):
            self._consumer.handled(message.tp, message.offset)  # it was read again after a rebalance
        elif self._must_leave(key, message.offset):
            self._left.add(key, message.partition, received.epoch, message.offset)
            self._consumer.handled(message.tp, message.offset)
        else:
            self._put(worker, key, received)
        self._last = message
        self.read_offsets[message.tp] = message.offset
        self._arrived.set()

    def _key_of(self, record: Record) -> bytes:
        """Return the key under which a record waits: its own if a run may have it in this partition.

        Records with other keys become dead letters. Those of a partition wait together.
        """
        key, partition = record.key, record.partition
        if (
            key is not None
            and len(key) <= MAX_KEY_LENGTH
            and clients.partition_of(name_of(key), self._partitions) == partition
        ):
            return key
        return NO_RUN % partition

    def _was_handled(self, worker: StageWorker, key: bytes, record: Record) -> bool:
        """Return whether a record, which waits under `key`, was handled before; it counts as a duplicate then."""
        handled = key == record.key and worker.was_handled(record)
        if handled:
            self.metrics.duplicates.inc()
        return handled

    def _put(self, worker: StageWorker, key: bytes, received: Received) -> None:
        """Put a record into the queue."""
        record = received.record
        self.turns.put(key, received, _size(record), known=key != record.key or worker.holds(key))

    @property
    def _consumer(self) -> Any:
        """The consumer of the application: a `BatchConsumer`."""
        return self.app.consumer

    def _must_leave(self, key: bytes, offset: int) -> bool:
        """Return whether a record is to be left in the log."""
        if key in self._left:
            return self._left.is_behind(key, offset)
        few = WAITING_EACH[1]
        most = most_waiting(self.turns)
        return self.turns.count(key) >= (max(few, most) if self.turns.is_quick(key) else most)

    def first_left(self, partition: int) -> int | None:
        """Return the lowest offset of the records that were left in the log of a partition; None if none was."""
        return self._left.first_of(partition)

    @property
    def left(self) -> int:
        """The number of records that were left in the log."""
        return len(self._left)

    def _read_left(self, worker: StageWorker) -> None:
        """Begin to read records that were left in the log, for a run with few waiting records."""
        if (readable := self._readable) is not None:
            if self._reading is not None:
                self._reading.result()
            self._reading = asyncio.create_task(self._read_left_of(worker, readable))
            self._short_first = not self._short_first

    @property
    def _readable(self) -> LogReading | None:
        reading = self._reading is not None and not self._reading.done()
        return None if reading else next_reading(self._left, self.turns, short_first=self._short_first)

    async def _read_left_of(self, worker: StageWorker, reading: LogReading) -> None:
        """Read the log from the left records of a run on, until the run has enough records that wait.

        Left records of other runs on the way go into the queue, too: else each of many runs would read the same part.
        """
        key = reading.key
        part = self._left.next_part(key)
        tp, stop = TP(self.stage.reads, part.partition), part.last + 1
        if tp not in self._consumer.assignment():
            self._left.drop(part.partition)
            return
        taken, until = LeftReader(self._left, reading), time.monotonic() + READING_SECONDS
        try:
            async with aclosing(worker.read_again(part.partition, part.first, stop)) as log_parts:
                async for records in log_parts:
                    for record in records:
                        own = self._key_of(record)
                        epoch = taken.epoch_of(own, record.offset)
                        if epoch is not None and not self._was_handled(worker, own, record):
                            self._consumer.read_again(tp, record.offset)
                            self._put(worker, own, Received(record, epoch, time.monotonic()))
                    if taken.enough:
                        return
                    if time.monotonic() > until and records:
                        taken.stop_before(records[-1].offset + 1)
                        return
        except BusError as error:
            log.warning("%s: %s; trying again", self.stage.name, error)
            await asyncio.sleep(LEFT_SECONDS)
            return
        finally:
            self._arrived.set()

        if key in self._left and self._left.next_part(key) is part:
            self._left.read(key, stop, part.count)  # Kafka no longer has the rest

    async def process(self) -> None:
        """Handle the records that have arrived, run by run, until the worker stops."""
        self.task = asyncio.current_task()
        partitions = self._partitions = await topic_admin.prepare_topics(self.settings)
        client = connect(self.settings)
        settings = self.settings
        store = RedisStore(client, self.stage.name, settings.run_retention_seconds, settings.state_key)
        self.store = store
        stream = KafkaStream(self.stage, self.settings)
        await stream.start()
        context = WorkerContext(self.stage, store, stream, self.settings, self.metrics, partitions, time.monotonic)
        worker = StageWorker(context)
        self.worker = worker
        gc.freeze()  # imported objects stay: no garbage collection needs to look through them
        self._ready.set()
        watching = asyncio.create_task(self._watch_topic(stream))
        try:
            while True:
                if self.turns.pause() != 0:
                    await self.handle(worker)
                self.busy = False
                await self._gather()
                self.busy = True
                began = time.perf_counter()
                await self._take_partitions(worker)
                if worker.doubtful or self._topic_is_new:
                    await self._identify_doubtful(worker)
                if worker.untaken:
                    await worker.take_over()
                self._read_left(worker)
                await self._store_unhandled(worker)
                if self.turns.pause() == 0:
                    await self._turn(worker)
                    self.metrics.batch_seconds.observe(time.perf_counter() - began)
                if not self.failed_turns:
                    self.last_progress = time.monotonic()
        except Exception:  # an error of Kafka or Redis; `handle` catches the errors of runs
            log.exception("%s cannot continue", self.stage.name)
            os._exit(1)
        finally:
            watching.cancel()
            worker.close()
            await stream.stop()
            await client.aclose()

    async def _take_partitions(self, worker: StageWorker) -> None:
        """Take newly assigned partitions. No record is received meanwhile: it may have been handled."""
        self._taking = True
        while self._new_partitions:
            partition = self._new_partitions.pop()
            await self._identify(worker, partition)
            if (stored := await worker.take(partition)) is not None:
                await self._go_on(partition, *stored)
        self._taking = False
        self._below_limit.set()

    async def _go_on(self, partition: int, epoch: int, unhandled: Unhandled) -> None:
        """Begin to read a partition near the place where its last owner stopped, if the committed offset is far behind.

        The unhandled records of runs that have some before that are left in the log.
        """
        tp, start = TP(self.stage.reads, partition), unhandled.stop - READ_BACK
        await self._flow()
        if start > (self._consumer.committed(tp) or 0):
            log.info("%s: begin at offset %d of partition %d", self.stage.name, start, partition)
            self._left.drop(partition)
            spans = {key: span for key, span in unhandled.spans.items() if span.first < start}
            self._left.restore(partition, epoch, spans)
            self._consumer.go_on(tp, start)

    async def _flow(self) -> None:
        """Return when no rebalance is under way, at whose end faust goes to the committed offset."""
        while not self._consumer.flow_active:
            await asyncio.sleep(0.1)

    async def _store_unhandled(self, worker: StageWorker) -> None:
        """Store now and then which records are not handled, if many lie between them and the last received one."""
        began = time.monotonic()
        if not self._left or began < self._store_due:
            return
        waiting: defaultdict[int, list[tuple[bytes, int]]] = defaultdict(list)
        current: dict[tuple[int, int], bool] = {}  # by stretch of a log
        pending = ((self._key_of(received.record), received) for received in worker.pending)
        for key, received in chain(self.turns.items, pending):
            stretch = received.record.partition, received.epoch
            if stretch not in current:
                current[stretch] = worker.is_current(received)
            if current[stretch]:
                waiting[received.record.partition].append((key, received.record.offset))
        stored = {}  # all are of one instant: while one is sent, other records may be read from the log
        for tp in self._consumer.assignment():
            first, stop = self._left.first_of(tp.partition), self._consumer.stop_of(tp)
            if tp.topic == self.stage.reads and first is not None and stop is not None and first + STORED_FROM <= stop:
                identity = worker.identity(tp.partition)
                stored[tp.partition] = self._left.unhandled(tp.partition, identity, stop, waiting[tp.partition])
        took = time.monotonic() - began
        self._store_due = began + max(STORE_SECONDS, took / STORE_SHARE)
        for partition, unhandled in stored.items():
            await worker.store_unhandled(partition, unhandled)

    async def _watch_topic(self, stream: KafkaStream) -> None:
        """Ask Kafka now and then whether the topic is still the same."""
        known = None
        while True:
            with suppress(BusError):
                present = await stream.topic_id()
                if known not in (None, present):
                    self._topic_is_new = True
                    self._arrived.set()
                known = present
            await asyncio.sleep(IDENTITY_SECONDS)

    async def _identify_doubtful(self, worker: StageWorker) -> None:
        """Check doubtful partitions; all partitions if the topic is new."""
        owned = {tp.partition for tp in self.app.consumer.assignment() if tp.topic == self.stage.reads}
        new, self._topic_is_new = self._topic_is_new, False
        for partition in set(worker.doubtful) - owned:
            del worker.doubtful[partition]
        for partition in sorted(owned if new else worker.doubtful):
            await self._identify(worker, partition)

    async def _identify(self, worker: StageWorker, partition: int) -> None:
        """Read a partition from its beginning if its log is not the one whose offsets are stored."""
        if await worker.identify(partition):
            self._left.drop(partition)
            await self._flow()
            await self._consumer.begin_again(TP(self.stage.reads, partition))
            await worker.keep_log(partition)

    async def _turn(self, worker: StageWorker) -> None:
        """Handle the next records of the runs whose turns are handled together."""
        turns = self._next_turns()
        items = [received for _, its in turns for received in its]
        self._below_limit.set()
        began = time.perf_counter()
        spent = await self.handle(worker, items)
        put_off = {id(received) for received in worker.take_put_off()}
        stages_own = sum(effort.seconds + effort.restoring for effort in spent.values())
        took = time.perf_counter() - began
        if took > HANDLING_SECONDS:
            self._at_once = max(FEWEST_AT_ONCE, min(self._at_once, len(items)) * 3 // 4)
        else:
            self._at_once = min(self.settings.batch_size, self._at_once + 1)
        shared = max(0.0, took - stages_own) / len(turns)
        for key, its in turns:
            own = Effort()
            for name in {name_of(received.record.key) for received in its}:
                own.add(spent.get(name, Effort()))
            back = [received for received in its if id(received) in put_off]
            for received in reversed(back):
                self.turns.put_back(key, self._key_of(received.record), received, _size(received.record))
            cost = shared + own.seconds
            if key is not NEW_KEYS:  # restoring some runs must not delay all other new runs
                cost += own.restoring
            mean = own.busy / max(1, len(its) - len(back))
            self.turns.charge(key, cost, mean, own.longest, self._left.count(key))

    async def handle(self, worker: StageWorker, items: Sequence[Received] = ()) -> Mapping[str, Effort]:
        """Handle records; without records, commit those handled before. Return the work by run.

        Acknowledge to faust the records that are stored and delivered by now. After an unforeseen error, also
        acknowledge the records that are given up: they are looked for in the log at the next record of their run.
        """
        left: Sequence[Received] = ()
        try:
            spent = await (worker.handle(items, TURN_SECONDS) if items else worker.commit_all())
            if items:
                self.failed_turns = 0
        except (Exception, TimeLimitExceeded) as error:
            log.exception("%s cannot handle records", self.stage.name)
            self.failed_turns, self.failure = self.failed_turns + 1, described(error)
            spent, left = {}, [*await worker.give_up(), *items]
            await asyncio.sleep(FAILED_SECONDS)

        now, latency = time.time(), self.metrics.latency
        tps: dict[tuple[int, int], Any] = {}  # by stretch of a log: its partition; None if that log is gone
        for received in (*worker.take_done(), *left):
            message: Any = received.record
            stretch = message.partition, received.epoch
            if stretch not in tps:
                tps[stretch] = TP(self.stage.reads, message.partition) if worker.is_current(received) else None
            if (tp := tps[stretch]) is not None:
                latency.observe(now - message.timestamp)
                self._consumer.handled(tp, message.offset)

        return spent

    def _next_turns(self) -> list[tuple[bytes | None, Sequence[Received]]]:
        """Return the keys whose turns are next, with their records. They have about the same accumulated cost.

        No turn follows that of a costly run.
        """
        turns: list[tuple[bytes | None, Sequence[Received]]] = []
        remaining, size = self._at_once if self.turns.quick_at_work else self.settings.batch_size, 0
        while not turns or (
            remaining > 0
            and size < SLICE_BYTES
            and len(turns) < TURNS_AT_ONCE
            and self.turns.next_within(UNEVEN_SECONDS)
        ):
            key, items = self.turns.take(remaining, SLICE_BYTES)
            turns.append((key, items))
            if self.turns.is_costly(key):
                break
            remaining -= len(items)
            size += sum(len(received.record.value or b"") for received in items)

        return turns

    async def _gather(self) -> None:
        """Wait for an event, and for the events behind it that Kafka is known to have.

        Events of one published batch may be handed over at different times. A worker that began with the first would
        split the batch, and the next stage would split it again. Each part costs a transaction and a delivery in every
        later stage.
        """
        while (pause := self.turns.pause()) != 0 and not self._upkeep_due():
            self._arrived.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._arrived.wait()

        with suppress(TimeoutError):
            async with asyncio.timeout(GATHER_SECONDS):
                while len(self.turns) < self.settings.batch_size and self._has_more():
                    self._arrived.clear()
                    await self._arrived.wait()

    def _upkeep_due(self) -> bool:
        """Return whether there is work besides records."""
        worker = self.worker
        due = self._new_partitions or self._topic_is_new
        due = due or self._readable is not None
        return bool(due or (worker is not None and (worker.untaken or worker.doubtful)))

    def oldest_wait(self) -> float:
        """Return the seconds since the oldest record that waits for its turn arrived, in O(runs); 0 if none does.

        Records of costly runs do not count.
        """
        now = time.monotonic()
        return max((now - received.time for received in self.turns.heads()), default=0.0)

    def _has_more(self) -> bool:
        """Return whether Kafka is known to have records behind the last received one."""
        if self._last is None or self._last.tp not in self._consumer.assignment():  # highwater would raise
            return False
        high: int | None = self._consumer.highwater(self._last.tp)
        return high is not None and self._last.offset + 1 < high


def _size(record: Record) -> int:
    return len(record.key or b"") + len(record.value or b"")
