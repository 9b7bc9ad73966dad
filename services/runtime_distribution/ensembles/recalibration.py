"""Probabilities moved so that they come true, by which values the transform of ended jobs has taken."""

from typing import Any, Final

import numpy as np

from shadowtime.shared.distributions import count_transform
from shadowtime.shared.kernels import Floats, kernel

PARTS: Final = 20
"""Equal parts of the transform's range that are counted."""

PRIOR: Final = 10.0
"""Jobs in each part that are taken for granted: nothing is moved by few."""

KEPT: Final = 0.9998
"""Share of what is counted that each ended job leaves: jobs count over the last 5,000 or so."""


@kernel
def moved(outcomes: Floats, counts: Floats) -> Floats:
    """Return outcomes whose sums from the first on are moved along the counted distribution; O(outcomes + parts).

    Both add up to 1.

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
    """How often the probability integral transform of ended jobs was where, with forgetting.

    Examples
    --------
    >>> recalibration = PitRecalibration()
    >>> for _ in range(10_000):
    ...     recalibration.learn(0.4, 0.4)  # whatever is said to end with 0.5 does, and with 0.3 nothing does
    >>> recalibration.moved(np.array([0.3, 0.2, 0.5])).round(1).tolist()
    [0.0, 1.0, 0.0]

    References
    ----------
    docs/algorithms.md#boosted-trees (Kuleshov 2018, section 3).
    """

    def __init__(self) -> None:
        self._counts = np.full(PARTS, PRIOR)

    def moved(self, outcomes: Floats) -> Floats:
        """Return outcomes as they come true; both add up to 1."""
        recalibrated: Floats = moved(outcomes, self._counts / self._counts.sum())
        return recalibrated

    def learn(self, begin: float, end: float) -> None:
        """Take in between which values the transform of an ended job lay, by outcomes that were not moved."""
        self._counts = PRIOR + KEPT * (self._counts - PRIOR)
        count_transform(self._counts, begin, end)

    def snapshot(self) -> Any:
        """Return the counts."""
        return self._counts.tolist()

    def restore(self, state: Any) -> None:
        """Take on what `snapshot` returned."""
        self._counts = np.array(state)
