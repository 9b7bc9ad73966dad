"""The logarithmic grid on which run times are distributed, the same for every predictor and reader.

Bin 0 is [0, 1] seconds; bin j is (1.8 ** (j - 1), 1.8 ** j]. Within a bin the logarithm of the run time is uniform.
"""

import math
from typing import Final

import numpy as np

from shadowtime.shared.arrays import Floats
from shadowtime.shared.kernel import kernel
from shadowtime.shared.message import MAX_DURATION

RATIO: Final = 1.8
BINS: Final = 1 + math.ceil(math.log(MAX_DURATION) / math.log(RATIO))
EDGES: Final = np.array([0.0, *(RATIO**j for j in range(BINS))])
"""Seconds, shape (BINS + 1,); past the longest time that a message can carry (docs/algorithms.md#bins-of-run-times)."""

Masses = Floats
"""Probability of each bin from bin 0 on; shape (bins,), bins at most BINS."""


@kernel
def bin_of(run_time: float) -> int:
    """Return the bin that holds `run_time`, in seconds.

    >>> [bin_of(each) for each in (0.0, 1.0, 1.8, 2.0, 3600.0)]
    [0, 0, 1, 2, 14]
    """
    low, high = 0, len(EDGES) - 2
    while low < high:  # the first bin whose upper edge is not below
        middle = (low + high) // 2
        if EDGES[middle + 1] < run_time:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def mean_run_time(masses: Floats, limit: float) -> float:
    """Return the mean run time in seconds of jobs that are ended at `limit`; infinity bounds nothing.

    The masses need not add up to 1. O(bins).

    >>> round(mean_run_time(np.array([0.0, 0.0, 1.0]), np.inf), 2)
    2.45
    """
    total, mean = 0.0, 0.0
    for j in range(len(masses)):
        low, high = EDGES[j], EDGES[j + 1]
        total += masses[j]
        if low >= limit:
            mean += masses[j] * limit
        elif j == 0:
            mean += masses[j] * min(high, limit)
        else:
            end = min(high, limit)
            mean += masses[j] * ((end - low) + end * math.log(high / end)) / math.log(high / low)
    return mean / total
