"""The logarithmic grid of run time distributions, the same for every predictor and reader.

Bin 0 is [0, 1] seconds; bin j is (1.8 ** (j - 1), 1.8 ** j]. Within a bin the logarithm of the run time is uniform.
"""

import math
from typing import Final

import numpy as np

from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.kernels import Floats, kernel

RATIO: Final = 1.8
BINS: Final = 1 + math.ceil(math.log(MAX_DURATION) / math.log(RATIO))
EDGES: Final = np.array([0.0, *(RATIO**j for j in range(BINS))])
"""Edges of the bins in seconds, shape (BINS + 1,). They reach past the longest time that a message can carry
(docs/algorithms.md#bins-of-run-times)."""

Masses = Floats
"""Probability of each bin from bin 0 on; shape (bins,), with at most BINS bins."""


@kernel
def bin_of(run_time: float) -> int:
    """Return the bin that contains `run_time`, in seconds; the last bin for longer run times.

    >>> [bin_of(value) for value in (0.0, 1.0, 1.8, 2.0, 3600.0)]
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
    """Return the mean run time in seconds of jobs that end at `limit` at the latest. The limit may be infinite.

    The masses need not add up to 1, but must not all be 0. O(bins).

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


@kernel
def rounded_mean(masses: Masses, digits: int, limit: float, rounded: Masses) -> tuple[int, float]:
    """Round masses to a number of decimals, into `rounded`.

    Return the number of bins up to the last rounded mass above 0, and the mean run time by the rounded masses, as by
    `mean_run_time`. The mean is not a number if all are 0.

    >>> rounded = np.zeros(3)
    >>> count, mean = rounded_mean(np.array([0.0, 0.9999999, 0.0000001]), 6, np.inf, rounded)
    >>> count, round(mean, 2), rounded.tolist()
    (2, 1.36, [0.0, 1.0, 0.0])
    """
    scale, count = 10.0**digits, 0
    for j in range(len(masses)):
        rounded[j] = np.rint(masses[j] * scale) / scale
        if rounded[j] != 0.0:
            count = j + 1

    return count, mean_run_time(rounded[:count], limit) if count > 0 else math.nan


def expected_run_time(masses: Floats, elapsed: float, limit: float) -> float | None:
    """Return the mean run time in seconds of jobs that run longer than `elapsed`, and are ended at `limit`.

    `masses` has the probability of each bin of `EDGES`. Return None if all are 0 beyond `elapsed`. Within a bin the
    logarithm of the run time is uniform. O(bins).

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
    mean = np.where(begin >= limit, limit, ((last - first) + last * np.log(high / last)) / span)
    return float((left * mean).sum() / total)


@kernel
def mass_before(masses: Floats, time: float) -> float:
    """Return the probability mass of run times below `time`, in seconds. Bin 0 stands for one second.

    >>> mass_before(np.array([0.5, 0.0, 0.0, 0.5]), 1.8**2.5)
    0.75
    """
    mass = 0.0
    for j in range(len(masses)):
        low, high = EDGES[j], EDGES[j + 1]
        if time <= low:
            break
        if time > high:
            mass += masses[j]
        elif j > 0:
            mass += masses[j] * math.log(time / low) / math.log(high / low)

    return mass


def cut_probability(masses: Floats, request: float) -> float:
    """Return the probability that a job would run longer than its request, and is killed there. O(bins).

    >>> cut_probability(np.array([0.0, 0.25, 0.25, 0.5]), 1.8**2), cut_probability(np.array([1.0]), math.inf)
    (0.5, 0.0)
    """
    return max(0.0, 1.0 - mass_before(masses, request) / float(masses.sum())) if request < math.inf else 0.0


@kernel
def quantile_of(masses: Floats, probability: float) -> float:
    """Return the quantile of the run time, in seconds, at this probability. Bin 0 stands for one second.

    The masses need not add up to 1. O(bins).

    >>> quantile_of(np.array([0.5, 0.0, 0.0, 0.5]), 0.4), round(quantile_of(np.array([0.5, 0.0, 0.5]), 0.75), 3)
    (1.0, 2.415)
    """
    wanted, before = probability * masses.sum(), 0.0
    for j in range(len(masses)):
        if masses[j] > 0.0 and before + masses[j] >= wanted:
            if j == 0:
                return 1.0
            low, high = EDGES[j], EDGES[j + 1]
            return float(low * (high / low) ** (max(wanted - before, 0.0) / masses[j]))

        before += masses[j]

    return float(EDGES[len(masses)])
