"""Real time: hold a replay back so that its clock runs a factor faster than the wall's."""

import time
from collections.abc import Callable

from shadowtime.shared.errors import SettingsError

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
