"""A slice of a run's events: its stage computes it in a thread, and it is committed in one transaction."""

import gc
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from shadowtime.shared.errors import SnapshotMismatch
from shadowtime.shared.messages import ClusterClosed, Envelope, JobEnded, JobSubmitted, JobWithdrawn, Rejected
from shadowtime.shared.stages import StageRun, described, rejected
from shadowtime.shared.streaming.protocols import Record

Work = tuple[Record, Envelope]

SLICE_SECONDS = 0.1
"""Seconds after which a slice ends, behind its current event, so that other runs get their turn."""

LARGE_BYTES = 400_000
"""Bytes of inputs and outputs above which a slice is committed before the next is computed, to bound memory."""

SLICE_BYTES = 4_000_000
"""Bytes of inputs and outputs after which a slice ends, too."""


@dataclass
class Effort:
    """The stage's own work on events, in seconds.

    `seconds` is the elapsed time of all events, `busy` their processor time, and `longest` that of the longest event.
    `restoring` is the elapsed time to restore the run before them. Garbage collections do not count as processor time,
    because other runs may have caused them.
    """

    seconds: float = 0.0
    busy: float = 0.0
    longest: float = 0.0
    restoring: float = 0.0

    def add(self, other: "Effort") -> None:
        """Add the work on further events."""
        self.seconds += other.seconds
        self.busy += other.busy
        self.longest = max(self.longest, other.longest)
        self.restoring += other.restoring


@dataclass
class Slice:
    """The effects of consecutive events of a run. `started` is the run's sequence before these events.

    `refused` has the events that the stage rejected, with the reasons. `undone` states whether the last event was
    undone, and `stored` whether the slice is in Redis. Other fields are as in `Transaction`.
    """

    started: int
    done: int = 0
    """The number of processed events, including duplicates."""

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

    effort: Effort = field(default_factory=Effort)
    """The work of computing it."""

    def add(self, record: Record, envelope: Envelope, forwarded: Envelope, output: bytes) -> None:
        """Add an event and its output. A new rejection is noted for the dead letters."""
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
        """End the slice with the quarantine of the run, at the event that was added last, or at the next one."""
        record, envelope = work
        if self.offset == record.offset and self.inputs:
            self.done -= 1
            for column in (self.inputs, self.outputs, self.times):
                column.pop()
            if self.refused and self.refused[-1][0] is record:
                self.refused.pop()

        forwarded = rejected(envelope, reason, "quarantined")
        self.add(record, envelope, forwarded, forwarded.to_bytes())


SUSPICIOUS_SECONDS = 0.001
"""Seconds of an event from which on its processor time is measured: the system call costs more than most events."""


class EffortMeter:
    """Measures the work on events: one lap for each event.

    The elapsed time of an event bounds its processor time. So processor time is measured for the events that take
    `SUSPICIOUS_SECONDS` or longer, and for all events together at the end.
    """

    def __init__(self, clock: Callable[[], float], effort: Effort) -> None:
        self._clock, self._effort = clock, effort
        self._began = self._lap = clock()
        self._first = self._busy = own_seconds()
        self._short = 0.0
        """Seconds of the events since the processor time was measured."""

    def lap(self) -> None:
        """Record that an event was handled."""
        lap, effort = self._lap, self._effort
        self._lap = now = self._clock()
        took = now - lap
        effort.seconds = now - self._began
        if took >= SUSPICIOUS_SECONDS:
            busy = own_seconds()
            took = min(took, max(busy - self._busy - self._short, 0.0))
            self._busy, self._short = busy, 0.0
            effort.busy = busy - self._first
        else:
            self._short += took
        effort.longest = max(effort.longest, took)

    def stop(self) -> None:
        """Record that no event follows."""
        effort = self._effort
        effort.busy = min(own_seconds() - self._first, effort.seconds)
        effort.longest = min(effort.longest, effort.busy)


def push_slice(
    state: StageRun,
    work: Sequence[Work],
    done: Slice,
    max_output_bytes: int,
    clock: Callable[[], float],
    seconds: float = SLICE_SECONDS,
) -> None:
    """Push events through a stage, until an event is missing or spoils the run, or the slice has reached a limit.

    Parameters
    ----------
    state
        The run; it is at `done.started`.
    work
        Records of the run, and their envelopes.
    done
        The slice to which each event is added as soon as it is handled.
    max_output_bytes
        A larger output spoils the run, as an error in the stage does.
    seconds
        Elapsed seconds by `clock` after which no further event is pushed.

    Raise `SnapshotMismatch` if the run is spoiled already.
    """
    meter = EffortMeter(clock, done.effort)
    for record, envelope in work:
        ahead = envelope.sequence - state.sequence
        if ahead > 1:
            break
        if ahead < 1:
            done.done += 1
            done.duplicates += 1
            continue

        forwarded = state.push(envelope)
        if forwarded is None:
            raise SnapshotMismatch(
                f"{state.stage.name}: run {envelope.run!r} is at sequence {state.sequence}, "
                f"but took event {envelope.sequence} for a duplicate"
            )
        forwarded, output = _encoded(state, envelope, forwarded, max_output_bytes)
        done.add(record, envelope, forwarded, output)
        meter.lap()
        if state.spoiled or done.effort.seconds > seconds or done.size > SLICE_BYTES:
            break

    meter.stop()


FULL = 2
"""The generation of a garbage collection that looks at all objects."""


class GarbageCollections(threading.local):
    """The garbage collections of a thread. They run in whichever thread allocates."""

    began = 0.0
    seconds = 0.0

    def note(self, phase: str, details: Mapping[str, int]) -> None:
        """Note the beginning or the end of a collection, for `gc.callbacks`. Only full ones take long."""
        if details["generation"] < FULL:
            return
        if phase == "start":
            self.began = time.thread_time()
        else:
            self.seconds += time.thread_time() - self.began


garbage_collections = GarbageCollections()
gc.callbacks.append(garbage_collections.note)


def own_seconds() -> float:
    """Return the processor time of this thread, less that of garbage collections; only differences count."""
    return time.thread_time() - garbage_collections.seconds


def _encoded(state: StageRun, envelope: Envelope, forwarded: Envelope, most: int) -> tuple[Envelope, bytes]:
    """Return the forwarded envelope and its bytes. If it cannot be sent, spoil the run and return a rejection."""
    try:
        output = forwarded.to_bytes()
        if len(output) <= most:
            return forwarded, output
        forwarded = rejected(envelope, f"an output has {len(output)} bytes; the limit is {most}", "too-large")
    except Exception as error:
        forwarded = rejected(envelope, f"{state.stage.name} failed: {described(error)}", "failed")

    state.spoiled = True
    return forwarded, forwarded.to_bytes()
