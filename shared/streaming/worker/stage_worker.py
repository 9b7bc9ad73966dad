"""The worker of one stage on a stream: effectively once, whatever the stream and the store do.

The rules for each run:

1. Event `last + 1` is handled. An event up to `last` is a duplicate. An event beyond `last + 1` is never applied: the
   missing events are looked for in the log, once. If they are not there, the event is a dead letter.
2. State, position and outputs change in one transaction, fenced by the sequence from which the worker started. If it
   fails in any way, the worker forgets the run and loads it again: recovery and start are one path. During a
   transaction, the next events are computed; they are stored after it.
3. Outputs are published after their transaction, in order, and only then leave the outbox. Outputs that a predecessor
   left in the outbox are published first.
4. An event that the stage fails to handle is undone. A run that cannot continue is quarantined: its log and the dead
   letters have the reason, later events are counted and left aside, and all other runs continue.

A record that cannot be used goes to the dead letters, with the reason. The stream continues.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from itertools import islice
from math import inf
from typing import Any, TypeVar

import orjson
from pydantic import ValidationError

from shadowtime.shared.backoff import Backoff
from shadowtime.shared.errors import BusError, FencedError, StoreError, first_of
from shadowtime.shared.messages import Envelope
from shadowtime.shared.quoting import quote, truncate
from shadowtime.shared.stages import JOBS, Stage, described
from shadowtime.shared.streaming.kafka import PartitionLog, UnreadableReason, UnsupportedReason, name_of, partition_of
from shadowtime.shared.streaming.protocols import OwnRecord, Record, RunSummary
from shadowtime.shared.streaming.worker.batched_compute import TurnEndedError
from shadowtime.shared.streaming.worker.context import WorkerContext
from shadowtime.shared.streaming.worker.dead_letter_buffer import DeadLetters
from shadowtime.shared.streaming.worker.left_records import Unhandled
from shadowtime.shared.streaming.worker.run import LogPosition, Run, RunPhase
from shadowtime.shared.streaming.worker.run_cache import RunCache, give_back, memory_used
from shadowtime.shared.streaming.worker.run_lifecycle import RunLifecycle
from shadowtime.shared.streaming.worker.slice_committer import SliceCommitter
from shadowtime.shared.streaming.worker.slices import Effort, Slice, Work
from shadowtime.shared.streaming.worker.time_limited_thread import TimeLimitedThread

# The admission of records to a stage, and the reasons for refusals: no JSON, unknown schema, too large, ….

PIECE_SECONDS = 0.05
"""Seconds after which the take-over of the runs of a partition pauses, so that records are handled."""

SUMMARIES_AT_ONCE = 200
"""The maximum number of runs that one request to the store asks about."""

LOADED_AT_ONCE = 16
"""The maximum number of runs that are loaded at once. Before the next runs are loaded, runs are evicted if memory is
short."""

RELIEF_SECONDS, LOADING_SECONDS = 0.5, 0.05
"""Minimum seconds between two measurements of the memory: after records are handled, and before runs are loaded. Each
measurement reads a file, and lets other threads run meanwhile."""

MAX_UNHANDLED_BYTES = 1_000_000
"""The maximum length of what is stored of the unhandled records of a partition."""

READ_AT_ONCE = 50_000
"""Bytes of records up to which they are parsed in the event loop. That takes some milliseconds at most."""


class AdmissionError(Exception):
    """A record has no envelope that the stage accepts; the message has the reason."""


def admitted(record: Record, stage: Stage, partitions: int, max_bytes: int) -> Envelope:
    """Return the envelope in a record; O(its bytes).

    Parameters
    ----------
    partitions
        The number of partitions of the topic. The name of a run determines its partition.
    max_bytes
        The largest message that is accepted.

    Raise `AdmissionError` if the record has no envelope, or an envelope with a wrong key, partition or field.
    """
    if record.value is None:
        raise AdmissionError("the message is empty")
    if isinstance(record.value, UnreadableReason):
        raise AdmissionError(record.value.decode())
    if len(record.value) > max_bytes:
        raise AdmissionError(f"the message has {len(record.value)} bytes; the limit is {max_bytes}")
    try:
        envelope = Envelope.from_bytes(record.value)
    except ValidationError as error:
        raise AdmissionError(f"not an envelope of this schema: {first_of(error, 'message')}") from None
    except Exception as error:  # any error of a library at unforeseen bytes
        raise AdmissionError(f"not an envelope of this schema: {described(error)}") from None

    if record.key != envelope.run.encode(errors="replace"):
        key = "no key" if record.key is None else f"key {quote(record.key.decode(errors='replace'))}"
        raise AdmissionError(f"run {quote(envelope.run)}: the message has {key}; expected the name of the run")
    if (home := partition_of(envelope.run, partitions)) != record.partition:
        raise AdmissionError(f"run {quote(envelope.run)} belongs to partition {home}, not {record.partition}")
    if (intrusion := stage.forged_field(envelope)) is not None:
        raise AdmissionError(f"the message has {intrusion!r}, which only stage {stage.name} or a later one may add")
    return envelope


def sequence_of(value: bytes | None) -> int | None:
    """Return the sequence in a message, without a check of the rest; None if there is none. O(its bytes)."""
    try:
        sequence = orjson.loads(value or b"")["sequence"]
    except (ValueError, TypeError, LookupError):
        return None
    return sequence if isinstance(sequence, int) else None


def all_admitted(records: Sequence[Record], stage: Stage, partitions: int, max_bytes: int) -> list[Envelope | str]:
    """Return the envelope in each record, or why the record is refused; see `admitted`."""

    def read(record: Record) -> Envelope | str:
        try:
            return admitted(record, stage, partitions, max_bytes)
        except AdmissionError as refused:
            return str(refused)

    return [read(record) for record in records]


# The processing of records, several runs concurrently. A run continues while its last slice is being committed.


@dataclass(frozen=True)
class Received:
    """A received record. `time` is the worker's clock at its receipt.

    `epoch` is the number of its stretch: of the part of the log that was handed over without a gap.
    """

    record: Record
    epoch: int
    time: float


class RecordProcessor:
    """Handles records, those of a run in order. Only one call may be under way at a time.

    After any exception, the caller must forget all runs, and handle all records again that are not yet delivered.

    Parameters
    ----------
    catching_up
        Whether this is a rebuild: the next owner of a run that is loaded here must read the rest of the run's log.
    """

    def __init__(
        self,
        context: WorkerContext,
        thread: TimeLimitedThread,
        lifecycle: RunLifecycle,
        committer: SliceCommitter,
        letters: DeadLetters,
        *,
        catching_up: bool,
    ) -> None:
        self.stage = context.stage
        self._lifecycle = lifecycle
        self._committer = committer
        self._context = context
        self._metrics = context.metrics
        self._thread = thread
        self._letters = letters
        self._catching_up = catching_up
        self._runs = RunCache()
        self._committing: dict[str, Run] = {}
        """Runs whose last slice is being committed. If the cache evicted one, it would be loaded without the slice."""
        self._logs: dict[int, PartitionLog] = {}
        self._stored: dict[int, dict[bytes, RunSummary]] = {}
        """The runs of each partition that were stored when this worker took it."""
        self.untaken: dict[str, int] = {}
        """The runs of newly assigned partitions that are not taken over yet, with their partitions."""
        self.doubtful: dict[int, int] = {}
        """Partitions whose log may have been replaced, each with the offset of a record that their log had."""
        self.replaced_logs: dict[int, str] = {}
        """The reasons why the logs of partitions were replaced while this process ran."""
        self.unsupported: str | None = None
        """The reason why the last records could not be read, if their codec is the reason; else None."""
        self.put_off: set[tuple[int, int, int]] = set()
        """The records that the last call of `handle` did not come to: partition, epoch and offset of each."""
        self._relieved = 0.0
        self._searching = asyncio.Lock()  # only one part of the log is read at a time

    def receive(self, record: Record) -> Received:
        """Note a record, in the order in which the stream hands records over. `handle` may handle it later."""
        epoch = self._log(record.partition).receive(record.offset, record.key, record.value)
        return Received(record, epoch, self._context.clock())

    async def read_again(self, partition: int, start: int, stop: int) -> AsyncGenerator[Sequence[Record], None]:
        """Yield the records between two offsets of a partition's log again, in parts.

        Raise `BusError` if Kafka does not deliver them.
        """
        reading = self._context.stream.replay(partition, start, stop)
        async with self._searching, aclosing(reading) as parts:
            async for records in parts:
                yield records

    def holds(self, key: bytes | None) -> bool:
        """Return whether the run of a key is held in memory, or is being committed."""
        return key is not None and self._in_memory(name_of(key))

    def _in_memory(self, name: str) -> bool:
        return name in self._runs or name in self._committing

    async def drop(self) -> None:
        """Forget all runs: each is loaded again at its next record."""
        await self._committer.drain()
        self._runs.clear()
        self._committing.clear()

    def doubt(self, partition: int, offset: int) -> None:
        """Record that the log of a partition, which had a record at `offset`, may have been replaced."""
        self.doubtful[partition] = max(self.doubtful.get(partition, -1), offset)

    async def identify(self, partition: int) -> bool:
        """Return whether another log has replaced a partition's log since the identity of that log was stored.

        If so, all offsets count anew: hand the log over from its beginning, and call `keep_log` after that.
        """
        partition_log, store, stream = self._log(partition), self._context.store, self._context.stream
        known = partition_log.identity or await store.log_of(partition)
        topic, doubt = await stream.topic_id(), self.doubtful.get(partition, -1)
        if known is None:
            partition_log.identify(f"{topic}/0")
            await self.keep_log(partition)
            return False
        former, _, count = known.rpartition("/")
        if former != topic:
            identity, why = f"{topic}/0", f"topic {self.stage.reads} was deleted and made again"
        elif doubt >= 0 and await stream.end(partition) <= doubt:
            identity, why = f"{topic}/{int(count) + 1}", f"the log ends before offset {doubt}, which was handled"
        else:
            partition_log.identify(known)
            self.doubtful.pop(partition, None)
            return False

        if partition_log.identity:
            partition_log.begin_again(identity)
        else:
            partition_log.identify(identity)
        self.doubtful.pop(partition, None)
        reason = f"partition {partition}: {why}; all of it is read anew, and events are judged by their sequence"
        log.error("%s: %s", self.stage.name, reason)
        self._letters.add(OwnRecord(self.stage.reads, partition), reason)
        self._metrics.replaced_logs.inc()
        self.replaced_logs[partition] = reason
        return True

    async def keep_log(self, partition: int) -> None:
        """Store the identity of a partition's log."""
        await self._context.store.set_log(partition, self.identity(partition))

    def is_current(self, received: Received) -> bool:
        """Return whether a record is of the present log of its partition."""
        partition_log = self._log(received.record.partition)
        return partition_log.identity_of(received.epoch) == partition_log.identity

    def identity(self, partition: int) -> str:
        """Return the identity of a partition's present log; empty if it is not known."""
        return self._log(partition).identity

    async def take(self, partition: int) -> tuple[int, Unhandled] | None:
        """Note the runs of a newly assigned partition, for `take_over` and `was_handled`. O(runs).

        Return what an owner of the partition stored of its unhandled records, with the number of a new stretch.
        """
        names = await self._context.store.runs(partition)
        self._stored[partition] = {
            name.encode(): summary for name, summary in await self._summaries(names) if summary is not None
        }
        self.untaken.update(dict.fromkeys(names, partition))
        return await self._stored_unhandled(partition)

    async def _stored_unhandled(self, partition: int) -> tuple[int, Unhandled] | None:
        """Return what an owner of a partition stored of its unhandled records, with the number of a new stretch.

        Return None if nothing was stored for the present log, or nothing that can be read. If that log is shorter, it
        may have been replaced.
        """
        content = await self._context.store.unhandled_of(partition)
        try:
            unhandled = None if content is None else Unhandled.from_bytes(content)
        except ValueError:  # Another release has stored it, or another user of a Redis without a secret.
            unhandled = None
        if unhandled is None or unhandled.log != self.identity(partition):
            return None
        if await self._context.stream.end(partition) < unhandled.stop:
            self.doubt(partition, unhandled.stop - 1)
            return None
        return self._log(partition).skip(), unhandled

    def was_handled(self, record: Record) -> bool:
        """Return whether the stored state of a run included a record when this worker took its partition.

        After a restart, all records behind the first unhandled one are read again. Beside the backlog of a run these
        may be hundreds of thousands, most of them handled. They take no turn.
        """
        summary = self._stored.get(record.partition, {}).get(record.key or b"")
        if summary is None or record.offset > summary.offset:  # nearly all records: do not read them
            return False
        sequence, identity = sequence_of(record.value), self._log(record.partition).identity
        return sequence is not None and summary.includes(record.offset, sequence, identity)

    async def _summaries(self, names: Sequence[str]) -> list[tuple[str, RunSummary | None]]:
        """Return the names of runs with their summaries."""
        every: list[tuple[str, RunSummary | None]] = []
        for first in range(0, len(names), SUMMARIES_AT_ONCE):
            part = names[first : first + SUMMARIES_AT_ONCE]
            every += zip(part, await self._context.store.summaries(part), strict=True)
        return every

    async def take_over(self) -> None:
        """Deliver outputs that the last owners of noted runs may have left undelivered. Do one piece of that work.

        A piece ends with the run at which `PIECE_SECONDS` are over. Most runs have no such outputs, and cost O(1).
        """
        until = self._context.clock() + PIECE_SECONDS
        while self.untaken:
            part = list(islice(self.untaken.items(), SUMMARIES_AT_ONCE))
            summaries = await self._context.store.summaries([name for name, _ in part])
            for (name, partition), summary in zip(part, summaries, strict=True):
                await self._take_run(name, partition, summary)
                del self.untaken[name]
                if self._context.clock() >= until:
                    return

    async def _take_run(self, name: str, partition: int, summary: RunSummary | None) -> None:
        if summary is not None and summary.log == self._log(partition).identity:
            self.doubt(partition, summary.offset)  # if Kafka is older than Redis, its log ends before this offset
        if summary is None:
            await self._context.store.forget(name)  # it was closed long ago, and its state has expired
        elif summary.catching_up:
            await self._catch_up(name, partition)
        elif summary.outbox > self._runs.delivered(name, summary.sequence):
            run = await self._lifecycle.deliver_left(name, partition, self._runs.pop_evicted(name))
            if run is not None and name not in self._runs:
                self._runs.remember(run)
        elif summary.quarantined is not None:
            self._lifecycle.note_quarantine(name, summary.quarantined)

    async def _catch_up(self, name: str, partition: int) -> None:
        """Read the rest of the log of a run that was rebuilt."""
        begun = await self._lifecycle.begin(name, alone=False)
        if begun is None:
            await self._hold_nothing()
            begun = await self._lifecycle.begin(name, alone=True)
        run = await self._lifecycle.load(name, partition, self._runs.pop_evicted(name), begun or 0)
        if run.quarantined is None:
            self._align(run, self._log(partition).identity)
            await self._follow(run, run.position.offset + 1, None)
            await self._committer.wait_committed(run)
            run.catching_up = False
            await self._committer.commit(run, Slice(run.state.sequence, offset=run.position.offset))

        self._runs.take_out(name)
        self._runs.remember(run)

    async def handle(self, received: Sequence[Received], seconds: float) -> None:
        """Handle records, those of a run in order. By the end of the next call, they are stored and delivered.

        After `seconds` of work no further work begins, and the records of these runs are `put_off`.
        """
        self.put_off.clear()
        self._lifecycle.limit_turn(seconds)
        try:
            await self._handle(received, seconds)
        finally:
            self._lifecycle.limit_turn(inf)

    async def _handle(self, received: Sequence[Received], seconds: float) -> None:
        works: dict[str, list[tuple[int, Work]]] = {}
        for entry, envelope in zip(received, await self._read([entry.record for entry in received]), strict=True):
            if isinstance(envelope, Envelope):
                works.setdefault(envelope.run, []).append((entry.epoch, (entry.record, envelope)))
            else:
                self._letters.add(entry.record, envelope)

        known = [name for name in works if self._in_memory(name)]
        unknown = await self._with_new_records([name for name in works if not self._in_memory(name)], works)
        commits = [self._settle_run(run) for name, run in self._committing.items() if name not in works]
        suspects = await self._handle_together(known, works, commits)
        for first in range(0, len(unknown), LOADED_AT_ONCE):
            if self._lifecycle.turn_ended:
                for name in unknown[first:]:
                    self._put_off(works[name])
                break
            await self._relieve(LOADING_SECONDS)
            suspects += await self._handle_together(unknown[first : first + LOADED_AT_ONCE], works)
        for name in suspects:
            await self._hold_nothing()
            self._lifecycle.limit_turn(seconds)
            await self._handle_run(name, works[name], None, alone=True)
            await self._hold_nothing()
        await self._relieve(RELIEF_SECONDS)

    async def _handle_together(
        self,
        names: Sequence[str],
        works: Mapping[str, Sequence[tuple[int, Work]]],
        commits: Sequence[Coroutine[Any, Any, None]] = (),
    ) -> list[str]:
        """Handle records of runs concurrently. Return the names of the suspects; no record of a suspect is handled."""
        handling = [self._handle_run(name, works[name], self._committing.pop(name, None)) for name in names]
        ends = await asyncio.gather(*handling, *commits, return_exceptions=True)  # after an error, all runs still end
        for end in ends:
            if isinstance(end, BaseException):
                raise end
        return [name for name, end in zip(names, ends, strict=False) if not end]

    async def _with_new_records(
        self, names: Sequence[str], works: Mapping[str, Sequence[tuple[int, Work]]]
    ) -> list[str]:
        """Return the names of runs that are to be loaded. The records of the others were handled before.

        After a restart, all records behind the first unhandled one are read again. Most of them are of runs that need
        not be restored for that.
        """
        new: list[str] = []
        for name, summary in await self._summaries(names):
            if summary is None or not self._all_handled(name, summary, works[name]):
                new.append(name)
            else:
                self._metrics.duplicates.inc(len(works[name]))
        return new

    def _all_handled(self, name: str, summary: RunSummary, works: Sequence[tuple[int, Work]]) -> bool:
        """Return whether a stored run has handled these records, and its outputs are delivered."""
        log_of = self._log(works[0][1][0].partition).identity_of
        return summary.outbox <= self._runs.delivered(name, summary.sequence) and all(
            summary.includes(record.offset, envelope.sequence, log_of(epoch)) for epoch, (record, envelope) in works
        )

    def _put_off(self, works: Sequence[tuple[int, Work]]) -> None:
        self.put_off |= {(record.partition, epoch, record.offset) for epoch, (record, _) in works}

    async def _relieve(self, every: float) -> None:
        """Evict all runs if this process uses too much memory. Check this at most once in `every` seconds."""
        now = self._context.clock()
        if now < self._relieved + every:
            return
        self._relieved = now
        if (used := memory_used()) > self._context.memory_for_runs:
            held = len(self._runs)
            await self._hold_nothing()
            give_back()
            left = memory_used()
            if left > self._context.memory_for_runs:  # nothing more can be evicted: wait before the next try
                self._relieved = now + 1.0
            if held:
                log.warning("%d MB of memory used: %d runs evicted; %d MB used now", used // 10**6, held, left // 10**6)

    async def _hold_nothing(self) -> None:
        """Wait until all slices are stored and delivered, and evict all runs."""
        for run in list(self._committing.values()):
            await self._settle_run(run)
        self._runs.evict_all()

    async def _settle_run(self, run: Run) -> None:
        """Wait until the last slice of a run is stored and delivered, and keep the run."""
        await self._committer.wait_committed(run)
        self._committing.pop(run.name, None)
        self._keep(run)

    def _keep(self, run: Run) -> None:
        """Keep a run for its next record. A run without state to keep is forgotten once it is committed."""
        if run.commit is not None:
            self._committing[run.name] = run
        elif run.phase is not RunPhase.CLOSED and (run.state.sequence >= 0 or run.quarantined is not None):
            self._runs.hold(run)

    async def _read(self, records: Sequence[Record]) -> list[Envelope | str]:
        """Return the envelope in each record, or why the record is refused."""
        settings, partitions = self._context.settings, self._context.partitions
        most = settings.max_message_bytes if self.stage.reads == JOBS else settings.max_output_bytes
        if sum(len(record.value or b"") for record in records) <= READ_AT_ONCE:
            envelopes = all_admitted(records, self.stage, partitions, most)
        else:
            envelopes = await self._thread.run(all_admitted, records, self.stage, partitions, most)
        for record, envelope in zip(records, envelopes, strict=True):
            if isinstance(envelope, Envelope):
                self.unsupported = None
            elif isinstance(record.value, UnsupportedReason):
                self.unsupported = envelope
        return envelopes

    async def _handle_run(
        self, name: str, works: Sequence[tuple[int, Work]], committing: Run | None, *, alone: bool = False
    ) -> bool:
        """Handle records of a run. Return False, and handle none, if the run is a suspect that is not `alone`."""
        try:
            run = await self._obtain(name, works[0][1][0].partition, committing, alone=alone)
        except TurnEndedError:
            self._put_off(works)
            return True
        if run is None:
            return False
        before = run.commit
        await self._handle_works(run, self._not_yet_seen(run, works))
        if run.commit is before:  # no new slice: all records were handled before, are too early, or are put off
            await self._settle_run(run)
            await self._lifecycle.withdraw(run)
        else:
            self._keep(run)
        return True

    async def _handle_works(self, run: Run, works: Sequence[tuple[int, Work]]) -> None:
        """Handle records of a run that were not handled before."""
        events = [work for _, work in works]
        at = stop = 0
        while at < len(works):
            epoch, (record, envelope) = works[at]
            while stop <= at or (stop < len(works) and works[stop][0] == epoch):
                stop += 1
            self._align(run, self._log(record.partition).identity_of(epoch))
            if run.position.epoch != epoch:
                run.position.epoch, run.position.sure_from = epoch, record.offset
            try:
                await self._find_earlier(run, record, envelope.sequence)
                if run.quarantined is not None:
                    self._metrics.left_aside.inc(len(works) - at)
                    return
                missing = envelope.sequence - run.state.sequence - 1
                if missing > 0:
                    gap = f"sequence {envelope.sequence} of run {quote(run.name)} follows {run.state.sequence}"
                    self._letters.add(record, f"{gap}: {missing} events are missing from the log")
                    at += 1
                else:
                    at += await self._advance(run, events[at:stop])
            except TurnEndedError:
                self._put_off(works[at:])
                return

    async def _obtain(self, name: str, partition: int, committing: Run | None, *, alone: bool) -> Run | None:
        """Return a run, from memory or from the store; None if it is a suspect that is not `alone`."""
        run = committing or self._runs.take_out(name)
        evicted = self._runs.pop_evicted(name) if run is None else None
        known = run or evicted
        begun: int | None = 0
        if known is None or not known.attempt_counted:
            begun = await self._lifecycle.begin(name, alone=alone)
        if begun is None:
            if run is not None:
                self._runs.hold(run)
            return None

        if run is None:
            run = await self._lifecycle.load(name, partition, evicted, begun)
            run.catching_up |= self._catching_up
        run.attempt_counted = True
        return run

    def _align(self, run: Run, identity: str) -> None:
        """Forget a run's position if it counts in another log than the one with this identity."""
        if run.position.log != identity:
            run.position = LogPosition(log=identity)

    def _not_yet_seen(self, run: Run, works: Sequence[tuple[int, Work]]) -> Sequence[tuple[int, Work]]:
        """Return the events with offsets after the run's position in the log, whatever their sequences.

        If sequences counted, an event that was refused as too early could be applied after the stream has gone back.
        A new sequence at an old offset may also mean that the log was replaced. Then the event will be read again.
        """
        partition_log = self._log(run.partition)
        behind = []
        for epoch, work in works:
            record, envelope = work
            if record.offset > run.position.offset or partition_log.identity_of(epoch) != run.position.log:
                behind.append((epoch, work))
            elif envelope.sequence > run.state.sequence:
                self.doubt(run.partition, run.position.offset)

        self._metrics.duplicates.inc(len(works) - len(behind))
        return behind

    async def _advance(self, run: Run, work: Sequence[Work]) -> int:
        """Advance a run, and return the number of handled events. After an unforeseen error, the run has failed."""
        try:
            return await self._lifecycle.advance(run, work)
        except (StoreError, BusError, TurnEndedError):
            raise
        except Exception as error:
            if run.failure is not None:
                raise
            log.exception("run %s cannot continue", quote(run.name))
            if run.quarantined is None:
                run.enter(RunPhase.FAILED, described(error))
            return 0

    async def _find_earlier(self, run: Run, record: Record, sequence: int) -> None:
        """Handle the events of a run before `record`, whose event has this sequence, that were not handed over."""
        if run.quarantined is None and sequence > run.state.sequence + 1:
            async with self._searching:
                await self._find_missing(run, record)
        elif run.state.sequence < 0:
            async with self._searching:
                await self._begin_at_first(run, record)

    async def _find_missing(self, run: Run, record: Record) -> None:
        """Look for the events before a record in the parts of the log that were not handed over.

        No part is searched twice.
        """
        if run.state.sequence < 0:
            beginning = await self._beginning(run, record)
            if beginning is None:
                return
            await self._follow(run, beginning, record.offset)
            if run.state.sequence < 0:
                self._log(run.partition).mistaken(run.name.encode())
            return

        start, stop = max(run.position.offset + 1, run.position.searched), run.position.sure_from
        if start < stop:
            await self._follow(run, start, stop)
            run.position.searched = stop

    async def _begin_at_first(self, run: Run, record: Record) -> None:
        """Handle the events before `record` of a run that the store has forgotten, if the log has its opening."""
        beginning = self._log(run.partition).beginning(run.name.encode())
        if beginning is not None and beginning < record.offset:
            await self._follow(run, beginning, record.offset)
            if run.state.sequence < 0:
                self._log(run.partition).mistaken(run.name.encode())

    async def _beginning(self, run: Run, record: Record) -> int | None:
        """Return the offset at which a run without stored state begins; None if the log no longer has it."""
        partition_log = self._log(record.partition)
        unsearched = partition_log.unsearched()
        if unsearched.start < unsearched.stop:
            async for records in self._context.stream.replay(record.partition, *unsearched):
                for entry in records:
                    partition_log.find(entry.offset, entry.key, entry.value)
            partition_log.searched(unsearched.stop)

        return partition_log.beginning(run.name.encode())

    async def _follow(self, run: Run, start: int, stop: int | None) -> None:
        """Handle the events of a run between two offsets of the log, as far as their sequences follow."""
        key = run.name.encode()
        async with aclosing(self._context.stream.replay(run.partition, start, stop)) as parts:
            async for records in parts:
                own = [record for record in records if record.key == key]
                read = zip(own, await self._read(own), strict=True)
                work = [(record, envelope) for record, envelope in read if isinstance(envelope, Envelope)]
                while work and run.quarantined is None:
                    done = await self._advance(run, work)
                    if run.failure is None:  # else the same event quarantines the run
                        done = max(done, 1)  # skip an event that is too early: it is a dead letter already
                    work = work[done:]

    def _log(self, partition: int) -> PartitionLog:
        if (partition_log := self._logs.get(partition)) is None:
            partition_log = self._logs[partition] = PartitionLog()
        return partition_log


log = logging.getLogger("shadowtime.worker")

FIRST_PAUSE, MAX_PAUSE = 0.05, 2.0

Result = TypeVar("Result")


class StageWorker:
    """Handles records, those of a run in order, several runs concurrently. Only one call may be under way at a time.

    Handled records are stored and delivered while the next ones are handled.

    Parameters
    ----------
    catching_up
        Whether this is a rebuild: the next owner of a run that is loaded here must read the rest of the run's log.
    """

    def __init__(self, context: WorkerContext, *, catching_up: bool = False) -> None:
        self.stage = context.stage
        self.thread = TimeLimitedThread(context.stage.name, context.settings.handler_seconds)
        self._context = context
        self._letters = DeadLetters(context.stream, context.metrics)
        self._committer = SliceCommitter(context, self._letters)
        self._lifecycle = RunLifecycle(context, self.thread, self._committer, self._letters)
        self._processor = RecordProcessor(
            context, self.thread, self._lifecycle, self._committer, self._letters, catching_up=catching_up
        )
        self._unsettled: list[Received] = []
        """Handled records that are not known to be stored and delivered."""
        self._again: list[Received] = []
        """Records that must be handled again, since a commit or a delivery failed."""
        self._done: list[Received] = []
        self._put_off: list[Received] = []
        self.receive, self.holds = self._processor.receive, self._processor.holds
        self.was_handled = self._processor.was_handled
        self.read_again = self._processor.read_again
        self.identity = self._processor.identity
        self.is_current, self.doubt = self._processor.is_current, self._processor.doubt
        self.doubtful = self._processor.doubtful
        self.replaced_logs = self._processor.replaced_logs

    @property
    def quarantined(self) -> Mapping[str, str]:
        """The reasons why runs are quarantined, by name."""
        return self._lifecycle.quarantined

    @property
    def unsupported(self) -> str | None:
        """The reason why the last records could not be read, if their codec is the reason; else None."""
        return self._processor.unsupported

    @property
    def altered(self) -> Mapping[str, str]:
        """The reasons why the stored state of runs was dropped, by name."""
        return self._lifecycle.altered

    async def identify(self, partition: int) -> bool:
        """Return whether another log has replaced a partition's log. Call this before the first record of a partition.

        If so, hand over the partition from its beginning, and call `keep_log` after that.
        """
        replaced: list[bool] = []  # if the delivery of dead letters fails, a later attempt finds the new log known

        async def work() -> None:
            replaced.append(await self._processor.identify(partition))

        await self.commit_all()
        await self._retry(work)
        return any(replaced)

    async def keep_log(self, partition: int) -> None:
        """Store the identity of a partition's log."""
        await self._retry(lambda: self._processor.keep_log(partition))

    async def take(self, partition: int) -> tuple[int, Unhandled] | None:
        """Note the runs of a newly assigned partition, for `take_over` and `was_handled`.

        Return what the last owner stored of its unhandled records, with the number of a new stretch for them.
        """
        return await self._retry(lambda: self._processor.take(partition))

    async def store_unhandled(self, partition: int, unhandled: Unhandled) -> None:
        """Store which records of a partition are not handled, unless Redis cannot be used now or they are too many."""
        if len(content := unhandled.to_bytes()) <= MAX_UNHANDLED_BYTES:
            with suppress(StoreError):
                await self._context.store.set_unhandled(partition, content)

    @property
    def pending(self) -> Sequence[Received]:
        """The records that were handled, or tried, and are not known to be stored and delivered."""
        return [*self._again, *self._unsettled]

    @property
    def untaken(self) -> int:
        """The number of runs that are noted and not taken over yet."""
        return len(self._processor.untaken)

    async def take_over(self) -> None:
        """Deliver outputs that the last owners of some noted runs may have left undelivered.

        Call this until `untaken` is 0. Records may be handled in between, also those of noted runs.
        """
        await self.commit_all()
        await self._retry(self._processor.take_over)

    async def handle(self, received: Sequence[Received], seconds: float = inf) -> Mapping[str, Effort]:
        """Handle records, those of a run in order. Return the work on each run, by name.

        At the end of the call, the records of the previous call are stored and delivered. The records of this call are
        stored and delivered at the end of the next call of this method or of `commit_all`. After `seconds` of work no
        further work begins: `take_put_off` returns the records that are not handled.
        """
        spent = self._lifecycle.spent
        spent.clear()
        await self._retry(lambda: self._processor.handle([*self._again, *received], seconds))
        again, put_off = self._again, self._processor.put_off
        self._done += self._unsettled  # empty if a commit failed: `_drop` has moved the records to `_again`
        self._unsettled, self._again = [], []
        for records, waiting in ((again, self._again), (received, self._put_off)):
            for entry in records:
                place = entry.record.partition, entry.epoch, entry.record.offset
                (waiting if place in put_off else self._unsettled).append(entry)
        return spent

    async def commit_all(self) -> Mapping[str, Effort]:
        """Wait until all handled records are stored and delivered. Return the result of the last `handle`."""
        spent: Mapping[str, Effort] = {}
        while self._unsettled or self._again:
            spent = await self.handle(())
        return spent

    def take_done(self) -> Sequence[Received]:
        """Return the records that have been stored and delivered since the last call of this method."""
        done, self._done = self._done, []
        return done

    def take_put_off(self) -> Sequence[Received]:
        """Return the records that were put off since the last call of this method. Hand them over again, in order."""
        put_off, self._put_off = self._put_off, []
        return put_off

    async def give_up(self) -> Sequence[Received]:
        """Forget all runs, and return the records that are not stored and delivered.

        They are still in the log, and are looked for at the next record of their run.
        """
        await self._drop()
        left, self._again = self._again, []
        return left

    def close(self) -> None:
        """Leave uncommitted work to the next worker. The thread ends after its current work."""
        self._committer.cancel()
        self.thread.close()

    async def _drop(self) -> None:
        """Forget all runs: each is loaded again at its next record."""
        await self._processor.drop()
        self._again, self._unsettled = [*self._again, *self._unsettled], []

    async def _retry(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """Return the result of `work` after the delivery of dead letters. Repeat both while Kafka or Redis fails."""
        backoff = Backoff(FIRST_PAUSE, MAX_PAUSE)
        while True:
            try:
                result = await work()
                await self._letters.deliver()
                return result
            except FencedError as fenced:
                log.warning("%s", truncate(str(fenced)))
                self._context.metrics.fenced.inc()
            except (StoreError, BusError) as error:
                pause = backoff.pause()
                log.warning("%s: %s; retrying in %.1f s", self.stage.name, truncate(str(error)), pause)
                self._context.metrics.retries.inc()
                await self._context.sleep(pause)

            await self._drop()
