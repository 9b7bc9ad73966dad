"""The run-time distributions of the jobs in the system, as rows of one table."""

import heapq
from typing import Any

import numpy as np

from shadowtime.shared.distributions import BINS

UNKNOWN = -1
"""Slot of a job without a run-time distribution."""


class Histograms:
    """Run-time distributions of the jobs in the system. O(log jobs) for each change.

    A slot is a row of `masses`. A job keeps its slot from submission to end.

    >>> histograms = Histograms()
    >>> slot = histograms.add((0.25, 0.75))
    >>> histograms.masses[slot, :3].tolist()
    [0.25, 0.75, 0.0]
    """

    def __init__(self) -> None:
        self.masses = np.zeros((64, BINS))
        """Probability of each bin, shape (slots, BINS)."""
        self.changes = np.zeros(64, dtype=np.int64)
        """Version of each slot, raised for each new histogram. Values derived from a histogram hold for one version."""
        self._free = list(range(64))  # a heap: the lowest slot is taken first, also after a restart
        self._used: dict[int, tuple[float, ...]] = {}

    def add(self, histogram: tuple[float, ...]) -> int:
        """Return the slot of a new histogram, given from bin 0 on; `UNKNOWN` for an empty one."""
        if not histogram:
            return UNKNOWN
        if not self._free:
            self._grow()
        return self._fill(heapq.heappop(self._free), histogram)

    def replace(self, slot: int, histogram: tuple[float, ...]) -> int:
        """Replace a job's histogram, unless the new one is empty. Return its slot, a new one if it was `UNKNOWN`."""
        if slot == UNKNOWN or not histogram:
            return self.add(histogram) if slot == UNKNOWN else slot
        return self._fill(slot, histogram)

    def _fill(self, slot: int, histogram: tuple[float, ...]) -> int:
        self._used[slot] = histogram
        self.changes[slot] += 1
        self.masses[slot] = 0.0
        self.masses[slot, : len(histogram)] = histogram
        return slot

    def remove(self, slot: int) -> None:
        """Free a slot."""
        if slot != UNKNOWN:
            del self._used[slot]
            heapq.heappush(self._free, slot)

    def snapshot(self) -> Any:
        """Return the histograms by slot."""
        return [[slot, list(histogram)] for slot, histogram in self._used.items()]

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self._used = {slot: tuple(histogram) for slot, histogram in state}
        while len(self.masses) <= max(self._used, default=0):
            self._grow()
        self.changes += 1
        for slot, histogram in self._used.items():
            self.masses[slot] = 0.0
            self.masses[slot, : len(histogram)] = histogram
        self._free = [slot for slot in range(len(self.masses)) if slot not in self._used]

    def _grow(self) -> None:
        size = len(self.masses)
        self.masses = np.concatenate([self.masses, np.zeros_like(self.masses)])
        self.changes = np.concatenate([self.changes, np.zeros_like(self.changes)])
        self._free.extend(range(size, 2 * size))
