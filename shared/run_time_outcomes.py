"""What can become of a job, as far as a histogram tells: outcomes that exclude each other, one of which occurs.

A job takes up the machine for its run time, ended at `limit`, its request (infinity where it has none); a run of no
time counts as one second. With the limit in bin b, outcome j <= b is an end in bin j before the limit, and outcome
b + 1 is the limit itself, an atom that bears all mass above it. Bins are those of `shared.run_time_bins`.
"""

import math
from typing import Final

import numpy as np

from shadowtime.shared.arrays import Floats
from shadowtime.shared.kernel import kernel
from shadowtime.shared.run_time_bins import EDGES, bin_of

LEAST_JUMP: Final = 1e-6
"""Mass below which an atom is no jump of a transform: the last digit of a published probability."""


@kernel
def occupied_time(run_time: float, limit: float) -> float:
    """Return how long a job takes up the machine, in seconds.

    >>> occupied_time(0, 3600), occupied_time(4000, 3600)
    (1.0, 3600.0)
    """
    return max(min(run_time, limit), 1.0)


@kernel
def outcome_of(run_time: float, limit: float) -> int:
    """Return which outcome this run time was.

    >>> outcome_of(1000, 3600), outcome_of(3599, 3600), outcome_of(3600, 3600)
    (12, 14, 15)
    """
    time = occupied_time(run_time, limit)
    return bin_of(limit) + 1 if time >= limit else bin_of(time)


@kernel
def reachable(masses: Floats, last: int) -> Floats:
    """Return the masses up to that of the last bin, and of all that is above it together; shape (last + 2,).

    >>> reachable(np.array([0.1, 0.2, 0.3, 0.4]), 1).round(9).tolist()
    [0.1, 0.2, 0.7]
    """
    outcomes = np.zeros(last + 2)
    for j in range(len(masses)):
        outcomes[min(j, last + 1)] += masses[j]
    return outcomes


@kernel
def outcome_masses(masses: Floats, limit: float) -> Floats:
    """Return the mass of each outcome; shape (bin of the limit + 2,). Their sum is that of the masses.

    >>> outcome_masses(np.array([0.0, 0.0, 0.0, 0.5, 0.25, 0.25]), 1.8**3.5).round(9).tolist()
    [0.0, 0.0, 0.0, 0.5, 0.125, 0.375]
    """
    last = bin_of(limit)
    outcomes = reachable(masses, last)
    if limit < EDGES[last + 1] or last == 0:
        below = 0.0 if last == 0 else math.log(limit / EDGES[last]) / math.log(EDGES[last + 1] / EDGES[last])
        outcomes[last + 1] += (1.0 - below) * outcomes[last]
        outcomes[last] *= below
    return outcomes


@kernel
def told_outcomes(masses: Floats, limit: float, at_limit: float) -> Floats:
    """Return the mass of each outcome where that of the limit itself is told; all else ends before it.

    >>> told_outcomes(np.array([0.0, 0.0, 0.0, 0.5, 0.25, 0.25]), 1.8**3.5, 0.05).round(9).tolist()
    [0.0, 0.0, 0.0, 0.5, 0.45, 0.05]
    """
    last = bin_of(limit)
    outcomes = reachable(masses, last)
    told = min(at_limit, outcomes[last] + outcomes[last + 1])
    outcomes[last] += outcomes[last + 1] - told
    outcomes[last + 1] = told
    return outcomes


@kernel
def transformed(outcomes: Floats, run_time: float, limit: float) -> tuple[float, float]:
    """Return the probability integral transform of this run time: between which values it lies, alike but at an atom.

    `outcomes` are those of the job, shape (bin of the limit + 2,), adding up to 1. The atoms are one second and the
    limit; within any other bin the logarithm is uniform, in that of the limit up to the limit.

    >>> transformed(np.array([0.2, 0.0, 0.8, 0.0]), 1.0, 3.24), transformed(np.array([0.2, 0.6, 0.2]), 1.8, 1.8)
    ((0.0, 0.2), (0.8, 1.0))
    """
    last = outcome_of(run_time, limit)
    begin = min(outcomes[:last].sum(), 1.0)
    if last == len(outcomes) - 1:
        return begin, 1.0
    if last == 0:
        return 0.0, min(outcomes[0], 1.0)
    low, high = EDGES[last], min(EDGES[last + 1], limit)
    begin = min(begin + outcomes[last] * math.log(occupied_time(run_time, limit) / low) / math.log(high / low), 1.0)
    return begin, begin


@kernel
def count_transform(counts: Floats, begin: float, end: float) -> None:
    """Count, in equal parts of 0 to 1, a transform that lies evenly between two values, or at one if they are alike.

    >>> counts = np.zeros(4)
    >>> count_transform(counts, 0.25, 0.75)
    >>> count_transform(counts, 1.0, 1.0)
    >>> counts.tolist()
    [0.0, 0.5, 0.5, 1.0]
    """
    parts = len(counts)
    if end - begin < LEAST_JUMP:
        counts[min(int(begin * parts), parts - 1)] += 1.0
        return
    for k in range(parts):
        overlap = min(end, (k + 1) / parts) - max(begin, k / parts)
        counts[k] += max(overlap, 0.0) / (end - begin)
