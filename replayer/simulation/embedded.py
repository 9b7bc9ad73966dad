"""The whole pipeline in one process, without broker or server."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, get_args

import orjson
from pydantic import ValidationError

from shadowtime.replayer.simulation.source import ReplaySource, named_errors
from shadowtime.services.pipeline import STAGES
from shadowtime.shared.errors import ReplayError, SnapshotMismatch, first_of
from shadowtime.shared.messages import EVENTS, ClusterClosed, ClusterOpened, Decided, Envelope, Event, Rejected
from shadowtime.shared.stages import Stage, StageRun, fingerprint, read_snapshot, read_together

Observer = Callable[[Envelope], None]

KINDS = frozenset(get_args(Event))


class EmbeddedReplay:
    """One run: a source, and a chain of stages that process each of its events.

    Parameters
    ----------
    opened
        The settings of the run.
    source
        Source of its events.
    observers
        Called with every envelope that leaves the last stage.
    run
        Name of the run.
    stages
        Stages in order. A stage without a task in this run is skipped.
    """

    def __init__(
        self,
        opened: ClusterOpened,
        source: ReplaySource,
        observers: Sequence[Observer] = (),
        run: str = "embedded",
        stages: Sequence[Stage] = STAGES,
    ) -> None:
        self.run = run
        self.source = source
        self.last: Envelope | None = None
        self.closed = False
        self._opened = opened
        self._observers = observers
        self.stages = [StageRun(stage) for stage in stages]
        """Stages of this run. After the first event, stages without a task are removed."""
        self.sequence = 0
        """Sequence number of the next event."""
        self._pending: deque[Event] = deque()
        self._faults_named = named_errors(source)
        self._checked: Envelope | None = None
        """A validated envelope. Later envelopes are copies of it, so that their run and cluster need no check."""

    def step(self) -> bool:
        """Process the next event, and apply the decision on it. Return False once the run is closed.

        Raise `ReplayError` if a stage rejected the event, a decision cannot be applied, or an event is out of bounds.
        """
        if self.closed:
            return False
        try:
            event = self._next()
            answer = self._push(event)
            if type(answer) is Decided:
                with self._faults_named:
                    self._pending.extendleft(reversed(self.source.apply(answer)))
        except ValidationError as error:
            raise ReplayError(
                f"event {self.sequence} of run {self.run!r} is out of bounds: {first_of(error)}"
            ) from error

        self.closed = type(event) is ClusterClosed
        return not self.closed

    def _next(self) -> Event:
        if self.sequence == 0:
            return self._opened
        if not self._pending:
            with self._faults_named:
                self._pending.extend(self.source.next_instant())
                if not self._pending and (time := self.source.next_time()) is not None:
                    raise ReplayError(f"source {self.source.name!r} has no event at its next instant, {time}")

        if self._pending:
            return self._pending.popleft()
        return ClusterClosed(time=self.last.event.time if self.last else self._opened.time)

    def next_time(self) -> int | None:
        """Return the time of the next event in seconds; None if only the closing event is left."""
        return self._pending[0].time if self._pending else self.source.next_time()

    def run_to_end(self) -> Envelope:
        """Process all remaining events, and return the last envelope, which has the scores.

        Raise `ReplayError` if there is no event, or a stage rejects one.
        """
        while self.step():
            pass
        if self.last is None:
            raise ReplayError(f"run {self.run!r} was closed before it was opened")
        return self.last

    def _push(self, event: Event) -> Event:
        if self._checked is not None and type(event) in KINDS:  # validated when it was created
            envelope = self._checked.replaced(sequence=self.sequence, event=event)
        else:
            envelope = Envelope(run=self.run, cluster=self._opened.cluster, sequence=self.sequence, event=event)
            self._checked = envelope

        answer: Envelope | None = envelope
        for stage in self.stages:
            answer = stage.push(answer or envelope)
        if answer is None:
            raise ReplayError(f"event {self.sequence} of run {self.run!r} was already handled")
        again = answer.event
        if type(again) is Rejected:
            raised = next((stage.failure for stage in self.stages if stage.spoiled), None)
            raise ReplayError(f"event {self.sequence} of run {self.run!r} was rejected: {again.reason}") from raised
        if self.sequence == 0:
            self.stages = [stage for stage in self.stages if not stage.passthrough]
            read_together([stage.handler for stage in self.stages if stage.handler is not None])
        self.sequence += 1
        self.last = answer
        for observer in self._observers:
            observer(answer)
        return again

    def snapshot(self) -> bytes:
        """Return the whole state between two events, stages and source, as JSON."""
        state: dict[str, Any] = {
            "settings": fingerprint(self._opened),
            "sequence": self.sequence,
            "closed": self.closed,
            "last": None if self.last is None else self.last.model_dump(mode="json"),
            "pending": [event.model_dump() for event in self._pending],
            "source": self.source.snapshot(),
            "stages": {stage_run.stage.name: stage_run.snapshot().decode() for stage_run in self.stages}
            if self.sequence
            else {},
        }
        return orjson.dumps(state)

    def restore(self, snapshot: bytes) -> None:
        """Restore the state that `snapshot` returned. The source must be over the same trace.

        Raise `SnapshotMismatch` if the snapshot is damaged, or belongs to a run with other settings.
        """
        state = read_snapshot(snapshot, self.run)
        settings = fingerprint(self._opened)
        if state.get("settings") != settings:
            raise SnapshotMismatch(f"{self.run}: the snapshot has settings {state.get('settings')!r}, not {settings!r}")
        try:
            began = state["sequence"] > 0
            stages = [
                StageRun(stage_run.stage)
                for stage_run in self.stages
                if not began or stage_run.stage.name in state["stages"]
            ]
            for stage in stages if began else []:
                stage.restore(state["stages"][stage.stage.name].encode(), settings)
            read_together([stage.handler for stage in stages if stage.handler is not None])
            self.source.restore(state["source"])
            self._pending = deque(EVENTS.validate_python(state["pending"]))
            self.sequence, self.closed, self.stages = state["sequence"], state["closed"], stages
            self.last = None if state["last"] is None else Envelope.model_validate(state["last"])
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise SnapshotMismatch(f"{self.run}: the snapshot is damaged: {error!r}") from error
