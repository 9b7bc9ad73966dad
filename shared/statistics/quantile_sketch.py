"""Quantiles of waits in bounded memory, each within 1 % of the true one."""

from collections.abc import Sequence
from math import ceil, floor, log
from typing import Any

import numpy as np

from shadowtime.shared.bounds import MAX_INTEGER

STEP = log(1.02)
"""Width of a bin in the logarithm of seconds."""

BINS = 2 + floor(log(2 * MAX_INTEGER) / STEP)
"""Number of bins: one for no wait, and those up to the longest span between two times in messages."""


class WaitQuantiles:
    """Counts of waits in bins of equal logarithmic width. Memory is constant.

    Examples
    --------
    >>> waits = WaitQuantiles()
    >>> for wait in (0, 0, 100, 1_000, 10_000):
    ...     waits.add(wait)
    >>> [round(value) for value in waits.quantiles((0.25, 0.5, 0.9))]
    [0, 100, 10078]

    References
    ----------
    docs/algorithms.md#waits (Masson 2019).
    """

    def __init__(self) -> None:
        self.counts = np.zeros(BINS, dtype=np.int64)

    def add(self, wait: int) -> None:
        """Add a wait in seconds. A wait below 1 s counts as 0."""
        self.counts[0 if wait < 1 else 1 + floor(log(wait) / STEP)] += 1

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        """Return the quantile of waits, in seconds, for each share; an empty list before the first wait."""
        upto = np.cumsum(self.counts)
        jobs = int(upto[-1])
        places = np.searchsorted(upto, [max(1, ceil(share * jobs)) for share in shares]) if jobs else ()
        return [0.0 if place == 0 else float(1.02 ** (place - 0.5)) for place in places]

    def snapshot(self) -> Any:
        """Return bin and count of each bin that is not empty."""
        return [[place, int(self.counts[place])] for place in np.flatnonzero(self.counts).tolist()]

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self.counts[:] = 0
        for place, count in state:
            self.counts[place] = count
