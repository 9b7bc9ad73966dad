"""A stage of the pipeline: sans-I/O, one envelope in, one envelope out.

The rules that every stage keeps:

1. In each run, envelope `last + 1` is handled. An envelope up to `last` is a duplicate and dropped. An envelope beyond
   `last + 1` is a gap and never applied.
2. An event that contradicts the log changes nothing and is forwarded as `Rejected`.
3. Any other exception of a handler also gives a `Rejected`, and the run is spoiled: it accepts no envelope until `undo`
   has restored the state before that event.
4. Everything a stage knows about a run is in its snapshot; after `restore` it answers as if never interrupted.
"""

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import PurePath
from traceback import walk_tb

import orjson
from pydantic import ValidationError

from shadowtime.shared.errors import LogViolation, SequenceGap, SettingsError, SnapshotMismatch, WorkCancelled, first_of
from shadowtime.shared.messages import ClusterOpened, Envelope, Refusal, Rejected
from shadowtime.shared.quoting import truncate
from shadowtime.shared.spec import Price
from shadowtime.shared.stages.handler import StageHandler
from shadowtime.shared.stages.snapshot_head import SNAPSHOT_SCHEMA, fingerprint, read_snapshot


@dataclass(frozen=True)
class Stage:
    """One stage of the data flow: it reads one topic, writes one topic, and opens a handler for each run.

    `adds` names the envelope fields that the stage fills, and the kinds of events with which it replaces others.
    `later_fields` names the fields and kinds that no input may have, since only this stage or a later one adds them.
    `price` returns the maximum `Price` of a run in this stage, by its SPECs. It raises `SettingsError` as `open` does.
    """

    name: str
    reads: str
    writes: str
    open: Callable[[ClusterOpened], StageHandler]
    adds: tuple[str, ...] = ()
    later_fields: tuple[str, ...] = ()
    price: Callable[[ClusterOpened], Price] = lambda opened: Price()

    def forged_field(self, envelope: Envelope) -> str | None:
        """Return the event kind or the field of an envelope that is one of `later_fields`; None if there is none."""
        if (kind := envelope.event.kind) in self.later_fields:
            return kind
        fields = envelope.__dict__
        for name in self.later_fields:
            if fields.get(name):
                return name
        return None


def chained(*stages: Stage) -> tuple[Stage, ...]:
    """Return the stages with `later_fields`: what each stage and those behind it add.

    The first stage also accepts no `Rejected`: no stage before it could have rejected an event.
    """
    foreign = [tuple(name for later in stages[at:] for name in later.adds) for at in range(len(stages))]
    foreign[0] += ("Rejected",)
    return tuple(replace(stage, later_fields=names) for stage, names in zip(stages, foreign, strict=True))


class StageRun:
    """One run in one stage: its handler and its position in the log.

    `failures` counts the events that the stage failed to handle and has undone. `spoiled` means that the last event
    failed and is not undone yet.
    """

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.sequence = -1
        self.handler: StageHandler | None = None
        self.failures = 0
        self.spoiled = False
        self.failure: BaseException | None = None
        """The error that spoiled the run last."""

    @property
    def passthrough(self) -> bool:
        """Whether the run has been opened, and the stage adds nothing to it."""
        return self.handler is not None and self.handler.passthrough

    def push(self, envelope: Envelope) -> Envelope | None:
        """Handle the next envelope of the run, and return the envelope to forward; None for a duplicate.

        Raises
        ------
        SequenceGap
            If envelopes before this one are missing; nothing has changed then.
        SnapshotMismatch
            If the run is spoiled.
        """
        if envelope.sequence != self.sequence + 1:
            if envelope.sequence <= self.sequence:
                return None
            raise SequenceGap(
                f"{self.stage.name}: run {envelope.run!r} is at sequence {self.sequence}, "
                f"but {envelope.sequence} arrived: {envelope.sequence - self.sequence - 1} missing"
            )

        if self.spoiled:
            raise SnapshotMismatch(
                f"{self.stage.name}: run {envelope.run!r} failed at sequence {self.sequence}; undo that event first"
            )

        try:
            output = self._open(envelope) if self.handler is None else self.handler.handle(envelope)
        except (LogViolation, SettingsError) as broken:
            output = rejected(envelope, str(broken))
        except BaseException as failure:  # a plug-in may call exit, and its library panic
            if isinstance(failure, KeyboardInterrupt | WorkCancelled):
                raise
            self.spoiled, self.failure = True, failure
            output = rejected(envelope, f"{self.stage.name} failed: {described(failure)}", "failed")

        self.sequence = envelope.sequence
        return output

    def undo(self, snapshot: bytes | None, journal: Iterable[bytes]) -> None:
        """Restore the state before the event that spoiled the run. That event then counts as handled.

        Parameters
        ----------
        snapshot, journal
            A state from before that event, and the inputs between.

        Raise `SnapshotMismatch` if these do not lead to the event.
        """
        failed, failures = self.sequence, self.failures
        self.replay(snapshot, journal)
        if self.sequence != failed - 1:
            raise SnapshotMismatch(
                f"{self.stage.name}: the journal ends at sequence {self.sequence}; "
                f"expected {failed - 1}, the last event before the failed one"
            )
        self.sequence, self.failures = failed, failures + 1

    def replay(self, snapshot: bytes | None, journal: Iterable[bytes]) -> None:
        """Rebuild the state from `snapshot` and the inputs of `journal`; without a snapshot, from an empty state.

        Raise `SnapshotMismatch` if the snapshot cannot be restored, the journal does not follow it, or an input fails.
        """
        self.sequence, self.handler, self.failures, self.spoiled = -1, None, 0, False
        if snapshot is not None:
            self.restore(snapshot)
        for value in journal:
            envelope = Envelope.read(value)
            if envelope is None or envelope.sequence != self.sequence + 1:
                after = f"after sequence {self.sequence}"
                raise SnapshotMismatch(f"{self.stage.name}: the journal is of another schema, or has a gap, {after}")
            self.push(envelope)
            if self.spoiled:
                cause = "" if self.failure is None else f": {described(self.failure)}"
                raise SnapshotMismatch(
                    f"{self.stage.name}: the journal cannot be replayed beyond sequence {self.sequence - 1}{cause}"
                )

    def _open(self, envelope: Envelope) -> Envelope:
        if isinstance(envelope.event, Rejected):
            return envelope
        if not isinstance(envelope.event, ClusterOpened):
            raise LogViolation(f"{envelope.event.kind} at {envelope.event.time}: run {envelope.run!r} is not open")
        self.handler = self.stage.open(envelope.event)
        return envelope

    def snapshot(self) -> bytes:
        """Return position and state as JSON."""
        handler = self.handler
        return orjson.dumps(
            {
                "schema": SNAPSHOT_SCHEMA,
                "stage": self.stage.name,
                "settings": None if handler is None else fingerprint(handler.opened),
                "opened": None if handler is None else handler.opened.model_dump(),
                "sequence": self.sequence,
                "failures": self.failures,
                "state": None if handler is None else handler.snapshot(),
            },
            option=orjson.OPT_SERIALIZE_NUMPY,
        )

    def restore(self, snapshot: bytes, settings: str | None = None) -> None:
        """Restore the state that `snapshot` returned.

        Parameters
        ----------
        settings
            The expected fingerprint of the run's settings; None if it is not known.

        Raise `SnapshotMismatch` if the snapshot is damaged, is of another stage, schema or settings, or needs a plug-in
        that is not installed.
        """
        saved = read_snapshot(snapshot, self.stage.name)
        for what, actual, expected in (
            ("schema", saved.get("schema"), SNAPSHOT_SCHEMA),
            ("stage", saved.get("stage"), self.stage.name),
            ("settings", saved.get("settings"), settings or saved.get("settings")),
        ):
            if actual != expected:
                raise SnapshotMismatch(
                    f"{self.stage.name}: the snapshot has {what} {actual!r}, expected {expected!r}; "
                    "rebuild the stage from the beginning of its topic"
                )

        try:
            handler = None
            if saved["opened"] is not None:
                handler = self.stage.open(ClusterOpened.model_validate(saved["opened"]))
                handler.restore(saved["state"])
            self.handler, self.sequence, self.failures = handler, saved["sequence"], saved["failures"]
        except SettingsError as error:  # such as a plug-in that is not installed any more
            raise SnapshotMismatch(f"{self.stage.name}: the run cannot be opened here: {error}") from error
        except Exception as error:
            raise SnapshotMismatch(f"{self.stage.name}: the snapshot is damaged: {described(error)}") from error


NOT_PLUG_INS = {"shadowtime", "numpy", "scipy", "numba", "pydantic", "orjson"} | sys.stdlib_module_names - {"__main__"}
"""Packages in which an error of a plug-in may be raised, but not caused."""


def rejected(envelope: Envelope, reason: str, code: Refusal | None = None) -> Envelope:
    """Return the envelope with a `Rejected` in place of its event, without the fields that stages have added."""
    event = Rejected(time=envelope.event.time, reason=truncate(reason), code=code)
    return Envelope(run=envelope.run, cluster=envelope.cluster, sequence=envelope.sequence, event=event)


def described(error: BaseException) -> str:
    """Return the type and the message of an error, on one short line, and the line of a plug-in where it was raised.

    >>> described(KeyError("time"))
    "KeyError: 'time'"
    """
    message = first_of(error) if isinstance(error, ValidationError) else " ".join(str(error).split())
    text = truncate(f"{type(error).__name__}: {message}".removesuffix(": "), 300)
    places = [
        f"{PurePath(frame.f_code.co_filename).name}:{line}"
        for frame, line in walk_tb(error.__traceback__)
        if frame.f_globals.get("__name__", "").partition(".")[0] not in NOT_PLUG_INS
    ]
    return f"{text} ({places[-1]})" if places else text
