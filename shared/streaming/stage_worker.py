"""One stage at work on a stream: effectively once, whatever the stream and the store do to it.

The rules it keeps, for each run:

1. Event `last + 1` is handled, one up to `last` is a duplicate, one beyond is never applied: what is missing is looked
   for in the log, once, and if it is not there, the event is a dead letter.
2. State, position and outputs change in one transaction, fenced by the sequence from which the worker started. When
   it fails in any way, the worker forgets the run and loads it again: recovery and start are one path.
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

from shadowtime.shared.backoff import Backoff
from shadowtime.shared.errors import BusError, Fenced, StoreError
from shadowtime.shared.events import Envelope
from shadowtime.shared.stage import described
from shadowtime.shared.streaming.admission import READ_AT_ONCE, all_admitted
from shadowtime.shared.streaming.held_runs import HeldRuns
from shadowtime.shared.streaming.partition_log import PartitionLog, name_of
from shadowtime.shared.streaming.run_progress import RunProgress
from shadowtime.shared.streaming.run_slice import Run, Slice, Work
from shadowtime.shared.streaming.stream import DeadLetters, Record
from shadowtime.shared.streaming.work_thread import WorkThread
from shadowtime.shared.streaming.worker_context import WorkerContext
from shadowtime.shared.topics import JOBS
from shadowtime.shared.wording import quoted, shortened

log = logging.getLogger("shadowtime.worker")

FIRST_PAUSE, MAX_PAUSE = 0.05, 2.0


@dataclass(frozen=True)
class Received:
    """A record, and the stretch of the log that it was handed over in."""

    record: Record
    epoch: int


class StageWorker:
    """Handles records in order of each run, several runs beside each other; one call at a time.

    Parameters
    ----------
    behind
        Whether runs that it begins are left to be followed up by the next worker that takes their partition.
    """

    def __init__(self, context: WorkerContext, *, behind: bool = False) -> None:
        self.stage = context.stage
        self.thread = WorkThread(context.stage.name, context.settings.handler_seconds)
        self._context = context
        self._metrics = context.metrics
        self._letters = DeadLetters(context.stream, context.metrics)
        self._progress = RunProgress(context, self.thread, self._letters)
        self._behind = behind
        self._runs = HeldRuns()
        self._logs: dict[int, PartitionLog] = {}
        self._searching = asyncio.Lock()  # one stretch of the log is read at a time

    @property
    def quarantined(self) -> Mapping[str, str]:
        """Why runs are quarantined, by name."""
        return self._progress.quarantined

    def receive(self, record: Record) -> Received:
        """Take note of a record in the order in which the stream hands records over; `handle` may take them later."""
        return Received(record, self._log(record.partition).receive(record.offset, record.key, record.value))

    def holds(self, key: bytes | None) -> bool:
        """Return whether the run of a key is at work."""
        return key is not None and name_of(key) in self._runs

    async def take(self, partition: int) -> None:
        """Begin with a partition that was just assigned: deliver what its last owner may have left undelivered."""
        await self._retry(lambda: self._take(partition))

    def drop(self) -> None:
        """Forget all runs: they are loaded again when their next record comes."""
        self._runs.clear()

    async def handle(self, received: Sequence[Received]) -> Mapping[str, float]:
        """Handle records, those of a run in order; return, when all are done with for good, each run's seconds."""
        self._progress.spent.clear()
        await self._retry(lambda: self._handle(received))
        return self._progress.spent

    async def _retry(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do `work`, again and again while Kafka or Redis fail: all of it may be repeated."""
        backoff = Backoff(FIRST_PAUSE, MAX_PAUSE)
        while True:
            try:
                await work()
                return await self._letters.deliver()
            except Fenced as fenced:
                log.warning("%s", shortened(str(fenced)))
                self._metrics.fenced.inc()
            except (StoreError, BusError) as error:
                pause = backoff.pause()
                log.warning("%s: %s; trying again in %.1f s", self.stage.name, shortened(str(error)), pause)
                self._metrics.retries.inc()
                await self._context.sleep(pause)
            self.drop()

    async def _take(self, partition: int) -> None:
        for name in await self._context.store.runs(partition):
            saved = await self._context.store.load(name)
            if saved is None:
                await self._context.store.forget(name)  # it was closed long ago, and its state has expired
            elif saved.quarantined is not None:
                self._progress.note_quarantine(name, saved.quarantined)
            elif saved.behind or len(saved.outbox) > self._runs.delivered(name, saved.sequence):
                run = await self._progress.load(name, partition, self._runs.recall(name))
                if run.behind:
                    await self._follow(run, run.offset + 1, None)
                    run.behind = False
                    await self._progress.settle(run, Slice(run.state.sequence, offset=run.offset))
                if name not in self._runs:
                    self._runs.put_away(run)

    async def _handle(self, received: Sequence[Received]) -> None:
        works: dict[str, list[tuple[int, Work]]] = {}
        for each, envelope in zip(received, await self._read([each.record for each in received]), strict=True):
            if isinstance(envelope, Envelope):
                works.setdefault(envelope.run, []).append((each.epoch, (each.record, envelope)))
            else:
                self._letters.add(each.record, envelope)
        handling = [self._handle_run(name, epochs) for name, epochs in works.items()]
        for end in await asyncio.gather(*handling, return_exceptions=True):  # no run is left at work
            if end is not None:
                raise end

    async def _read(self, records: Sequence[Record]) -> list[Envelope | str]:
        """Return what is in each record, or why it is not taken."""
        settings, partitions = self._context.settings, self._context.partitions
        most = settings.max_message_bytes if self.stage.reads == JOBS else settings.max_output_bytes
        if sum(len(record.value or b"") for record in records) <= READ_AT_ONCE:
            return all_admitted(records, self.stage, partitions, most)
        return await self.thread.run(all_admitted, records, self.stage, partitions, most)

    async def _handle_run(self, name: str, works: Sequence[tuple[int, Work]]) -> None:
        run = self._runs.take_out(name)
        if run is None:
            run = await self._progress.load(name, works[0][1][0].partition, self._runs.recall(name))
            run.behind |= self._behind
        works = self._not_yet_seen(run, works)
        at = 0
        while at < len(works):
            epoch, (record, envelope) = works[at]
            if run.epoch != epoch:
                run.epoch, run.sure_from = epoch, record.offset
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
                place = f"sequence {envelope.sequence} of run {quoted(name)} follows {run.state.sequence}"
                self._letters.add(record, f"{place}: {missing} events are missing from the log")
                at += 1
            else:
                at += await self._advance(run, [work for its, work in works[at:] if its == epoch])
        if not run.closed and (run.state.sequence >= 0 or run.quarantined is not None):  # else nothing is to be kept
            self._runs.hold(run)

    def _not_yet_seen(self, run: Run, works: Sequence[tuple[int, Work]]) -> Sequence[tuple[int, Work]]:
        """Return what lies behind a run's position in the log, whatever sequences the rest claims to have.

        What was refused as too early may be handed over again, by a stream that goes back, when its turn would be.
        """
        behind = [work for work in works if work[1][0].offset > run.offset]
        self._metrics.duplicates.inc(len(works) - len(behind))
        return behind

    async def _advance(self, run: Run, work: Sequence[Work]) -> int:
        """Let a run progress; one with which something goes wrong that nobody has thought of is in trouble."""
        try:
            return await self._progress.advance(run, work)
        except (StoreError, BusError):
            raise
        except Exception as error:
            if run.trouble is not None:
                raise
            log.exception("run %s cannot go on", quoted(run.name))
            run.trouble = described(error)
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
        start, stop = max(run.offset + 1, run.searched), run.sure_from
        if start < stop:
            await self._follow(run, start, stop)
            run.searched = stop

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
                for each in records:
                    places.find(each.offset, each.key, each.value)
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
