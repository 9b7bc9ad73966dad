"""The grouping that has over-predicted least among those that hold their coverage."""

import math
from collections.abc import Sequence
from typing import Any

ROUNDING = 0.005
"""A grouping holds its coverage if that rounds up to the quantile in per cent: so Brevik 2006 counts."""


class Ensemble:
    """Scores of several groupings over the same jobs, and the one to follow.

    Jobs for which any grouping had no bound are not scored. O(groupings) for each wait.

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
    docs/algorithms.md#ensemble (Brevik 2006, section 4.6, which proposes it).
    """

    def __init__(self, groupings: int, quantile: float) -> None:
        self._quantile = quantile
        self._scored = 0
        self._covered = [0] * groupings
        self._squares = [0.0] * groupings

    def add(self, bounds: Sequence[int | None], wait: int) -> None:
        """Score the bounds of a job whose wait is known, all in seconds."""
        if None in bounds:
            return
        self._scored += 1
        for each, bound in enumerate(bounds):
            if bound is not None and bound >= wait:
                self._covered[each] += 1
                self._squares[each] += float(bound - wait) ** 2

    def chosen(self) -> int:
        """Return the grouping to follow; if none holds its coverage, the one that comes nearest."""
        least = (self._quantile - ROUNDING) * self._scored
        holding = [each for each, covered in enumerate(self._covered) if covered >= least]
        if not holding:
            return max(range(len(self._covered)), key=self._covered.__getitem__)
        return min(holding, key=self._over_rms)

    def _over_rms(self, grouping: int) -> float:
        covered = self._covered[grouping]
        return math.sqrt(self._squares[grouping] / covered) if covered else 0.0

    def snapshot(self) -> Any:
        """Return the sums."""
        return [self._scored, list(self._covered), list(self._squares)]

    def restore(self, state: Any) -> None:
        """Take on what `snapshot` returned."""
        self._scored, self._covered, self._squares = state[0], list(state[1]), list(state[2])
