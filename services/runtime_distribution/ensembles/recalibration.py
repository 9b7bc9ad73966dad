"""Recalibration of probabilities by the probability integral transform (PIT) of ended jobs."""

from typing import Any, Final

import numpy as np

from shadowtime.shared.distributions import count_transform
from shadowtime.shared.kernels import Floats, kernel

PARTS: Final = 20
"""Number of equal parts of the range of the PIT in which jobs are counted."""

PRIOR: Final = 10.0
"""Pseudo-counts in each part, so that a few jobs change little."""

KEPT: Final = 0.9998
"""Factor on the excess of the counts over `PRIOR` with each ended job, so that about the last 5,000 jobs count."""


@kernel
def moved(outcomes: Floats, counts: Floats) -> Floats:
    """Return the probabilities `outcomes` with their cumulative sums mapped by the distribution function of `counts`.

    Both arguments add up to 1, and so does the result. O(outcomes + parts).

    >>> moved(np.array([0.5, 0.25, 0.25]), np.array([0.2, 0.8])).round(3).tolist()
    [0.2, 0.4, 0.4]
    """
    result = np.empty_like(outcomes)
    reached, before, part, below = 0.0, 0.0, 0, 0.0
    for j in range(len(outcomes)):
        reached += outcomes[j]
        at = min(reached, 1.0) * len(counts)
        while part + 1 <= at and part + 1 < len(counts):
            below += counts[part]
            part += 1
        now = below + (at - part) * counts[part]
        result[j] = now - before
        before = now

    return result


class PitRecalibration:
    """A histogram of the probability integral transform of ended jobs, with forgetting.

    >>> recalibration = PitRecalibration()
    >>> for _ in range(10_000):
    ...     recalibration.learn(0.4, 0.4)  # every job ends at its predicted quantile 0.4
    >>> recalibration.moved(np.array([0.3, 0.2, 0.5])).round(1).tolist()
    [0.0, 1.0, 0.0]

    References: docs/algorithms.md#boosted-trees (Kuleshov 2018, section 3).
    """

    def __init__(self) -> None:
        self._counts = np.full(PARTS, PRIOR)

    def moved(self, outcomes: Floats) -> Floats:
        """Return the recalibrated probabilities of outcomes. The argument and the result add up to 1."""
        recalibrated: Floats = moved(outcomes, self._counts / self._counts.sum())
        return recalibrated

    def learn(self, begin: float, end: float) -> None:
        """Count an ended job. Its PIT, from outcomes before recalibration, lies between `begin` and `end`."""
        self._counts = PRIOR + KEPT * (self._counts - PRIOR)
        count_transform(self._counts, begin, end)

    def snapshot(self) -> Any:
        """Return the counts."""
        return self._counts.tolist()

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self._counts = np.array(state)
