"""A slice of a run's events through its stage: computed beside the event loop, committed in one transaction."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from shadowtime.shared.errors import SnapshotMismatch
from shadowtime.shared.messages import ClusterClosed, Envelope, JobEnded, JobSubmitted, JobWithdrawn, Rejected
from shadowtime.shared.stages import StageRun, described, rejected
from shadowtime.shared.streaming.protocols import Record

Work = tuple[Record, Envelope]

SLICE_SECONDS = 0.1
"""After so long a slice ends, with the event that it is at: others have their turn, and what is done is kept."""

LARGE_BYTES = 400_000
"""Inputs and outputs of a slice that is committed before the next is worked out: few of them are in memory."""

JOURNAL_BYTES, JOURNAL_SECONDS = 4_000_000, 5.0
"""Inputs, and time to work them out, after which a snapshot takes the place of the journal."""

SLICE_BYTES = 4_000_000
"""Inputs and outputs of a slice; with more it ends, too."""


@dataclass
class Run:
    """A run that a worker holds.

    Parameters
    ----------
    offset
        That of the last event that was handled; -1 for none.
    epoch, sure_from
        In stretch `epoch` of the log, all records of the run from this offset on were handed over.
    searched
        Before this offset all that the log has of it has been looked for.
    delivered
        Outputs in the store's outbox that have reached Kafka.
    events, size, seconds
        Inputs since the last snapshot, their bytes, and what they took.
    stored
        Bytes of that snapshot.
    catching_up
        Whether the topic holds more of it than a worker will be handed.
    failure
        Why it cannot be carried on, which its next event will hear.
    attempt_counted
        Whether the store counts this process as one that works on its next event.
    commit_task
        The commit of its last slice, until somebody has waited for that.
    """

    name: str
    partition: int
    state: StageRun
    offset: int = -1
    epoch: int = 0
    sure_from: int = 0
    searched: int = 0
    delivered: int = 0
    events: int = 0
    size: int = 0
    seconds: float = 0.0
    stored: int = 0
    catching_up: bool = False
    closed: bool = False
    failure: str | None = None
    quarantined: str | None = None
    attempt_counted: bool = False
    commit_task: asyncio.Task[None] | None = None

    def move(self, done: "Slice", snapshot: bytes | None) -> None:
        """Be where a slice ends, with its snapshot if it has one, though it may be stored and delivered later."""
        self.offset = done.offset
        self.closed |= done.closed
        if snapshot is not None:
            self.events, self.size, self.seconds, self.stored = 0, 0, 0.0, len(snapshot)


class EvictedRun(NamedTuple):
    """The remainder of a run that was evicted, valid as long as the run is stored at `sequence`."""

    sequence: int
    searched: int
    delivered: int

    @classmethod
    def of(cls, run: Run) -> "EvictedRun":
        """Return what is kept of a run."""
        return cls(run.state.sequence, run.searched, run.delivered)


@dataclass
class Slice:
    """Uncommitted changes of some events in one run."""

    started: int
    done: int = 0
    """Events that were looked at, duplicates among them."""

    offset: int = -1
    duplicates: int = 0
    size: int = 0
    inputs: list[bytes] = field(default_factory=list)
    outputs: list[bytes] = field(default_factory=list)
    times: list[float | None] = field(default_factory=list)
    refused: list[tuple[Record, str]] = field(default_factory=list)
    read_model: dict[str, bytes] = field(default_factory=dict)
    forgotten: dict[str, None] = field(default_factory=dict)
    closed: bool = False
    undone: bool = False
    stored: bool = False
    last: Work | None = None
    """The event that was added last."""

    seconds: float = 0.0
    """What working it out took."""

    def add(self, record: Record, envelope: Envelope, forwarded: Envelope, output: bytes) -> None:
        """Take in an event and its output; a new refusal is noted for the dead letters."""
        value = record.value or b""
        self.last = record, envelope
        self.done += 1
        self.offset = record.offset
        self.size += len(value) + len(output)
        self.inputs.append(value)
        self.outputs.append(output)
        self.times.append(record.timestamp)
        event = forwarded.event
        if isinstance(event, Rejected):
            if not isinstance(envelope.event, Rejected):
                self.refused.append((record, event.reason))
        elif isinstance(event, JobSubmitted):
            name = f"job:{event.job_number}"
            self.read_model[name] = output
            self.forgotten.pop(name, None)
        elif isinstance(event, JobWithdrawn) or (isinstance(event, JobEnded) and not event.requeued):
            name = f"job:{event.job_number}"
            self.read_model.pop(name, None)
            self.forgotten[name] = None
        elif isinstance(event, ClusterClosed):
            self.closed = True

    def end_with(self, work: Work, reason: str) -> None:
        """Let the run end with an event, the one that was added last or the next: it is quarantined."""
        record, envelope = work
        if self.offset == record.offset and self.inputs:
            self.done -= 1
            for column in (self.inputs, self.outputs, self.times):
                column.pop()
            if self.refused and self.refused[-1][0] is record:
                self.refused.pop()
        forwarded = rejected(envelope, reason, "quarantined")
        self.add(record, envelope, forwarded, forwarded.to_bytes())


def snapshot_due(run: Run, done: Slice, every: int) -> bool:
    """Return whether the journal is not to grow: it is long, or its last event could not be worked out again.

    `every` is the most events of a journal.
    """
    return done.undone or run.events >= every or run.size >= JOURNAL_BYTES or run.seconds >= JOURNAL_SECONDS


def push_slice(
    state: StageRun,
    work: Sequence[Work],
    done: Slice,
    max_output_bytes: int,
    clock: Callable[[], float],
    seconds: float = SLICE_SECONDS,
) -> None:
    """Push events through a stage until one is missing or spoils the run, or time or space is up.

    Parameters
    ----------
    state
        The run; it is at `done.started`.
    work
        Records of the run and what is in them.
    done
        Where each event is noted as soon as it is done.
    max_output_bytes
        An output above it spoils the run, as an error in the stage does.
    """
    began = clock()
    for record, envelope in work:
        ahead = envelope.sequence - state.sequence
        if ahead > 1:
            return
        if ahead < 1:
            done.done += 1
            done.duplicates += 1
            continue
        forwarded = state.push(envelope)
        if forwarded is None:
            raise SnapshotMismatch(f"{state.stage.name}: sequence {envelope.sequence} is not handled")
        forwarded, output = _encoded(state, envelope, forwarded, max_output_bytes)
        done.add(record, envelope, forwarded, output)
        done.seconds = clock() - began
        if state.spoiled or done.seconds > seconds or done.size > SLICE_BYTES:
            return


def _encoded(state: StageRun, envelope: Envelope, forwarded: Envelope, most: int) -> tuple[Envelope, bytes]:
    """Return the forwarded and its bytes; one that cannot be sent spoils the run, and a `Rejected` takes its place."""
    try:
        output = forwarded.to_bytes()
        if len(output) <= most:
            return forwarded, output
        forwarded = rejected(envelope, f"an output of {len(output)} bytes; at most {most} are sent", "too-large")
    except Exception as error:
        forwarded = rejected(envelope, f"{state.stage.name} failed: {described(error)}", "failed")
    state.spoiled = True
    return forwarded, forwarded.to_bytes()


# The runs that a worker holds in memory, within bounds, and what it remembers of those that it holds no longer.

MAX_HELD = 1_000
"""Runs whose state is held in memory; that of others is loaded when their next event comes."""

MAX_HELD_BYTES = 64_000_000
"""Bytes of the last snapshots, and of the inputs since, of all runs that are held in memory: several times as many."""

MAX_EVICTED = 10_000
"""Runs that are no longer held of which it is known how far their log has been searched, and what was delivered."""


class RunCache:
    """Runs by name; of too many, those are put away that nothing has come for longest. O(1) a run.

    A run is taken out while it is worked on: what is held does not grow.
    """

    def __init__(self) -> None:
        self._runs: OrderedDict[str, Run] = OrderedDict()
        self._bytes = 0
        self._evicted: OrderedDict[str, EvictedRun] = OrderedDict()

    def __contains__(self, name: str) -> bool:
        return name in self._runs

    def __len__(self) -> int:
        return len(self._runs)

    def hold(self, run: Run) -> None:
        """Keep a run, as the one that something came for last."""
        self._runs[run.name] = run
        self._bytes += _bytes(run)
        while len(self._runs) > MAX_HELD or (len(self._runs) > 1 and self._bytes > MAX_HELD_BYTES):
            _, oldest = self._runs.popitem(last=False)
            self._bytes -= _bytes(oldest)
            self.remember(oldest)

    def take_out(self, name: str) -> Run | None:
        """Return a run and hold it no longer; None if it is not held."""
        run = self._runs.pop(name, None)
        if run is not None:
            self._bytes -= _bytes(run)
        return run

    def remember(self, run: Run) -> None:
        """Remember how many outputs were delivered of a run that the cache does not hold."""
        self._evicted[run.name] = EvictedRun.of(run)
        while len(self._evicted) > MAX_EVICTED:
            self._evicted.popitem(last=False)

    def pop_evicted(self, name: str) -> EvictedRun | None:
        """Return what is remembered of a run that is to be loaded again, and forget it."""
        return self._evicted.pop(name, None)

    def delivered(self, name: str, sequence: int) -> int:
        """Return how many outputs of a run's outbox this process has delivered, if the run is still at `sequence`."""
        held = self._runs.get(name)
        known = self._evicted.get(name) if held is None else EvictedRun.of(held)
        return 0 if known is None or known.sequence != sequence else known.delivered

    def clear(self) -> None:
        """Forget all runs."""
        self._runs.clear()
        self._bytes = 0
        self._evicted.clear()


def _bytes(run: Run) -> int:
    return run.stored + run.size
