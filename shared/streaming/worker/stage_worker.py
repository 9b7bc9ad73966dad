"""One stage at work on a stream: effectively once, whatever the stream and the store do to it.

The rules it keeps, for each run:

1. Event `last + 1` is handled, one up to `last` is a duplicate, one beyond is never applied: what is missing is looked
   for in the log, once, and if it is not there, the event is a dead letter.
2. State, position and outputs change in one transaction, fenced by the sequence from which the worker started. When
   it fails in any way, the worker forgets the run and loads it again: recovery and start are one path. What comes next
   is worked out meanwhile, but not stored before it.
3. Outputs leave after their transaction, in order, and only then the outbox; what a predecessor left in the outbox
   leaves first.
4. An event that the stage cannot work out is undone. A run that cannot be carried on is quarantined: it says so in its
   log and on the dead letters, what comes later is counted and left aside, and all other runs go on.

What a record that cannot be used was, and why, goes to the dead letters; the stream goes on.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from shadowtime.shared.backoff import Backoff
from shadowtime.shared.errors import BusError, FencedError, StoreError, first_of
from shadowtime.shared.messages import Envelope
from shadowtime.shared.quoting import quote, truncate
from shadowtime.shared.stages import JOBS, Stage, described
from shadowtime.shared.streaming.kafka import UndecodableBatch, partition_of
from shadowtime.shared.streaming.protocols import Record
from shadowtime.shared.streaming.worker.committer import Committer
from shadowtime.shared.streaming.worker.context import WorkerContext
from shadowtime.shared.streaming.worker.dead_letter_buffer import DeadLetters
from shadowtime.shared.streaming.worker.partition_log import PartitionLog, name_of
from shadowtime.shared.streaming.worker.run import Run, RunPhase
from shadowtime.shared.streaming.worker.run_cache import RunCache
from shadowtime.shared.streaming.worker.run_progress import RunProgress
from shadowtime.shared.streaming.worker.slices import Slice, Work
from shadowtime.shared.streaming.worker.time_limited_thread import TimeLimitedThread

# The border of a stage: which records it takes, and why not the others: no JSON, unknown schema, too large, ….

READ_AT_ONCE = 50_000
"""Bytes of records that are read in the event loop: it takes some milliseconds, whatever they are."""


class AdmissionError(Exception):
    """A record is no envelope that the stage takes; the message says why."""


def admitted(record: Record, stage: Stage, partitions: int, max_bytes: int) -> Envelope:
    """Return the envelope in a record; O(its bytes).

    Parameters
    ----------
    partitions
        How many the topic has: a run lives where its name says.
    max_bytes
        The largest message that is looked at.

    Raises
    ------
    AdmissionError
        If it is none, or one that may not be here.
    """
    if record.value is None:
        raise AdmissionError("the message is empty")
    if isinstance(record.value, UndecodableBatch):
        raise AdmissionError(record.value.decode())
    if len(record.value) > max_bytes:
        raise AdmissionError(f"{len(record.value)} bytes; at most {max_bytes} are taken")
    try:
        envelope = Envelope.from_bytes(record.value)
    except ValidationError as error:
        raise AdmissionError(f"not an envelope of this schema: {first_of(error, 'message')}") from None
    except Exception as error:  # whatever a library makes of bytes that nobody has thought of
        raise AdmissionError(f"not an envelope of this schema: {described(error)}") from None

    if record.key != envelope.run.encode(errors="replace"):
        key = "no key" if record.key is None else f"key {quote(record.key.decode(errors='replace'))}"
        raise AdmissionError(f"run {quote(envelope.run)} came under {key}")
    if (home := partition_of(envelope.run, partitions)) != record.partition:
        raise AdmissionError(f"run {quote(envelope.run)} lives on partition {home}")
    if (intrusion := stage.forged_field(envelope)) is not None:
        raise AdmissionError(f"{intrusion!r} is not for anybody before stage {stage.name} to say")
    return envelope


def all_admitted(records: Sequence[Record], stage: Stage, partitions: int, max_bytes: int) -> list[Envelope | str]:
    """Return the envelope in each record, or why it is not taken; see `admitted`."""

    def read(record: Record) -> Envelope | str:
        try:
            return admitted(record, stage, partitions, max_bytes)
        except AdmissionError as refused:
            return str(refused)

    return [read(record) for record in records]


# Records through a stage, several runs beside each other; one goes on while its last slice is being committed.


@dataclass(frozen=True)
class Received:
    """A record, and the stretch of the log that it was handed over in."""

    record: Record
    epoch: int


class RecordProcessor:
    """Handles records, those of a run in order; one call at a time.

    Whatever it raises, all runs are to be forgotten then, and what was not done with for good is to be handled again.

    Parameters
    ----------
    catching_up
        Whether runs that it begins are left to be followed up by the next worker that takes their partition.
    """

    def __init__(
        self,
        context: WorkerContext,
        thread: TimeLimitedThread,
        progress: RunProgress,
        committer: Committer,
        letters: DeadLetters,
        *,
        catching_up: bool,
    ) -> None:
        self.stage = context.stage
        self._progress = progress
        self._committer = committer
        self._context = context
        self._metrics = context.metrics
        self._thread = thread
        self._letters = letters
        self._catching_up = catching_up
        self._runs = RunCache()
        self._committing: dict[str, Run] = {}
        """Runs whose last slices are being committed. The cache may evict a run, and load it without that slice."""
        self._logs: dict[int, PartitionLog] = {}
        self._searching = asyncio.Lock()  # one stretch of the log is read at a time

    def receive(self, record: Record) -> Received:
        """Take note of a record in the order in which the stream hands records over; `handle` may take them later."""
        return Received(record, self._log(record.partition).receive(record.offset, record.key, record.value))

    def holds(self, key: bytes | None) -> bool:
        """Return whether the run of a key is at work."""
        return key is not None and ((name := name_of(key)) in self._runs or name in self._committing)

    async def drop(self) -> None:
        """Forget all runs: they are loaded again when their next record comes."""
        await self._committer.drain()
        self._runs.clear()
        self._committing.clear()

    async def take(self, partition: int) -> None:
        """Begin with a partition that was just assigned: deliver what its last owner may have left undelivered."""
        for name in await self._context.store.runs(partition):
            saved = await self._context.store.load(name)
            if saved is None:
                await self._context.store.forget(name)  # it was closed long ago, and its state has expired
            elif saved.catching_up or len(saved.outbox) > self._runs.delivered(name, saved.sequence):
                run = await self._progress.load(name, partition, self._runs.pop_evicted(name))
                if run.catching_up and run.quarantined is None:
                    await self._follow(run, run.position.offset + 1, None)
                    await self._committer.wait_committed(run)
                    run.catching_up = False
                    await self._committer.commit(run, Slice(run.state.sequence, offset=run.position.offset))

                if name not in self._runs:
                    self._runs.remember(run)
            elif saved.quarantined is not None:
                self._progress.note_quarantine(name, saved.quarantined)

    async def handle(self, received: Sequence[Received]) -> None:
        """Handle records, those of a run in order; they are stored and delivered when this is called again."""
        works: dict[str, list[tuple[int, Work]]] = {}
        for entry, envelope in zip(received, await self._read([entry.record for entry in received]), strict=True):
            if isinstance(envelope, Envelope):
                works.setdefault(envelope.run, []).append((entry.epoch, (entry.record, envelope)))
            else:
                self._letters.add(entry.record, envelope)

        others = [run for name, run in self._committing.items() if name not in works]
        handling = [self._handle_run(name, epochs, self._committing.pop(name, None)) for name, epochs in works.items()]
        handling += [self._settle_run(run) for run in others]
        for end in await asyncio.gather(*handling, return_exceptions=True):  # no run is left at work
            if end is not None:
                raise end

    async def _settle_run(self, run: Run) -> None:
        """Wait until the last slice of a run of which nothing new was worked out is stored and delivered."""
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
        """Return what is in each record, or why it is not taken."""
        settings, partitions = self._context.settings, self._context.partitions
        most = settings.max_message_bytes if self.stage.reads == JOBS else settings.max_output_bytes
        if sum(len(record.value or b"") for record in records) <= READ_AT_ONCE:
            return all_admitted(records, self.stage, partitions, most)
        return await self._thread.run(all_admitted, records, self.stage, partitions, most)

    async def _handle_run(self, name: str, works: Sequence[tuple[int, Work]], committing: Run | None) -> None:
        run = committing or self._runs.take_out(name)
        if run is None:
            run = await self._progress.load(name, works[0][1][0].partition, self._runs.pop_evicted(name))
            run.catching_up |= self._catching_up
        before = run.commit
        works = self._not_yet_seen(run, works)
        at = 0
        while at < len(works):
            epoch, (record, envelope) = works[at]
            if run.position.epoch != epoch:
                run.position.epoch, run.position.sure_from = epoch, record.offset
            if run.quarantined is None and envelope.sequence > run.state.sequence + 1:
                async with self._searching:
                    await self._find_missing(run, record)
            elif run.state.sequence < 0:
                async with self._searching:
                    await self._begin_at_first(run, record)

            if run.quarantined is not None:
                self._metrics.left_aside.inc(len(works) - at)
                break
            missing = envelope.sequence - run.state.sequence - 1
            if missing > 0:
                place = f"sequence {envelope.sequence} of run {quote(name)} follows {run.state.sequence}"
                self._letters.add(record, f"{place}: {missing} events are missing from the log")
                at += 1
            else:
                at += await self._advance(run, [work for its, work in works[at:] if its == epoch])

        if run.commit is before:  # nothing had to wait for it: all was handled before, or comes too early
            await self._settle_run(run)
        else:
            self._keep(run)

    def _not_yet_seen(self, run: Run, works: Sequence[tuple[int, Work]]) -> Sequence[tuple[int, Work]]:
        """Return what lies behind a run's position in the log, whatever sequences the rest claims to have.

        What was refused as too early may be handed over again, by a stream that goes back, when its turn would be.
        """
        behind = [work for work in works if work[1][0].offset > run.position.offset]
        self._metrics.duplicates.inc(len(works) - len(behind))
        return behind

    async def _advance(self, run: Run, work: Sequence[Work]) -> int:
        """Let a run progress; one with which something goes wrong that nobody has thought of is in trouble."""
        try:
            return await self._progress.advance(run, work)
        except (StoreError, BusError):
            raise
        except Exception as error:
            if run.failure is not None:
                raise
            log.exception("run %s cannot go on", quote(run.name))
            if run.quarantined is None:
                run.enter(RunPhase.FAILED, described(error))
            return 0

    async def _find_missing(self, run: Run, record: Record) -> None:
        """Look for what comes before a record where this worker has not been handed it; no place is searched twice."""
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
        """Handle what lies before a duplicate of a run's opening, if the store has forgotten that it began before."""
        beginning = self._log(run.partition).beginning(run.name.encode())
        if beginning is not None and beginning < record.offset:
            await self._follow(run, beginning, record.offset)
            if run.state.sequence < 0:
                self._log(run.partition).mistaken(run.name.encode())

    async def _beginning(self, run: Run, record: Record) -> int | None:
        """Return the offset at which a run of which nothing is stored begins, if the log still has that."""
        places = self._log(record.partition)
        unsearched = places.unsearched()
        if unsearched.start < unsearched.stop:
            async for records in self._context.stream.replay(record.partition, *unsearched):
                for entry in records:
                    places.find(entry.offset, entry.key, entry.value)
            places.searched(unsearched.stop)

        return places.beginning(run.name.encode())

    async def _follow(self, run: Run, start: int, stop: int | None) -> None:
        """Handle what the log has of a run between two offsets, as far as it follows."""
        key = run.name.encode()
        async for records in self._context.stream.replay(run.partition, start, stop):
            own = [record for record in records if record.key == key]
            read = zip(own, await self._read(own), strict=True)
            work = [(record, envelope) for record, envelope in read if isinstance(envelope, Envelope)]
            while work and run.quarantined is None:
                done = await self._advance(run, work)
                work = work[max(done, 1) :]  # what is too early here is a dead letter already

    def _log(self, partition: int) -> PartitionLog:
        return self._logs.setdefault(partition, PartitionLog())


log = logging.getLogger("shadowtime.worker")

FIRST_PAUSE, MAX_PAUSE = 0.05, 2.0


class StageWorker:
    """Handles records in order of each run, several runs beside each other; one call at a time.

    Records that were handled are stored and delivered while the next are handled.

    Parameters
    ----------
    catching_up
        Whether runs that it begins are left to be followed up by the next worker that takes their partition.
    """

    def __init__(self, context: WorkerContext, *, catching_up: bool = False) -> None:
        self.stage = context.stage
        self.thread = TimeLimitedThread(context.stage.name, context.settings.handler_seconds)
        self._context = context
        self._letters = DeadLetters(context.stream, context.metrics)
        self._committer = Committer(context, self._letters)
        self._progress = RunProgress(context, self.thread, self._committer, self._letters)
        self._processor = RecordProcessor(
            context, self.thread, self._progress, self._committer, self._letters, catching_up=catching_up
        )
        self._unsettled: list[Received] = []
        """Records that were handled, and of which it is not known that they are stored and delivered."""
        self._again: list[Received] = []
        """Those of them that are to be handled again, since something of that failed."""
        self._done: list[Received] = []
        self.receive, self.holds = self._processor.receive, self._processor.holds

    @property
    def quarantined(self) -> Mapping[str, str]:
        """Why runs are quarantined, by name."""
        return self._progress.quarantined

    async def take(self, partition: int) -> None:
        """Begin with a partition that was just assigned: deliver what its last owner may have left undelivered."""
        await self.commit_all()
        await self._retry(lambda: self._processor.take(partition))

    async def handle(self, received: Sequence[Received]) -> Mapping[str, float]:
        """Handle records, those of a run in order; return each run's seconds.

        What was handled before is done with for good then; these are when this, or `commit_all`, is called again.
        """
        spent = self._progress.spent
        spent.clear()
        await self._retry(lambda: self._processor.handle([*self._again, *received]))
        self._done += self._unsettled  # nothing, if something of it failed
        self._unsettled, self._again = [*self._again, *received], []
        return spent

    async def commit_all(self) -> Mapping[str, float]:
        """Return, when all that was handled is done with for good, the seconds of each run that is handled again."""
        spent: Mapping[str, float] = {}
        while self._unsettled or self._again:
            spent = await self.handle(())
        return spent

    def take_done(self) -> Sequence[Received]:
        """Return the records that are done with for good since this was called last."""
        done, self._done = self._done, []
        return done

    async def give_up(self) -> Sequence[Received]:
        """Forget all runs, and return the records that are not done with.

        They lie in the log, and are looked for when the next one of their run comes.
        """
        await self._drop()
        left, self._again = self._again, []
        return left

    def close(self) -> None:
        """Leave what is not committed to the next worker; the thread ends once its work has."""
        self._committer.cancel()
        self.thread.close()

    async def _drop(self) -> None:
        """Forget all runs: they are loaded again when their next record comes."""
        await self._processor.drop()
        self._again, self._unsettled = [*self._again, *self._unsettled], []

    async def _retry(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do `work`, again and again while Kafka or Redis fail: all of it may be repeated."""
        backoff = Backoff(FIRST_PAUSE, MAX_PAUSE)
        while True:
            try:
                await work()
                return await self._letters.deliver()
            except FencedError as fenced:
                log.warning("%s", truncate(str(fenced)))
                self._context.metrics.fenced.inc()
            except (StoreError, BusError) as error:
                pause = backoff.pause()
                log.warning("%s: %s; trying again in %.1f s", self.stage.name, truncate(str(error)), pause)
                self._context.metrics.retries.inc()
                await self._context.sleep(pause)

            await self._drop()
