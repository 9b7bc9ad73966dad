"""What a stage of an embedded replay takes of the time that passes."""

from time import perf_counter  # far cheaper than `process_time`, and it is read twice per event
from typing import Any

from shadowtime.shared.checked_log import CheckedLog
from shadowtime.shared.events import ClusterOpened, Envelope
from shadowtime.shared.stage import Stage
from shadowtime.shared.stage_handler import StageHandler


class Stopwatch:
    """Adds up the seconds of real time that one stage took; the replay knows nothing of it."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def around(self, stage: Stage) -> Stage:
        """Return the same stage, measured."""
        return Stage(stage.name, stage.reads, stage.writes, lambda opened: _Measured(stage, opened, self))


class _Measured(StageHandler):
    """A run in a stage, all of whose state is that of the handler within."""

    def __init__(self, stage: Stage, opened: ClusterOpened, stopwatch: Stopwatch) -> None:
        began = perf_counter()
        self._within = stage.open(opened)
        self._stopwatch = stopwatch
        stopwatch.seconds += perf_counter() - began
        super().__init__(opened)

    def share(self, log: CheckedLog) -> None:
        """Have the handler within read `log`."""
        super().share(log)
        self._within.share(log)

    def handle(self, envelope: Envelope) -> Envelope:
        """Return the answer of the handler within."""
        began = perf_counter()
        try:
            return self._within.handle(envelope)
        finally:
            self._stopwatch.seconds += perf_counter() - began

    def snapshot(self) -> dict[str, Any]:
        """Return the state of the handler within; seconds are no part of a run."""
        return self._within.snapshot()

    def restore(self, state: dict[str, Any]) -> None:
        """Take on what `snapshot` returned."""
        self._within.restore(state)
