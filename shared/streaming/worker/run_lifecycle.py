"""A run from event to event: loaded, computed in a thread, committed, delivered, or quarantined.

A slice of events is one transaction. It is committed while the next slice is computed. An event that the stage fails to
handle is undone: the state before it is rebuilt from the store and the earlier events of the slice.
"""

import logging
from collections import defaultdict
from collections.abc import Sequence
from functools import partial

from shadowtime.shared.errors import BusError, FencedError, SettingsError, SnapshotMismatch, StateAltered, StoreError
from shadowtime.shared.messages import ClusterOpened, Envelope
from shadowtime.shared.quoting import quote
from shadowtime.shared.stages import StageRun, described
from shadowtime.shared.streaming.protocols import OwnRecord, Record, RunState
from shadowtime.shared.streaming.worker.batched_compute import ComputeBatcher, TurnEndedError
from shadowtime.shared.streaming.worker.context import SHARE, WorkerContext
from shadowtime.shared.streaming.worker.dead_letter_buffer import DeadLetters
from shadowtime.shared.streaming.worker.run import Journal, Run, RunPhase
from shadowtime.shared.streaming.worker.run_cache import EvictedRun
from shadowtime.shared.streaming.worker.slice_committer import SliceCommitter, quarantine_reason
from shadowtime.shared.streaming.worker.slices import LARGE_BYTES, Effort, Slice, Work
from shadowtime.shared.streaming.worker.time_limited_thread import TimeLimitedThread, TimeLimitExceeded

log = logging.getLogger("shadowtime.worker")

MAX_ATTEMPTS = 5
"""The number of processes that may end while they work on a run's next event. Then the run fails."""

SUSPECT = 2
"""A run is suspected of ending processes if this many have begun with its next event. Suspects are handled one at a
time, with no other run in memory, to find the cause."""

MAX_FAILURES = 10
"""The maximum number of failed events of a run: each of them must be undone."""

MAX_ALTERED = 1_000
"""The maximum number of runs whose stored state was altered that /health remembers."""

MAX_STATE_BYTES = 128_000_000
"""Maximum bytes of a stored snapshot. That of a run with 98,000 jobs in the system has 96,000,000 bytes."""


class RunLifecycle:
    """Advances the runs of a stage from event to event.

    `quarantined` maps the name of each quarantined run to the reason. `altered` maps the name of each run whose stored
    state was dropped to the reason. `spent` maps the name of a run to the work on it; the owner clears it.

    Parameters
    ----------
    thread
        The thread for the stage's own work.
    committer
        The committer of this worker's slices.
    letters
        The buffer for events that the stage refuses.
    """

    def __init__(
        self, context: WorkerContext, thread: TimeLimitedThread, committer: SliceCommitter, letters: DeadLetters
    ) -> None:
        self.stage = context.stage
        self.quarantined: dict[str, str] = {}
        self.altered: dict[str, str] = {}
        self._store, self._stream = context.store, context.stream
        self._settings = context.settings
        self._metrics, self._clock = context.metrics, context.clock
        self._thread = thread
        self._letters = letters
        self.spent: defaultdict[str, Effort] = defaultdict(Effort)
        self._committer = committer
        self._memory_for_runs = context.memory_for_runs
        self._joint = ComputeBatcher(thread, context.settings.max_output_bytes, context.clock)

    async def begin(self, name: str, *, alone: bool) -> int | None:
        """Count this process as one that works on a run, before it restores the run's state.

        Returns
        -------
        int or None
            The number of processes that have started to work on the run's next event, including this one. It is 0 if
            this process was counted already. It is None, and nothing is counted, if `SUSPECT` processes have started
            already and `alone` is not set.
        """
        if name in self._committer.attempted:
            return 0
        begun = await self._store.attempt(name, None if alone else SUSPECT)
        if begun is not None:
            self._committer.attempted.add(name)
        return begun

    async def withdraw(self, run: Run) -> None:
        """Stop counting this process as one that works on a run: no event was handled. A commit ends it, too."""
        if run.name in self._committer.attempted:
            await self._store.withdraw_attempt(run.name)
            self._committer.attempted.discard(run.name)
            run.attempt_counted = False

    def limit_turn(self, seconds: float) -> None:
        """Begin a turn: after `seconds` of work, `load` and `advance` raise `TurnEndedError`."""
        self._joint.limit(seconds)

    @property
    def turn_ended(self) -> bool:
        """Whether the time of the turn is over."""
        return self._joint.turn_ended

    async def load(self, name: str, partition: int, evicted: EvictedRun | None, begun: int) -> Run:
        """Return a run as it is stored. A run that cannot be restored is in phase `FAILED`.

        This is both start and recovery: outputs that an interrupted batch has left in the outbox are published first.

        Parameters
        ----------
        begun
            The number of processes that began with the run's next event. If it is more than `MAX_ATTEMPTS`, the run's
            state is not restored.

        Raise `TurnEndedError` if the time of the turn is over before the state is restored.
        """
        saved = await self._saved(name, partition)
        run = Run(name, partition, StageRun(self.stage), attempt_counted=True)
        if begun > MAX_ATTEMPTS:
            run.enter(RunPhase.FAILED, f"{MAX_ATTEMPTS} processes ended while they worked on its next event")
        if saved is None:
            return run
        run.position.offset, run.position.log, run.catching_up = saved.offset, saved.log, saved.catching_up
        delivered = 0
        if evicted is not None and evicted.sequence == saved.sequence:
            delivered, run.position.searched = evicted.delivered, evicted.searched
        if saved.quarantined is not None:
            run.enter(RunPhase.QUARANTINED, saved.quarantined)
            self.note_quarantine(name, saved.quarantined)
        if run.phase is not RunPhase.ACTIVE:
            run.state.sequence = saved.sequence
            await self._deliver_left(run, saved.outbox, delivered)
            return run

        seconds = 0.0
        try:
            seconds = await self._thread.run(self._joint.restore, run.state, saved.snapshot, saved.journal)
            if run.state.sequence != saved.sequence:
                raise SnapshotMismatch(
                    f"the stored journal ends at sequence {run.state.sequence}; "
                    f"expected {saved.sequence}, the stored position of the run"
                )
        except (SnapshotMismatch, TimeLimitExceeded) as error:
            run.state = StageRun(self.stage)
            run.state.sequence = saved.sequence
            run.enter(RunPhase.FAILED, f"its state cannot be restored: {described(error)}")
        except TurnEndedError:
            await self.withdraw(run)
            raise

        self.spent[name].restoring += seconds
        run.journal = Journal(
            events=len(saved.journal),
            size=sum(map(len, saved.journal)),
            seconds=seconds,
            snapshot=len(saved.snapshot or b""),
        )
        await self._deliver_left(run, saved.outbox, delivered)
        log.info("loaded run", extra={"run": name, "sequence": saved.sequence, "offset": saved.offset})
        return run

    async def _saved(self, name: str, partition: int) -> RunState | None:
        """Return the stored state of a run; None if there is none. State that was altered is dropped and reported.

        The events of such a run are looked for in the log, from its beginning on, as if Redis had lost the state.
        """
        try:
            return await self._store.load(name)
        except StateAltered as error:
            reason = f"{error}; it is dropped, and the run is rebuilt from the log"
            self._letters.add(OwnRecord(self.stage.reads, partition, name.encode()), reason)
            await self._letters.deliver()
            await self._store.forget(name)
            self.altered.pop(name, None)
            self.altered[name] = reason
            if len(self.altered) > MAX_ALTERED:
                del self.altered[next(iter(self.altered))]
            self._metrics.altered.inc()
            return None

    async def deliver_left(self, name: str, partition: int, evicted: EvictedRun | None) -> Run | None:
        """Deliver the outputs that a run's last owner left. Return the run without its state, or None if not stored."""
        saved = await self._saved(name, partition)
        if saved is None:
            return None
        run = Run(name, partition, StageRun(self.stage))
        run.state.sequence = saved.sequence
        run.attempt_counted = evicted is not None and evicted.attempt_counted
        if saved.quarantined is not None:
            run.enter(RunPhase.QUARANTINED, saved.quarantined)
            self.note_quarantine(name, saved.quarantined)
        known = evicted is not None and evicted.sequence == saved.sequence
        await self._deliver_left(run, saved.outbox, evicted.delivered if evicted and known else 0)
        return run

    async def _deliver_left(self, run: Run, outbox: Sequence[bytes], delivered: int) -> None:
        """Deliver the outputs of the outbox, without the first `delivered` outputs, which Kafka has.

        A failure is only logged for a quarantined run: the outputs may be the reason for its quarantine.
        """
        left = outbox[delivered:]
        try:
            await self._committer.publish(run, left, [None] * len(left))
            run.delivered = len(outbox)
        except (StoreError, BusError):
            raise
        except Exception:
            if run.quarantined is None:
                raise
            log.exception("the last outputs of run %s cannot be delivered", quote(run.name))

    async def advance(self, run: Run, work: Sequence[Work]) -> int:
        """Handle a slice of a run's events, and begin to commit it.

        Return the number of handled events. It is 0 if an event before them is missing, or the run is quarantined.

        Raise `TurnEndedError` if the time of the turn is over before the first event.
        """
        last = run.state.sequence
        old = next((at for at, (_, envelope) in enumerate(work) if envelope.sequence > last), len(work))
        if old:
            self._metrics.duplicates.inc(old)
            return old
        if work[0][1].sequence > last + 1:
            return 0
        done = Slice(last, offset=run.position.offset)
        failure = run.failure or self._too_dear(work[0][1])
        if failure is not None:
            await self._committer.wait_committed(run)
            return 0 if run.quarantined is not None else await self._quarantine(run, done, work[0], failure)
        async with self._joint.compute(run.state, work, done) as overrun:
            await self._committer.wait_committed(run)
            if run.quarantined is not None:  # because of the previous slice, while this slice was computed
                return 0
            if overrun:
                limit = self._settings.handler_seconds
                self.spent[run.name].add(Effort(limit, limit, limit))
                slow = work[min(done.done, len(work) - 1)]
                return await self._quarantine(run, done, slow, f"an event took more than {limit:g} s")

            self.spent[run.name].add(done.effort)
            return await self._conclude(run, work, done)

    async def _conclude(self, run: Run, work: Sequence[Work], done: Slice) -> int:
        """Begin to commit a computed slice. Return the number of its events."""
        self._metrics.duplicates.inc(done.duplicates)
        last = done.last or work[0]  # a slice begins with an event that was not handled before
        failure = await self._undo(run, done) if run.state.spoiled else None
        run.journal.add(done)
        snapshot = None
        if failure is None and run.journal.due(done, self._settings.snapshot_every):
            snapshot, failure = await self._snapshot(run)
        if failure is not None:
            return await self._quarantine(run, done, last, failure)
        self._committer.commit_in_background(
            run, done, snapshot, partial(self._quarantine_afterwards, run, done, last[0])
        )
        if done.size > LARGE_BYTES:
            await self._committer.wait_committed(run)
        return done.done

    async def _undo(self, run: Run, done: Slice) -> str | None:
        """Undo the last event of a slice. Return the reason if the run cannot continue, else None."""
        try:
            saved = await self._store.load(run.name)
        except StateAltered as error:
            raise FencedError(str(error)) from None
        if (-1 if saved is None else saved.sequence) != done.started:
            raise FencedError(
                f"{self.stage.name}: run {quote(run.name)} is no longer at sequence {done.started} in Redis"
            )

        snapshot, journal = (None, ()) if saved is None else (saved.snapshot, saved.journal)
        done.undone = True
        try:
            await self._thread.run(run.state.undo, snapshot, [*journal, *done.inputs[:-1]])
        except (SnapshotMismatch, TimeLimitExceeded) as error:
            return f"an event failed and cannot be undone: {described(error)}"

        if run.state.failures > MAX_FAILURES:
            return f"more than {MAX_FAILURES} of its events failed; the last: {done.refused[-1][1]}"
        return None

    def _too_dear(self, envelope: Envelope) -> str | None:
        """Return the reason if an event opens a run that may need more memory than its worker has for runs, or None."""
        if not isinstance(envelope.event, ClusterOpened):
            return None
        try:
            memory, storing, _ = self.stage.price(envelope.event)
        except SettingsError:  # the stage itself rejects the event
            return None
        if memory + storing <= self._memory_for_runs:
            return None
        return (
            f"with the keys of its SPECs it may need {(memory + storing) / 1e6:,.0f} MB in this stage; a worker has "
            f"{self._memory_for_runs / 1e6:,.0f} MB for runs, {SHARE:.0%} of its memory. "
            "Set smaller keys (history, window), or give workers more memory"
        )

    async def _snapshot(self, run: Run) -> tuple[bytes | None, str | None]:
        """Return the snapshot to store and None, or None and the reason why the run cannot continue."""
        try:
            snapshot = await self._thread.run(run.state.snapshot)
        except (Exception, TimeLimitExceeded) as error:
            return None, f"its state cannot be stored: {described(error)}"
        if len(snapshot) > MAX_STATE_BYTES:
            return None, f"its state has {len(snapshot)} bytes; the limit is {MAX_STATE_BYTES}"
        return snapshot, None

    async def _quarantine(self, run: Run, done: Slice, work: Work, reason: str) -> int:
        """Quarantine a run at an event. Return the number of events of the slice that are done then."""
        reason = quarantine_reason(self.stage.name, run, reason)
        run.enter(RunPhase.QUARANTINED, reason)
        done.end_with(work, reason)
        self._end(run, done, at_its_end=True)
        await self._committer.commit(run, done)
        self.note_quarantine(run.name, reason)
        return done.done

    async def _quarantine_afterwards(self, run: Run, done: Slice, last: Record, reason: str) -> None:
        """Quarantine a run whose slice could not be committed or published. Events computed since then are dropped."""
        reason = quarantine_reason(self.stage.name, run, reason)
        run.enter(RunPhase.QUARANTINED, reason)
        self._letters.add(last, reason)
        self._end(run, done, at_its_end=done.stored)
        await self._committer.commit(run, Slice(run.state.sequence, offset=done.offset))
        self.note_quarantine(run.name, reason)

    def _end(self, run: Run, done: Slice, *, at_its_end: bool) -> None:
        """Set the position of a run to the end of a slice, or to its beginning, and drop the run's state."""
        run.state = StageRun(self.stage)
        run.state.sequence = done.started + (len(done.inputs) if at_its_end else 0)

    def note_quarantine(self, name: str, reason: str) -> None:
        """Record that a run is quarantined, for /health and the metrics."""
        self.quarantined[name] = reason
        self._metrics.quarantined.set(len(self.quarantined))
