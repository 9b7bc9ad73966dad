"""When a running job is expected to end, by what was predicted of it and for how long it has run."""

import numpy as np

from shadowtime.shared.arrays import Floats
from shadowtime.shared.run_time_bins import EDGES


def expected_run_time(masses: Floats, elapsed: float, limit: float) -> float | None:
    """Return the mean run time in seconds of jobs that run longer than `elapsed`, and are ended at `limit`.

    None where the distribution knows no such job. Within a bin the logarithm of the run time is uniform. O(bins).

    >>> masses = np.array([0.0] * 12 + [0.5, 0.5])  # half of them 643 to 1,157 s, half up to 2,082 s
    >>> [round(expected_run_time(masses, elapsed, 3600)) for elapsed in (0, 1000, 2000)]
    [1225, 1476, 2041]
    >>> expected_run_time(masses, 3000, 3600), expected_run_time(masses, 0, 700) < 700
    (None, True)
    """
    low, high = EDGES[: len(masses)], EDGES[1 : len(masses) + 1]
    below = np.maximum(low, 0.5)  # bin 0 begins with 0, which has no logarithm
    begin = np.clip(elapsed, below, high)
    left = masses * np.log(high / begin) / np.log(high / below)
    total = left.sum()
    if not total > 0:
        return None
    first, last = np.minimum(begin, limit), np.minimum(high, limit)
    span = np.log(high / begin)
    span[span == 0] = 1.0
    mean = np.where(begin >= limit, limit, ((last - first) + limit * np.log(high / last)) / span)
    return float((left * mean).sum() / total)
