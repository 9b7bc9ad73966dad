"""What a replay costs, by clocks that stand still while kernels are loaded: the first run of a process does that."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from shadowtime.shared.kernel import Kernel


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
