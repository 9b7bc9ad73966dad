"""The grouping that has over-predicted least of late among those that hold their coverage."""

import math
from collections.abc import Sequence
from typing import Any

ROUNDING = 0.005
"""A grouping holds its coverage if that rounds up to the quantile in per cent: so Brevik 2006 counts."""

LAST = 1_000
"""Waits after which an over-prediction counts for little: each wait counts 1 - 1/1,000 of the next."""


class Ensemble:
    """Scores of several groupings over the same jobs, and the one to follow.

    Coverage is over all waits; over-predictions are forgotten, or one standstill would decide for good. Jobs for which
    any grouping had no bound are not scored. O(groupings) for each wait.

    >>> ensemble = Ensemble(groupings=2, quantile=0.5)
    >>> ensemble.add([100, 50], wait=10)
    >>> ensemble.chosen()
    1
    >>> ensemble.add([100, 50], wait=60)
    >>> ensemble.add([100, 50], wait=70)
    >>> ensemble.chosen()
    0

    References
    ----------
    docs/algorithms.md#ensemble (Brevik 2006, section 4.6, which proposes it; the forgetting is ours).
    """

    def __init__(self, groupings: int, quantile: float) -> None:
        self._quantile = quantile
        self._scored = 0
        self._covered = [0] * groupings
        self._counts = [0.0] * groupings
        """Covered waits of each grouping; those of long ago count for little."""
        self._squares = [0.0] * groupings
        """Sums of the squares of bound less wait, of the same waits."""

    def add(self, bounds: Sequence[int | None], wait: int) -> None:
        """Score the bounds of a job whose wait is known, all in seconds."""
        if None in bounds:
            return
        self._scored += 1
        for each, bound in enumerate(bounds):
            self._counts[each] *= 1 - 1 / LAST
            self._squares[each] *= 1 - 1 / LAST
            if bound is not None and bound >= wait:
                self._covered[each] += 1
                self._counts[each] += 1.0
                self._squares[each] += float(bound - wait) ** 2

    def chosen(self) -> int:
        """Return the grouping to follow; if none holds its coverage, the one that comes nearest."""
        least = (self._quantile - ROUNDING) * self._scored
        holding = [each for each, covered in enumerate(self._covered) if covered >= least]
        if not holding:
            return max(range(len(self._covered)), key=self._covered.__getitem__)
        return min(holding, key=self._over_rms)

    def _over_rms(self, grouping: int) -> float:
        count = self._counts[grouping]
        return math.sqrt(self._squares[grouping] / count) if count else 0.0

    def snapshot(self) -> Any:
        """Return the sums."""
        return [self._scored, list(self._covered), list(self._counts), list(self._squares)]

    def restore(self, state: Any) -> None:
        """Take on what `snapshot` returned."""
        self._scored = state[0]
        self._covered, self._counts, self._squares = (list(each) for each in state[1:])
