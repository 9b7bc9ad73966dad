"""The whole pipeline in one process: no broker, no server."""

from collections.abc import Callable, Sequence
from typing import Any

import orjson

from replayer.source import Source
from services.pipeline import STAGES
from shared.errors import ReplayError
from shared.events import ClusterClosed, ClusterOpened, Decided, Envelope, Event, Rejected
from shared.stage import Stage, StageRun

Observer = Callable[[Envelope], None]


class EmbeddedReplay:
    """One run: a source, and a chain of stages through which each of its events passes.

    Parameters
    ----------
    opened
        The settings of the run.
    source
        Where its events come from.
    observers
        Called with every envelope that leaves the last stage.
    run
        Name of the run.
    stages
        The data flow.
    """

    def __init__(
        self,
        opened: ClusterOpened,
        source: Source,
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
        self._stages = [StageRun(stage) for stage in stages]
        self._sequence = 0

    def step(self) -> bool:
        """Tell the next instant and carry out what is decided at it; return False once the run is closed.

        Raises
        ------
        ReplayError
            If a stage rejected an event, or a decision cannot be carried out.
        """
        if self.closed:
            return False
        if self._sequence == 0:
            self._push(self._opened)
        events = self.source.next_instant()
        for event in events:
            answer = self._push(event)
            if isinstance(answer, Decided):
                for caused in self.source.apply(answer):
                    self._push(caused)
        if not events:
            self._push(ClusterClosed(time=self.last.event.time if self.last else self._opened.time))
            self.closed = True
        return not self.closed

    def run_to_end(self) -> Envelope:
        """Tell everything that is left and return the last envelope, which bears the scores."""
        while self.step():
            pass
        if self.last is None:
            raise ReplayError(f"run {self.run!r} was closed before it was opened")
        return self.last

    def _push(self, event: Event) -> Event:
        envelope: Envelope | None = Envelope(run=self.run, sequence=self._sequence, event=event)
        for stage in self._stages:
            if envelope is None:
                raise ReplayError(f"sequence {self._sequence} of run {self.run!r} was told twice")
            envelope = stage.push(envelope)
        if envelope is None or isinstance(envelope.event, Rejected):
            reason = envelope.event.reason if envelope and isinstance(envelope.event, Rejected) else "told twice"
            raise ReplayError(f"event {self._sequence} of run {self.run!r} was rejected: {reason}")
        self._sequence += 1
        self.last = envelope
        for observer in self._observers:
            observer(envelope)
        return envelope.event

    def snapshot(self) -> bytes:
        """Return the whole state, stages and source, as JSON."""
        state: dict[str, Any] = {
            "sequence": self._sequence,
            "closed": self.closed,
            "source": self.source.snapshot(),
            "stages": [stage.snapshot().decode() for stage in self._stages] if self._sequence else [],
        }
        return orjson.dumps(state)

    def restore(self, snapshot: bytes) -> None:
        """Take on what `snapshot` returned; the source must be over the same trace."""
        state = orjson.loads(snapshot)
        self._sequence, self.closed = state["sequence"], state["closed"]
        self.source.restore(state["source"])
        for stage, saved in zip(self._stages, state["stages"], strict=False):
            stage.restore(saved.encode())
