"""A run that a worker holds, and its legal states.

Theory of operation
-------------------
A run has a phase, and two properties that do not depend on the phase:

* The phase says what happens to its next event. `TRANSITIONS` has every legal change; any other is a fault of the
  worker and raises `IllegalTransition`.
* Either one slice of the run is being committed, or none (`begin_commit`, `take_commit`).
* Either the store counts this process as one that works on the run's next event, or not (`attempt_counted`). The count
  is raised before the first event that this process works on. Each commit resets it.

A run that is not held in memory has no phase. `RunLifecycle.load` makes an active run from the stored state; the run
may then fail or be quarantined. After an error of Kafka or Redis, all runs are forgotten, whatever their phase.
"""

import asyncio
from dataclasses import dataclass, field
from enum import Enum

from shadowtime.shared.quoting import quote
from shadowtime.shared.stages import StageRun
from shadowtime.shared.streaming.worker.slices import Slice


class RunPhase(Enum):
    """The treatment of a run's next event by its worker."""

    ACTIVE = "active"
    """The event is handled."""
    CLOSED = "closed"
    """The run's log has ended: the run is forgotten once it is committed."""
    FAILED = "failed"
    """The run cannot continue: its next event quarantines it."""
    QUARANTINED = "quarantined"
    """The run's log has the reason. Its later events are counted and not handled."""


TRANSITIONS = {
    RunPhase.ACTIVE: {
        RunPhase.CLOSED: "a slice with the end of the log",
        RunPhase.FAILED: "it cannot be restored, ends processes, is refused by Kafka, or raises",
        RunPhase.QUARANTINED: "an event takes too long or cannot be undone; its state cannot be stored",
    },
    RunPhase.CLOSED: {
        RunPhase.FAILED: "Kafka refuses its last outputs",
        RunPhase.QUARANTINED: "an event behind the end cannot be handled",
    },
    RunPhase.FAILED: {
        RunPhase.FAILED: "Kafka also refuses its outputs",
        RunPhase.QUARANTINED: "its next event, or the end of the commit that failed",
    },
    RunPhase.QUARANTINED: {},
}
"""The phases that may follow each phase, with the causes."""


class IllegalTransition(Exception):
    """A worker took a run from a phase into one that may not follow it, or committed two of its slices at once."""


@dataclass
class LogPosition:
    """The position up to which a run has been read in the log of its partition.

    Parameters
    ----------
    offset
        The offset of the last event that was handled; -1 for none.
    epoch, sure_from
        In stretch `epoch` of the log, all records of the run from offset `sure_from` on were handed over.
    searched
        The log before this offset has been searched for records of the run.
    log
        The identity of the log in which all these offsets count.
    """

    offset: int = -1
    epoch: int = 0
    sure_from: int = 0
    searched: int = 0
    log: str = ""


JOURNAL_BYTES, JOURNAL_SECONDS = 4_000_000, 0.5
"""Bytes of inputs, and seconds to compute them, after which a snapshot replaces the journal."""

SHORT_JOURNAL, TIMES_SNAPSHOT = 256_000, 8
"""A snapshot also replaces a journal that has as many bytes, and as many times the bytes of the last snapshot. Such a
snapshot costs little beside the events, and the run is restored many times faster."""


@dataclass
class Journal:
    """The size of a run's data in the store: its last snapshot, and the inputs since.

    Parameters
    ----------
    events, size, seconds
        The number of inputs since the last snapshot, their bytes, and the seconds to compute them.
    snapshot
        Bytes of that snapshot.
    """

    events: int = 0
    size: int = 0
    seconds: float = 0.0
    snapshot: int = 0

    def add(self, done: Slice) -> None:
        """Add a slice."""
        self.events += len(done.inputs)
        self.size += sum(map(len, done.inputs))
        self.seconds += done.effort.seconds

    def due(self, done: Slice, every: int) -> bool:
        """Return whether a snapshot must replace the journal: it is long, an event was undone, or the log has ended.

        The run of an ended log is not held, so each event behind the end restores it, only to be refused. `every` is
        the maximum number of events of a journal.
        """
        most = min(JOURNAL_BYTES, max(SHORT_JOURNAL, TIMES_SNAPSHOT * self.snapshot))
        long = self.events >= every or self.size >= most or self.seconds >= JOURNAL_SECONDS
        return done.undone or done.closed or long


@dataclass
class Run:
    """A run that a worker holds.

    Parameters
    ----------
    delivered
        Outputs in the store's outbox that have reached Kafka.
    catching_up
        See `Transaction`.
    attempt_counted
        Whether the store counts this process as one that works on the run's next event.
    """

    name: str
    partition: int
    state: StageRun
    position: LogPosition = field(default_factory=LogPosition)
    journal: Journal = field(default_factory=Journal)
    delivered: int = 0
    catching_up: bool = False
    attempt_counted: bool = False
    phase: RunPhase = RunPhase.ACTIVE
    reason: str | None = None
    """The reason why the run failed or is quarantined."""
    commit: asyncio.Task[None] | None = None
    """The commit of its last slice, until a caller has taken it in order to wait for it."""

    def enter(self, phase: RunPhase, reason: str | None = None) -> None:
        """Enter a phase. Raise `IllegalTransition` if it may not follow the present phase."""
        if phase not in TRANSITIONS[self.phase]:
            raise IllegalTransition(f"run {quote(self.name)}: {self.phase.value} cannot become {phase.value}")
        self.phase, self.reason = phase, reason

    @property
    def failure(self) -> str | None:
        """The reason why the run failed; its next event quarantines it. None in other phases."""
        return self.reason if self.phase is RunPhase.FAILED else None

    @property
    def quarantined(self) -> str | None:
        """The reason why the run is quarantined; None if it is not."""
        return self.reason if self.phase is RunPhase.QUARANTINED else None

    def move(self, done: Slice, snapshot: bytes | None) -> None:
        """Move the position to the end of a slice, which may be stored later. With a snapshot, begin a new journal."""
        self.position.offset = done.offset
        if done.closed and self.phase is RunPhase.ACTIVE:
            self.enter(RunPhase.CLOSED)
        if snapshot is not None:
            self.journal = Journal(snapshot=len(snapshot))

    def begin_commit(self, task: asyncio.Task[None]) -> None:
        """Record that `task` commits a slice. Raise `IllegalTransition` if another slice is being committed."""
        if self.commit is not None:
            raise IllegalTransition(f"run {quote(self.name)}: two of its slices are committed at once")
        self.commit = task

    def take_commit(self) -> asyncio.Task[None] | None:
        """Return and clear the commit under way; None if there is none. The caller must wait for it."""
        task, self.commit = self.commit, None
        return task
