"""One stage at work on a stream: effectively once, whatever the stream and the store do to it.

The rules it keeps, for each run:

1. Event `last + 1` is handled, one up to `last` is a duplicate, one beyond is never applied: what is missing is read
   again from the log, and if it is not there, the event is a dead letter.
2. State, position and outputs change in one transaction, fenced by the sequence from which the worker started. When
   it fails in any way, the worker forgets the run and loads it again: recovery and start are one path.
3. Outputs leave after their transaction, in order, and only then the outbox; what a predecessor left in the outbox
   leaves first.

What a record that cannot be used was, and why, goes to the dead letters; the stream goes on.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import ValidationError

from shared.errors import BusError, Fenced, SequenceGap, StoreError
from shared.events import ClusterClosed, Envelope, JobEnded, JobSubmitted, Rejected
from shared.settings import Settings
from shared.stage import Stage, StageRun
from shared.state_store import StateStore, Transaction
from shared.worker_metrics import WorkerMetrics

log = logging.getLogger("shadowtime.worker")


class Record(Protocol):
    """A message as it came from a topic."""

    topic: str
    partition: int
    offset: int
    value: bytes | None
    timestamp: float | None
    """Unix time in seconds at which its event entered the first topic: outputs inherit that of their input."""


class Stream(Protocol):
    """What a worker needs of Kafka."""

    async def publish(self, partition: int, run: str, values: Sequence[bytes], times: Sequence[float | None]) -> None:
        """Deliver outputs to the stage's own topic, in order; raise `BusError` if that is not certain.

        `times` are those of their inputs, None where they are not known.
        """
        ...

    async def bury(self, record: Record, reason: str) -> None:
        """Deliver a record to the dead letters; raise `BusError` if that is not certain."""
        ...

    async def reread(self, partition: int, start: int, stop: int) -> Sequence[Record]:
        """Return the records of the stage's input from offset `start` up to `stop`."""
        ...


@dataclass
class _Run:
    """A run that this worker holds; `outbox` counts the outputs that Redis may still keep."""

    state: StageRun
    partition: int
    offset: int = -1
    outbox: int = 0
    since_snapshot: int = 0
    delivered: int = 0


@dataclass
class _Batch:
    """What a batch of records has done to one run, not yet committed."""

    started: int
    inputs: list[bytes] = field(default_factory=list)
    outputs: list[bytes] = field(default_factory=list)
    times: list[float | None] = field(default_factory=list)
    read_model: dict[str, bytes] = field(default_factory=dict)
    forgotten: dict[str, None] = field(default_factory=dict)
    closed: bool = False


class StageWorker:
    """Handles records in order of each partition; not concurrent: one call at a time."""

    def __init__(
        self,
        stage: Stage,
        store: StateStore,
        stream: Stream,
        settings: Settings,
        metrics: WorkerMetrics,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.stage = stage
        self._store = store
        self._stream = stream
        self._settings = settings
        self._metrics = metrics
        self._sleep = sleep
        self._runs: dict[str, _Run] = {}

    async def take(self, partition: int) -> None:
        """Begin with a partition that was just assigned: deliver what its last owner may have left undelivered."""
        await self._patiently(lambda: self._take(partition))

    def drop(self) -> None:
        """Forget all runs: they are loaded again when their next record comes."""
        self._runs.clear()

    async def handle(self, records: Sequence[Record]) -> None:
        """Handle records as they lie in their partitions; returns when all of them are done with for good."""
        await self._patiently(lambda: self._handle(records))

    async def _patiently(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do `work`, again and again while Kafka or Redis fail: all of it may be repeated."""
        pause = 0.05
        while True:
            try:
                return await work()
            except Fenced as fenced:
                log.warning("%s", fenced)
                self._metrics.fenced.inc()
            except (StoreError, BusError) as error:
                log.warning("%s: %s; trying again in %.1f s", self.stage.name, error, pause)
                self._metrics.retries.inc()
                await self._sleep(pause)
                pause = min(2 * pause, 2.0)
            self.drop()

    async def _take(self, partition: int) -> None:
        for name in await self._store.runs(partition):
            if name not in self._runs and (await self._load(name, partition)).state.sequence < 0:
                await self._store.forget(name)  # it was closed long ago, and its state has expired

    async def _load(self, name: str, partition: int) -> _Run:
        saved = await self._store.load(name)
        run = _Run(StageRun(self.stage), partition if saved is None else saved.partition)
        if saved is not None:
            if saved.snapshot is not None:
                run.state.restore(saved.snapshot)
            for value in saved.journal:
                run.state.push(Envelope.from_bytes(value))
            if run.state.sequence != saved.sequence:
                raise SequenceGap(
                    f"{self.stage.name}: the journal of run {name!r} ends at {run.state.sequence}, its position is "
                    f"{saved.sequence}; rebuild it: python -m services rebuild {self.stage.name} --run {name}"
                )
            run.offset, run.since_snapshot, run.outbox = saved.offset, len(saved.journal), len(saved.outbox)
            await self._stream.publish(saved.partition, name, saved.outbox, [None] * len(saved.outbox))
            run.delivered = run.outbox
            log.info("loaded run", extra={"run": name, "sequence": saved.sequence, "offset": saved.offset})
        self._runs[name] = run
        return run

    async def _handle(self, records: Sequence[Record]) -> None:
        batches: dict[str, _Batch] = {}
        for record in records:
            envelope = await self._parse(record)
            if envelope is None:
                continue
            run = self._runs.get(envelope.run) or await self._load(envelope.run, record.partition)
            if record.partition != run.partition:
                await self._bury(record, f"run {envelope.run!r} lives on partition {run.partition}")
                continue
            missing = envelope.sequence - run.state.sequence - 1
            if missing > 0:
                for earlier in await self._stream.reread(record.partition, run.offset + 1, record.offset):
                    other = Envelope.read(earlier.value)
                    if other is not None and other.run == envelope.run:
                        await self._apply(run, other, earlier, batches)
                missing = envelope.sequence - run.state.sequence - 1
            if missing > 0:
                reason = f"sequence {envelope.sequence} of run {envelope.run!r} follows {run.state.sequence}"
                await self._bury(record, f"{reason}: {missing} events are missing from the log")
                continue
            await self._apply(run, envelope, record, batches)
        for name, batch in batches.items():
            await self._commit(name, batch)

    async def _apply(self, run: _Run, envelope: Envelope, record: Record, batches: dict[str, _Batch]) -> None:
        """Push one envelope through the stage, and note what that did in its run's batch."""
        if envelope.sequence != run.state.sequence + 1:
            self._metrics.duplicates.inc()
            return
        batch = batches.setdefault(envelope.run, _Batch(run.state.sequence))
        answer = run.state.push(envelope)
        if answer is None or record.value is None:
            return
        run.offset = record.offset
        batch.inputs.append(record.value)
        batch.outputs.append(answer.to_bytes())
        batch.times.append(record.timestamp)
        if isinstance(answer.event, Rejected) and not isinstance(envelope.event, Rejected):
            await self._bury(record, answer.event.reason)
        self._note(answer, batch)
        self._metrics.events.inc()

    def _note(self, answer: Envelope, batch: _Batch) -> None:
        """Keep the read model: what this run's topic says of each live job, until the job ends."""
        event = answer.event
        if isinstance(event, JobSubmitted):
            name = f"job:{event.job_number}"
            batch.read_model[name] = batch.outputs[-1]
            batch.forgotten.pop(name, None)
        elif isinstance(event, JobEnded) and not event.requeued:
            name = f"job:{event.job_number}"
            batch.read_model.pop(name, None)
            batch.forgotten[name] = None
        elif isinstance(event, ClusterClosed):
            batch.closed = True

    async def _commit(self, name: str, batch: _Batch) -> None:
        run = self._runs[name]
        run.since_snapshot += len(batch.inputs)
        snapshot = run.state.snapshot() if run.since_snapshot >= self._settings.snapshot_every else None
        await self._store.commit(
            Transaction(
                run=name,
                expected=batch.started,
                sequence=run.state.sequence,
                offset=run.offset,
                partition=run.partition,
                snapshot=snapshot,
                inputs=batch.inputs,
                outputs=batch.outputs,
                delivered=run.delivered,
                read_model=batch.read_model,
                forgotten=list(batch.forgotten),
                closed=batch.closed,
            )
        )
        if snapshot is not None:
            run.since_snapshot = 0
        await self._stream.publish(run.partition, name, batch.outputs, batch.times)
        run.delivered = len(batch.outputs)
        if batch.closed:
            del self._runs[name]

    async def _parse(self, record: Record) -> Envelope | None:
        """Return the record's envelope, or bury it."""
        if record.value is None:
            await self._bury(record, "the message is empty")
            return None
        if len(record.value) > self._settings.max_message_bytes:
            await self._bury(record, f"{len(record.value)} bytes; at most {self._settings.max_message_bytes} are taken")
            return None
        try:
            return Envelope.from_bytes(record.value)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            place = ".".join(map(str, first["loc"])) or "message"
            await self._bury(record, f"not an envelope of this schema: {place}: {first['msg']}")
            return None

    async def _bury(self, record: Record, reason: str) -> None:
        log.error("dead letter: %s", reason, extra={"partition": record.partition, "offset": record.offset})
        self._metrics.dead_letters.inc()
        await self._stream.bury(record, reason)
