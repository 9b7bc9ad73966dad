"""Timing of a replay. Its clocks stand still while kernels load, which the first run of a process does."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter  # far cheaper than `process_time`, and it is read twice per event
from typing import Any

from shadowtime.shared.errors import SettingsError
from shadowtime.shared.kernels import Kernel
from shadowtime.shared.messages import ClusterOpened, Envelope
from shadowtime.shared.stages import RunLog, Stage, StageHandler


class Clocks:
    """One of time and one of cpu, in seconds."""

    def __init__(self) -> None:
        self._stood = 0.0, 0.0
        Kernel.first_call_within = self._stopped

    def now(self) -> tuple[float, float]:
        """Return the seconds on both."""
        wall, cpu = self._stood
        return time.perf_counter() - wall, time.process_time() - cpu

    def since(self, began: tuple[float, float]) -> tuple[float, float]:
        """Return the seconds on both since then."""
        wall, cpu = self.now()
        return wall - began[0], cpu - began[1]

    @contextmanager
    def _stopped(self) -> Iterator[None]:
        began = self.now()
        try:
            yield
        finally:
            wall, cpu = self.since(began)
            self._stood = self._stood[0] + wall, self._stood[1] + cpu


CLOCKS = Clocks()


# What a stage of an embedded replay takes of the time that passes.


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

    def share(self, log: RunLog) -> None:
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


# Real time: hold a replay back so that its clock runs a factor faster than the wall's.

MIN_FACTOR = 1e-3


class Pace:
    """Wait until an instant of the trace is due.

    Parameters
    ----------
    factor
        Seconds of trace time per second of real time.
    clock, sleep
        Where real time comes from; tests pass their own.

    Examples
    --------
    >>> slept = []
    >>> pace = Pace(10.0, clock=lambda: 100.0, sleep=slept.append)
    >>> pace.wait_for(0); pace.wait_for(30)
    >>> slept
    [3.0]
    """

    def __init__(
        self,
        factor: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if not MIN_FACTOR <= factor < float("inf"):
            raise SettingsError(f"speed {factor}: expected `max` or a factor above 0 (at least {MIN_FACTOR})")
        self._factor = factor
        self._clock = clock
        self._sleep = sleep
        self._began: float | None = None

    def wait_for(self, elapsed: float) -> None:
        """Return when `elapsed` seconds of trace time are due, counted from the first call."""
        ahead = self.ahead(elapsed)
        if ahead > 0:
            self._sleep(ahead)

    def ahead(self, elapsed: float) -> float:
        """Return the real seconds until `elapsed` seconds of trace time are due; below zero when late."""
        now = self._clock()
        if self._began is None:
            self._began = now - elapsed / self._factor
        return self._began + elapsed / self._factor - now
