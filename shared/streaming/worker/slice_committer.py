"""Commit of a run's outputs to the store, then to the stream, while its next events are processed.

Theory of operation
-------------------
The worker computes slice n + 1 of a run while slice n is being committed. At most one slice of a run is committed at a
time:

1. Compute slice n + 1.
2. Wait until slice n is stored in Redis and published to Kafka (`wait_committed`).
3. Commit slice n + 1 in the background (`commit_in_background`), and return to 1.

The offset of a record is acknowledged only after its slice is committed: `shared/streaming/worker/loop.py` acknowledges
records to faust, and faust commits the acknowledged offsets to Kafka (`shared/streaming/kafka/offset_commits.py`).
After an unforeseen error, `loop.py` also acknowledges the records that it gives up: they are still in the log.

If the commit of slice n fails, slice n + 1 was computed from a state that was never stored. The error reaches the
caller in step 2. The caller forgets the run, handles both slices again, and the run is loaded from Redis
(`shared/streaming/state/redis_store.py`).

Dead letters are delivered before the commit, since the records before the new position are not read again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from shadowtime.shared.errors import BusError, MessageRejected, StoreError
from shadowtime.shared.messages import Envelope
from shadowtime.shared.quoting import quote, truncate
from shadowtime.shared.stages import described, rejected
from shadowtime.shared.streaming.protocols import Transaction
from shadowtime.shared.streaming.worker.context import WorkerContext
from shadowtime.shared.streaming.worker.dead_letter_buffer import DeadLetters
from shadowtime.shared.streaming.worker.run import Run, RunPhase
from shadowtime.shared.streaming.worker.slices import Slice

log = logging.getLogger("shadowtime.worker")


class SliceCommitter:
    """Commits and delivers the slices of all runs.

    `attempted` has the names of the runs for which the store counts this process as one that works on the next event. A
    commit of a run removes its name.

    Parameters
    ----------
    letters
        They are delivered before a slice is committed: records before its new position are not read again.
    """

    def __init__(self, context: WorkerContext, letters: DeadLetters) -> None:
        self._stage = context.stage.name
        self._store, self._stream = context.store, context.stream
        self._metrics = context.metrics
        self._letters = letters
        self.attempted: set[str] = set()
        self._under_way: set[asyncio.Task[None]] = set()

    def commit_in_background(
        self, run: Run, done: Slice, snapshot: bytes | None, refused: Callable[[str], Awaitable[None]]
    ) -> None:
        """Commit a slice in the background; call `refused` with the reason if the run cannot continue.

        The slice before it must be committed. If the commit fails, `wait_committed` raises the error, and the caller
        forgets the run.
        """

        async def commit() -> None:
            try:
                failure = await self._commit(run, done, snapshot)
            except (StoreError, BusError):
                raise
            except Exception as error:
                log.exception("run %s cannot continue", quote(run.name))
                failure = described(error)

            if failure is not None:
                await refused(failure)

        run.move(done, snapshot)
        task = asyncio.create_task(commit())
        run.begin_commit(task)
        self._under_way.add(task)
        task.add_done_callback(self._end_one)

    async def wait_committed(self, run: Run) -> None:
        """Return when no slice of a run is being committed any more. Raise the error of its commit, if it failed."""
        if (task := run.take_commit()) is not None:
            await task

    async def drain(self) -> None:
        """Return when no slice of any run is being committed any more, whether or not the commits succeeded."""
        await asyncio.gather(*self._under_way, return_exceptions=True)

    def _end_one(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            task.exception()  # retrieved here, even if nobody waits for the task any more

    def cancel(self) -> None:
        """Cancel all commits under way."""
        for task in self._under_way:
            task.cancel()

    async def commit(self, run: Run, done: Slice, snapshot: bytes | None = None) -> str | None:
        """Deliver dead letters, commit a slice, and publish its outputs.

        Return the reason if the run cannot continue, else None.
        """
        run.move(done, snapshot)
        return await self._commit(run, done, snapshot)

    async def _commit(self, run: Run, done: Slice, snapshot: bytes | None) -> str | None:
        for record, reason in done.refused:
            self._letters.add(record, reason)
        await self._letters.deliver()
        await self._store.commit(
            Transaction(
                run=run.name,
                expected=done.started,
                sequence=done.started + len(done.inputs),
                offset=done.offset,
                partition=run.partition,
                snapshot=snapshot,
                inputs=done.inputs,
                outputs=done.outputs,
                delivered=run.delivered,
                read_model=done.read_model,
                forgotten=list(done.forgotten),
                closed=done.closed,
                quarantined=run.quarantined,
                catching_up=run.catching_up,
                log=run.position.log,
            )
        )
        self.attempted.discard(run.name)
        done.stored, run.attempt_counted, run.delivered = True, True, 0
        self._metrics.events.inc(len(done.inputs))
        await self.publish(run, done.outputs, done.times)
        return run.failure

    async def publish(self, run: Run, outputs: Sequence[bytes], times: Sequence[float | None]) -> None:
        """Publish outputs. If Kafka never accepts one of them, publish a `Rejected` in its place, and end the run."""
        try:
            await self._stream.publish(run.partition, run.name, outputs, times)
        except MessageRejected as refused:
            reason = str(refused)
            if run.phase is not RunPhase.QUARANTINED:
                run.enter(RunPhase.FAILED, reason)
            for output, time in zip(outputs, times, strict=True):
                try:
                    await self._stream.publish(run.partition, run.name, [output], [time])
                except MessageRejected:
                    last = rejected(
                        Envelope.from_bytes(output), quarantine_reason(self._stage, run, reason), "quarantined"
                    )
                    await self._stream.publish(run.partition, run.name, [last.to_bytes()], [time])
                    break

        run.delivered = len(outputs)


def quarantine_reason(stage: str, run: Run, reason: str) -> str:
    """Return the reason for a quarantine as a text for users that names the remedy."""
    return truncate(
        f"run {quote(run.name)} is quarantined by stage {stage}: {reason}; "
        f"to continue it: shadowtime rebuild {stage} --run {quote(run.name)}"
    )
