"""Records through a stage, several runs beside each other; one goes on while its last slice is being settled."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from shadowtime.shared.errors import BusError, StoreError
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
from shadowtime.shared.wording import quoted

log = logging.getLogger("shadowtime.worker")


@dataclass(frozen=True)
class Received:
    """A record, and the stretch of the log that it was handed over in."""

    record: Record
    epoch: int


class Handling:
    """Handles records, those of a run in order; one call at a time.

    Whatever it raises, all runs are to be forgotten then, and what was not done with for good is to be handled again.

    Parameters
    ----------
    behind
        Whether runs that it begins are left to be followed up by the next worker that takes their partition.
    """

    def __init__(self, context: WorkerContext, thread: WorkThread, letters: DeadLetters, *, behind: bool) -> None:
        self.stage = context.stage
        self.progress = RunProgress(context, thread, letters)
        self._context = context
        self._metrics = context.metrics
        self._thread = thread
        self._letters = letters
        self._behind = behind
        self._runs = HeldRuns()
        self._settling: dict[str, Run] = {}
        """Runs whose last slices are being settled; a run that is held may be put away, and loaded as it is stored."""
        self._logs: dict[int, PartitionLog] = {}
        self._searching = asyncio.Lock()  # one stretch of the log is read at a time

    def receive(self, record: Record) -> Received:
        """Take note of a record in the order in which the stream hands records over; `handle` may take them later."""
        return Received(record, self._log(record.partition).receive(record.offset, record.key, record.value))

    def holds(self, key: bytes | None) -> bool:
        """Return whether the run of a key is at work."""
        return key is not None and ((name := name_of(key)) in self._runs or name in self._settling)

    async def drop(self) -> None:
        """Forget all runs: they are loaded again when their next record comes."""
        await self.progress.settling.end()
        self._runs.clear()
        self._settling.clear()

    async def take(self, partition: int) -> None:
        """Begin with a partition that was just assigned: deliver what its last owner may have left undelivered."""
        for name in await self._context.store.runs(partition):
            saved = await self._context.store.load(name)
            if saved is None:
                await self._context.store.forget(name)  # it was closed long ago, and its state has expired
            elif saved.behind or len(saved.outbox) > self._runs.delivered(name, saved.sequence):
                run = await self.progress.load(name, partition, self._runs.recall(name))
                if run.behind and run.quarantined is None:
                    await self._follow(run, run.offset + 1, None)
                    await self.progress.settling.settled(run)
                    run.behind = False
                    await self.progress.settling.settle(run, Slice(run.state.sequence, offset=run.offset))
                if name not in self._runs:
                    self._runs.put_away(run)
            elif saved.quarantined is not None:
                self.progress.note_quarantine(name, saved.quarantined)

    async def handle(self, received: Sequence[Received]) -> None:
        """Handle records, those of a run in order; they are stored and delivered when this is called again."""
        works: dict[str, list[tuple[int, Work]]] = {}
        for each, envelope in zip(received, await self._read([each.record for each in received]), strict=True):
            if isinstance(envelope, Envelope):
                works.setdefault(envelope.run, []).append((each.epoch, (each.record, envelope)))
            else:
                self._letters.add(each.record, envelope)
        others = [run for name, run in self._settling.items() if name not in works]
        handling = [self._handle_run(name, epochs, self._settling.pop(name, None)) for name, epochs in works.items()]
        handling += [self._settle_run(run) for run in others]
        for end in await asyncio.gather(*handling, return_exceptions=True):  # no run is left at work
            if end is not None:
                raise end

    async def _settle_run(self, run: Run) -> None:
        """Wait until the last slice of a run of which nothing new was worked out is stored and delivered."""
        await self.progress.settling.settled(run)
        self._settling.pop(run.name, None)
        self._keep(run)

    def _keep(self, run: Run) -> None:
        """Keep a run for its next record; one of which nothing is to be kept is forgotten once it is settled."""
        if run.settling is not None:
            self._settling[run.name] = run
        elif not run.closed and (run.state.sequence >= 0 or run.quarantined is not None):
            self._runs.hold(run)

    async def _read(self, records: Sequence[Record]) -> list[Envelope | str]:
        """Return what is in each record, or why it is not taken."""
        settings, partitions = self._context.settings, self._context.partitions
        most = settings.max_message_bytes if self.stage.reads == JOBS else settings.max_output_bytes
        if sum(len(record.value or b"") for record in records) <= READ_AT_ONCE:
            return all_admitted(records, self.stage, partitions, most)
        return await self._thread.run(all_admitted, records, self.stage, partitions, most)

    async def _handle_run(self, name: str, works: Sequence[tuple[int, Work]], settling: Run | None) -> None:
        run = settling or self._runs.take_out(name)
        if run is None:
            run = await self.progress.load(name, works[0][1][0].partition, self._runs.recall(name))
            run.behind |= self._behind
        before = run.settling
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
        if run.settling is before:  # nothing had to wait for it: all was handled before, or comes too early
            await self._settle_run(run)
        else:
            self._keep(run)

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
            return await self.progress.advance(run, work)
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
