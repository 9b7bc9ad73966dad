"""Timing of a replay. The clocks stop while compiled kernels load, as in the first run of a process."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter  # far cheaper than `process_time`; read twice per event
from typing import Any

from shadowtime.shared.errors import SettingsError
from shadowtime.shared.kernels import Kernel
from shadowtime.shared.messages import ClusterOpened, Envelope
from shadowtime.shared.stages import RunLog, Stage, StageHandler


class Clocks:
    """A pair of clocks in seconds: wall time and CPU time."""

    def __init__(self) -> None:
        self._stood = 0.0, 0.0
        Kernel.first_call_within = self._stopped

    def now(self) -> tuple[float, float]:
        """Return wall time and CPU time in seconds, without the times in which kernels were loaded."""
        wall, cpu = self._stood
        return time.perf_counter() - wall, time.process_time() - cpu

    def since(self, began: tuple[float, float]) -> tuple[float, float]:
        """Return the seconds passed on both clocks since `began`, a result of `now`."""
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


# Time taken by one stage of an embedded replay.


class Stopwatch:
    """The total wall time of one stage, in seconds. The replay itself is not affected."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def around(self, stage: Stage) -> Stage:
        """Return the same stage with time measurement."""
        return Stage(stage.name, stage.reads, stage.writes, lambda opened: _Measured(stage, opened, self))


class _Measured(StageHandler):
    """A stage handler that measures another handler. It has no state but the state of this inner handler."""

    def __init__(self, stage: Stage, opened: ClusterOpened, stopwatch: Stopwatch) -> None:
        began = perf_counter()
        self._within = stage.open(opened)
        self._stopwatch = stopwatch
        stopwatch.seconds += perf_counter() - began
        super().__init__(opened)

    def share(self, log: RunLog) -> None:
        """Share `log` with the inner handler, too."""
        super().share(log)
        self._within.share(log)

    def handle(self, envelope: Envelope) -> Envelope:
        """Return the answer of the inner handler, and measure the time."""
        began = perf_counter()
        try:
            return self._within.handle(envelope)
        finally:
            self._stopwatch.seconds += perf_counter() - began

    def snapshot(self) -> dict[str, Any]:
        """Return the state of the inner handler. Measured seconds are not part of a run's state."""
        return self._within.snapshot()

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        self._within.restore(state)


# Real time: slow a replay down so that trace time passes `factor` times as fast as wall time.

MIN_FACTOR = 1e-3


class Pace:
    """The pace of a replay in real time: it waits until an instant of the trace is due.

    Parameters
    ----------
    factor
        Seconds of trace time per second of real time.
    clock, sleep
        Source of real time. Tests pass their own.

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
            raise SettingsError(f"speed {factor}: expected `max` or a finite factor of at least {MIN_FACTOR}")
        self._factor = factor
        self._clock = clock
        self._sleep = sleep
        self._began: float | None = None

    def wait_for(self, elapsed: float) -> None:
        """Sleep until `elapsed`, an instant in seconds of trace time, is due. The first call returns at once."""
        ahead = self.ahead(elapsed)
        if ahead > 0:
            self._sleep(ahead)

    def ahead(self, elapsed: float) -> float:
        """Return the real seconds until `elapsed`, an instant of trace time, is due; negative if it is late."""
        now = self._clock()
        if self._began is None:
            self._began = now - elapsed / self._factor
        return self._began + elapsed / self._factor - now
