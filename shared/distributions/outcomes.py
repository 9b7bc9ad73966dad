"""Outcomes of a job whose run time has a histogram. Outcomes are mutually exclusive, and one of them occurs.

A job occupies the machine for its run time, but at most for `limit`. The limit is the request, or infinity if there is
no request. A run of less than one second counts as one second. If the limit is in bin b, outcome j <= b is an end in
bin j before the limit. Outcome b + 1 is the end at the limit, an atom with all mass above it. Bins are those of
`shared.distributions.histogram`.
"""

import math
from typing import Final

import numpy as np

from shadowtime.shared.distributions.histogram import EDGES, bin_of
from shadowtime.shared.kernels import Floats, FloatTable, kernel

LEAST_JUMP: Final = 1e-6
"""Smallest mass of an atom that counts as a jump of a transform: the last digit of a published probability."""


@kernel
def occupied_time(run_time: float, limit: float) -> float:
    """Return the time for which a job occupies the machine, in seconds.

    >>> occupied_time(0, 3600), occupied_time(4000, 3600)
    (1.0, 3600.0)
    """
    return max(min(run_time, limit), 1.0)


@kernel
def outcome_of(run_time: float, limit: float) -> int:
    """Return the outcome of this run time, as an index.

    >>> outcome_of(1000, 3600), outcome_of(3599, 3600), outcome_of(3600, 3600)
    (12, 14, 15)
    """
    time = occupied_time(run_time, limit)
    return bin_of(limit) + 1 if time >= limit else bin_of(time)


@kernel
def reachable(masses: Floats, last: int) -> Floats:
    """Return the masses of the bins up to bin `last`, and the sum of all masses above it; shape (last + 2,).

    >>> reachable(np.array([0.1, 0.2, 0.3, 0.4]), 1).round(9).tolist()
    [0.1, 0.2, 0.7]
    """
    outcomes = np.zeros(last + 2)
    for j in range(len(masses)):
        outcomes[min(j, last + 1)] += masses[j]
    return outcomes


@kernel
def outcome_masses(masses: Floats, limit: float) -> Floats:
    """Return the mass of each outcome; shape (bin of the limit + 2,). The total mass is preserved.

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
def limit_outcomes(masses: Floats, limit: float, at_limit: float) -> Floats:
    """Return the mass of each outcome if an end at the limit has the mass `at_limit`; shape (bin of the limit + 2,).

    `at_limit` counts at most as the mass in and above the limit's bin. The rest of that mass goes to an end in that bin
    before the limit.

    >>> limit_outcomes(np.array([0.0, 0.0, 0.0, 0.5, 0.25, 0.25]), 1.8**3.5, 0.05).round(9).tolist()
    [0.0, 0.0, 0.0, 0.5, 0.45, 0.05]
    """
    last = bin_of(limit)
    outcomes = reachable(masses, last)
    probability = min(at_limit, outcomes[last] + outcomes[last + 1])
    outcomes[last] += outcomes[last + 1] - probability
    outcomes[last + 1] = probability
    return outcomes


@kernel
def total_of(masses: Floats) -> float:
    """Return the sum of at most 128 masses, from eight partial sums as `numpy.sum` adds them.

    >>> masses = 1.0 / np.arange(1.0, 33.0)
    >>> total_of(masses) == float(masses.sum())
    True
    """
    count = len(masses)
    whole, total = count - count % 8, 0.0
    if whole > 0:
        sums = masses[:8].copy()
        for j in range(8, whole):
            sums[j % 8] += masses[j]

        total = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]))
    for j in range(whole, count):
        total += masses[j]
    return total


@kernel
def predicted_outcomes(histogram: Floats, limit: float, at_limit: float) -> Floats:
    """Return the probability of each outcome by a histogram whose sum may differ from 1; shape as of `outcome_masses`.

    `at_limit` is as for `limit_outcomes`, or negative if only the histogram is predicted.

    >>> predicted_outcomes(np.array([0.0, 1.0, 1.0]), 3.0, 0.1).round(9).tolist()
    [0.0, 0.5, 0.4, 0.1]
    """
    masses = histogram / total_of(histogram)
    return outcome_masses(masses, limit) if at_limit < 0.0 else limit_outcomes(masses, limit, at_limit)


@kernel
def count_transform(counts: Floats, begin: float, end: float) -> None:
    """Add a probability integral transform to the counts of equal parts of [0, 1], in place.

    Its weight of 1 is spread evenly between `begin` and `end`, or put into one part if they are nearly equal.

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


# Distribution of a predicted run time within the bins, if quantiles are predicted besides the masses.
#
# Between its atoms, one second and the limit, a distribution is a sequence of pieces: the bins, cut at the quantiles.
# Within a piece the logarithm of the run time is uniform. A time at which several quantiles lie is an atom.
#
# - pieces, shape (any, 3): columns `LOW`, `HIGH`, in seconds, and `MASS`.

LEVELS: Final = np.array([k / 20 for k in range(1, 20)])
"""Probabilities of the quantiles that a prediction may have."""

NO_QUANTILES: Final = np.zeros(0)

LOW, HIGH, MASS = range(3)


@kernel
def pieces(outcomes: Floats, quantiles: Floats, limit: float) -> FloatTable:
    """Return a distribution as pieces, shape (pieces, 3): begin, end and mass of each; O(bins + quantiles).

    Parameters
    ----------
    outcomes
        Probability of each bin, and last of an end at the limit. The sum is 1.
    quantiles
        Quantiles at `LEVELS`, in seconds, ascending. It may be empty. Bins take precedence: a quantile outside the bin
        of its level is moved to the nearer edge of that bin.
    limit
        Requested time in seconds. No piece ends after it.

    >>> outcomes, quantiles = np.array([0.1, 0.8, 0.1]), np.array([1.0, 1.0, *[1.6] * 15, 1.7, 1.7])
    >>> pieces(outcomes, NO_QUANTILES, 1.7).round(2).tolist()
    [[1.0, 1.7, 0.8]]
    >>> pieces(outcomes, quantiles, 1.7).round(2).tolist()
    [[1.0, 1.6, 0.05], [1.6, 1.6, 0.7], [1.6, 1.7, 0.05]]
    """
    last = len(outcomes) - 2
    rows = np.empty((max(last, 0) + len(quantiles), 3))
    count, k, reached = 0, 0, outcomes[0]
    for j in range(1, last + 1):
        low, high, left, end = EDGES[j], min(EDGES[j + 1], limit), outcomes[j], reached + outcomes[j]
        while k < len(quantiles) and LEVELS[k] <= reached:
            k += 1
        below = reached
        while k < len(quantiles) and LEVELS[k] < end:
            at, mass = min(max(quantiles[k], low), high), LEVELS[k] - below
            if count > 0 and rows[count - 1, LOW] == rows[count - 1, HIGH] == at:
                rows[count - 1, MASS] += mass
            else:
                rows[count] = low, at, mass
                count += 1

            low, below, left = at, LEVELS[k], end - LEVELS[k]
            k += 1

        rows[count] = low, high, left
        count += 1
        reached = end

    return rows[:count].copy()


@kernel
def transformed_in(pieces: FloatTable, outcomes: Floats, run_time: float, limit: float) -> tuple[float, float]:
    """Return the probability integral transform of a run time: the ends of an interval, equal except at an atom.

    `pieces` is the result of the function `pieces` for `outcomes`.

    >>> outcomes = np.array([0.2, 0.6, 0.2])
    >>> transformed_in(pieces(outcomes, NO_QUANTILES, 1.7), outcomes, 0.0, 1.7)
    (0.0, 0.2)
    >>> transformed_in(np.array([[1.0, 1.5, 0.25], [1.5, 1.5, 0.25], [1.5, 1.7, 0.1]]), outcomes, 1.5, 1.7)
    (0.45, 0.7)
    """
    time = occupied_time(run_time, limit)
    if time < limit and time <= 1.0:
        return 0.0, min(outcomes[0], 1.0)
    begin, jump = outcomes[0], 0.0
    for k in range(len(pieces)):
        low, high, mass = pieces[k]
        if high < time or time >= limit:
            begin += mass
        elif low == high == time:
            jump += mass
        elif low < time:
            begin += mass * math.log(time / low) / math.log(high / low)
        else:
            break

    return min(begin, 1.0), 1.0 if time >= limit else min(begin + jump, 1.0)
