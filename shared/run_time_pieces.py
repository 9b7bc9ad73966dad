"""How a predicted run time is distributed within the bins, where quantiles are told beside their masses.

Between its atoms, one second and the limit, a distribution is a row of pieces, in each of which the logarithm of the
run time is uniform: the bins, cut where there is a quantile. One at which several quantiles lie is an atom.

- pieces, shape (any, 3): columns `LOW`, `HIGH`, in seconds, and `MASS`.
"""

import math
from typing import Final

import numpy as np

from shadowtime.shared.arrays import Floats, FloatTable
from shadowtime.shared.kernel import kernel
from shadowtime.shared.run_time_bins import EDGES
from shadowtime.shared.run_time_outcomes import occupied_time

LEVELS: Final = np.array([k / 20 for k in range(1, 20)])
"""Probabilities of the quantiles that a prediction may tell."""

NO_QUANTILES: Final = np.zeros(0)

LOW, HIGH, MASS = range(3)


@kernel
def pieces(outcomes: Floats, quantiles: Floats, limit: float) -> FloatTable:
    """Return the pieces of a distribution; O(bins + quantiles).

    Parameters
    ----------
    outcomes
        As of `shared.run_time_outcomes`, adding up to 1.
    quantiles
        Seconds, ascending, of `LEVELS`, or none. Masses of bins stay as they are told: a quantile outside the bin in
        which its level lies is moved to the end of that.

    >>> outcomes, quantiles = np.array([0.1, 0.8, 0.1]), np.array([1.0, 1.0, *[1.6] * 15, 1.7, 1.7])
    >>> pieces(outcomes, NO_QUANTILES, 1.7).round(2).tolist()
    [[1.0, 1.7, 0.8]]
    >>> pieces(outcomes, quantiles, 1.7).round(2).tolist()
    [[1.0, 1.6, 0.05], [1.6, 1.6, 0.7], [1.6, 1.7, 0.05]]
    """
    last = len(outcomes) - 2
    found = np.empty((max(last, 0) + len(quantiles), 3))
    count, k, reached = 0, 0, outcomes[0]
    for j in range(1, last + 1):
        low, high, left, end = EDGES[j], min(EDGES[j + 1], limit), outcomes[j], reached + outcomes[j]
        while k < len(quantiles) and LEVELS[k] <= reached:
            k += 1
        below = reached
        while k < len(quantiles) and LEVELS[k] < end:
            at, mass = min(max(quantiles[k], low), high), LEVELS[k] - below
            if count > 0 and found[count - 1, LOW] == found[count - 1, HIGH] == at:
                found[count - 1, MASS] += mass
            else:
                found[count] = low, at, mass
                count += 1
            low, below, left = at, LEVELS[k], end - LEVELS[k]
            k += 1
        found[count] = low, high, left
        count += 1
        reached = end
    return found[:count].copy()


@kernel
def transformed_in(pieces: FloatTable, outcomes: Floats, run_time: float, limit: float) -> tuple[float, float]:
    """Return the probability integral transform of a run time: between which values it lies, alike but at an atom.

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
