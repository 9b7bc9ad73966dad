"""A stage of the pipeline: sans-I/O, one envelope in, one envelope out.

The rules that every stage keeps:

1. Of each run, envelope `last + 1` is handled, one up to `last` is a duplicate and dropped, one beyond is a gap and
   never applied.
2. An event that contradicts the log changes nothing and travels on as `Rejected`.
3. Everything a stage knows about a run is in its snapshot; after `restore` it answers as if never interrupted.
"""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import orjson

from shared.errors import RuleBroken, SequenceGap, SettingsError, SnapshotMismatch
from shared.events import (
    CapacityChanged,
    ClusterClosed,
    ClusterOpened,
    Decided,
    Envelope,
    JobEnded,
    JobStarted,
    JobSubmitted,
    Rejected,
    SchedulingPoint,
)
from shared.jobs_in_system import JobsInSystem, RunningJob

SNAPSHOT_SCHEMA = 6


class StageHandler:
    """One run in one stage; subclasses override what they answer to.

    Each `on_…` method gets the envelope and what is known about its job, and returns the envelope to forward. It runs
    after the event was checked and before the jobs in the system change.
    """

    silent = False
    """Whether, in this run, it forwards every envelope as it came."""

    def __init__(self, opened: ClusterOpened) -> None:
        self.opened = opened
        self.time = opened.time
        self.processors = opened.processors
        self.jobs = JobsInSystem()
        self.closed = False

    def handle(self, envelope: Envelope) -> Envelope:
        """Return what to forward for `envelope`.

        Raises
        ------
        RuleBroken
            If the event contradicts the log; nothing has changed then.
        """
        event = envelope.event
        if isinstance(event, Rejected):  # it changed nothing in the stage before, not even the time
            return self.on_rejected(envelope, event)
        time = event.time
        if time < self.time:
            raise RuleBroken(f"{event.kind} at {time} comes after {self.time}: time went back")
        if self.closed:
            raise RuleBroken(f"{event.kind} at {time}: run {envelope.run!r} was closed at {self.time}")
        answer = _ANSWERS[type(event)](self, envelope, event)
        self.time = time
        return answer

    def on_submitted(self, envelope: Envelope, job: JobSubmitted) -> Envelope:
        """Answer the submission of a job."""
        return envelope

    def on_started(self, envelope: Envelope, started: JobStarted, job: JobSubmitted) -> Envelope:
        """Answer the start of a waiting job."""
        return envelope

    def on_wait(self, envelope: Envelope, job: JobSubmitted, wait: int) -> Envelope:
        """Answer that a wait is known, in seconds: at the start, or once a trial has ended for good (spec G8)."""
        return envelope

    def on_ended(self, envelope: Envelope, ended: JobEnded, job: RunningJob) -> Envelope:
        """Answer the end of a running job."""
        return envelope

    def on_capacity(self, envelope: Envelope, changed: CapacityChanged) -> Envelope:
        """Answer a change of the machine's size."""
        return envelope

    def on_scheduling_point(self, envelope: Envelope, point: SchedulingPoint) -> Envelope:
        """Answer a scheduling point."""
        return envelope

    def on_decided(self, envelope: Envelope, decided: Decided) -> Envelope:
        """Answer a decision."""
        return envelope

    def on_rejected(self, envelope: Envelope, rejected: Rejected) -> Envelope:
        """Answer an event that an earlier stage rejected."""
        return envelope

    def on_closed(self, envelope: Envelope, closed: ClusterClosed) -> Envelope:
        """Answer the end of the run."""
        return envelope

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as plain values; a subclass adds its own under keys of its own."""
        return {"time": self.time, "closed": self.closed, "processors": self.processors, "jobs": self.jobs.snapshot()}

    def restore(self, state: dict[str, Any]) -> None:
        """Take on the state that `snapshot` returned."""
        self.time = state["time"]
        self.closed = state["closed"]
        self.processors = state["processors"]
        self.jobs.restore(state["jobs"])

    def _submitted(self, envelope: Envelope, event: JobSubmitted) -> Envelope:
        self.jobs.require_new(event)
        largest = max(self.processors, self.opened.processors)
        if event.requested_processors > largest:
            raise RuleBroken(
                f"job {event.job_number} requests {event.requested_processors} processors; the machine has {largest}"
            )
        answer = self.on_submitted(envelope, event)
        self.jobs.submit(event)
        return answer

    def _started(self, envelope: Envelope, event: JobStarted) -> Envelope:
        job = self.jobs.require_waiting(event)
        largest = max(self.processors, self.opened.processors)
        if event.processors > largest:
            raise RuleBroken(
                f"job {event.job_number} starts on {event.processors} processors; the machine has {largest}"
            )
        answer = self.on_started(envelope, event, job)
        if not event.trial:
            answer = self.on_wait(answer, job, event.time - job.time)
        self.jobs.start(event)
        return answer

    def _ended(self, envelope: Envelope, event: JobEnded) -> Envelope:
        job = self.jobs.require_running(event)
        held = event.time - job.started.time
        if event.run_time > held:
            raise RuleBroken(
                f"job {event.job_number} ran {event.run_time} s, but held its processors for {held} s only"
            )
        answer = self.on_ended(envelope, event, job)
        if job.started.trial and not event.requeued:
            answer = self.on_wait(answer, job.submitted, job.started.time - job.submitted.time)
        self.jobs.end(event)
        return answer

    def _capacity(self, envelope: Envelope, event: CapacityChanged) -> Envelope:
        answer = self.on_capacity(envelope, event)
        self.processors = event.processors
        return answer

    def _closed(self, envelope: Envelope, event: ClusterClosed) -> Envelope:
        answer = self.on_closed(envelope, event)
        self.closed = True
        return answer

    def _opened(self, envelope: Envelope, event: ClusterOpened) -> Envelope:
        raise RuleBroken(f"run {envelope.run!r} was opened already, at {self.opened.time}")


_ANSWERS: dict[type, Callable[[StageHandler, Envelope, Any], Envelope]] = {
    ClusterOpened: StageHandler._opened,
    JobSubmitted: StageHandler._submitted,
    JobStarted: StageHandler._started,
    JobEnded: StageHandler._ended,
    CapacityChanged: StageHandler._capacity,
    SchedulingPoint: lambda stage, envelope, event: stage.on_scheduling_point(envelope, event),
    Decided: lambda stage, envelope, event: stage.on_decided(envelope, event),
    ClusterClosed: StageHandler._closed,
}


@dataclass(frozen=True)
class Stage:
    """One line of the data flow: reads one topic, writes one topic, and opens a handler for each run."""

    name: str
    reads: str
    writes: str
    open: Callable[[ClusterOpened], StageHandler]


class StageRun:
    """One run in one stage: its handler and its position in the log."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.sequence = -1
        self.handler: StageHandler | None = None

    @property
    def silent(self) -> bool:
        """Whether it has been opened, and adds nothing to this run."""
        return self.handler is not None and self.handler.silent

    def push(self, envelope: Envelope) -> Envelope | None:
        """Handle the next envelope of the run and return what to forward; None for a duplicate.

        Raises
        ------
        SequenceGap
            If envelopes before this one are missing; nothing has changed then.
        """
        if envelope.sequence != self.sequence + 1:
            if envelope.sequence <= self.sequence:
                return None
            raise SequenceGap(
                f"{self.stage.name}: run {envelope.run!r} is at sequence {self.sequence}, "
                f"but {envelope.sequence} came: {envelope.sequence - self.sequence - 1} missing"
            )
        try:
            answer = self._open(envelope) if self.handler is None else self.handler.handle(envelope)
        except (RuleBroken, SettingsError) as broken:
            answer = envelope.model_copy(update={"event": Rejected(time=envelope.event.time, reason=str(broken))})
        self.sequence = envelope.sequence
        return answer

    def _open(self, envelope: Envelope) -> Envelope:
        if isinstance(envelope.event, Rejected):
            return envelope
        if not isinstance(envelope.event, ClusterOpened):
            raise RuleBroken(f"{envelope.event.kind} at {envelope.event.time}: run {envelope.run!r} is not open")
        self.handler = self.stage.open(envelope.event)
        return envelope

    def snapshot(self) -> bytes:
        """Return position and state as JSON; what a run has not opened yet cannot be saved."""
        if self.handler is None:
            raise SnapshotMismatch(f"{self.stage.name}: there is no run to take a snapshot of")
        opened = self.handler.opened
        return orjson.dumps(
            {
                "schema": SNAPSHOT_SCHEMA,
                "stage": self.stage.name,
                "settings": fingerprint(opened),
                "opened": opened.model_dump(),
                "sequence": self.sequence,
                "state": self.handler.snapshot(),
            },
            option=orjson.OPT_SERIALIZE_NUMPY,
        )

    def restore(self, snapshot: bytes, settings: str | None = None) -> None:
        """Take on what `snapshot` returned.

        Parameters
        ----------
        settings
            The fingerprint of the settings that the run is known to have, if it is known.

        Raises
        ------
        SnapshotMismatch
            If the snapshot is of another stage, of another schema, or of other settings.
        """
        saved = read_snapshot(snapshot, self.stage.name)
        for what, found, expected in (
            ("schema", saved.get("schema"), SNAPSHOT_SCHEMA),
            ("stage", saved.get("stage"), self.stage.name),
            ("settings", saved.get("settings"), settings or saved.get("settings")),
        ):
            if found != expected:
                raise SnapshotMismatch(
                    f"{self.stage.name}: the snapshot has {what} {found!r}, expected {expected!r}; "
                    "rebuild the stage from the beginning of its topic"
                )
        try:
            handler = self.stage.open(ClusterOpened.model_validate(saved["opened"]))
            handler.restore(saved["state"])
            self.handler, self.sequence = handler, saved["sequence"]
        except (KeyError, TypeError, ValueError) as error:
            raise SnapshotMismatch(f"{self.stage.name}: the snapshot is damaged: {error!r}") from error


def fingerprint(opened: ClusterOpened) -> str:
    """Return a digest of all settings of a run."""
    return sha256(opened.model_dump_json().encode()).hexdigest()[:16]


def read_snapshot(snapshot: bytes, of: str) -> dict[str, Any]:
    """Return what a snapshot holds; raises `SnapshotMismatch` if it is none."""
    try:
        saved = orjson.loads(snapshot)
    except orjson.JSONDecodeError as error:
        raise SnapshotMismatch(f"{of}: the snapshot is damaged: {error}") from error
    if not isinstance(saved, dict):
        raise SnapshotMismatch(f"{of}: the snapshot is damaged: it holds no fields")
    return saved
