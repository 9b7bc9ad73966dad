"""Outcomes of a job as classes for trees: an end in a bin of run times, or at its request."""

import math
from typing import Final

import numpy as np

from shadowtime.services.runtime_distribution.history import UNKNOWN
from shadowtime.shared.distributions import BINS, EDGES, Masses, bin_of, outcome_masses
from shadowtime.shared.kernels import Floats, kernel

LEVELS: Final = np.array([0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9])
"""Probabilities of the quantiles that describe a distribution in a row of features."""

OUTCOME_FEATURES: Final = 2 * len(LEVELS) + 1
"""Number of features by which `outcome_features` describes a distribution."""


@kernel
def outcomes_of(masses: Masses, limit: float) -> Floats:
    """Return the probability of an end in each bin, and last of an end at the limit; shape (BINS + 1,).

    `masses` is a histogram, whose sum may differ from 1. `limit` is the request in seconds, or infinity without one.

    >>> outcomes = outcomes_of(np.array([0.0, 0.5, 0.5]), 1.8**1.5)
    >>> outcomes[[1, 2, -1]].round(3).tolist(), len(outcomes) == BINS + 1
    ([0.5, 0.25, 0.25], True)
    """
    result = outcome_masses(masses / masses.sum(), limit)
    outcomes = np.zeros(BINS + 1)
    outcomes[: len(result) - 1] = result[:-1]
    outcomes[BINS] = result[-1]
    return outcomes


@kernel
def bin_masses(outcomes: Floats, limit: float) -> Masses:
    """Return the histogram that comes closest to `outcomes`, a result of `outcome_masses`; shape (BINS,).

    A reader of the histogram cuts the bin of the limit at the limit, and counts the upper part as an end at the limit.
    So mass is moved from the limit to its bin, until the lower part of this bin has the mass of its ends before the
    limit. The rest is moved to the next bin.

    >>> bin_masses(np.array([0.0, 0.5, 0.2, 0.3]), 1.8**1.5)[:4].round(3).tolist()
    [0.0, 0.5, 0.4, 0.1]
    """
    last = len(outcomes) - 2
    beyond = outcomes[last + 1]
    masses = np.zeros(BINS)
    masses[: last + 1] = outcomes[: last + 1]
    if limit < EDGES[BINS]:
        below = 1.0 if last == 0 else math.log(limit / EDGES[last]) / math.log(EDGES[last + 1] / EDGES[last])
        taken = beyond if below <= 0.0 else min(beyond, masses[last] * (1.0 / below - 1.0))
        masses[last] += taken
        masses[min(last + 1, BINS - 1)] += beyond - taken

    masses /= masses.sum()
    return masses


@kernel
def outcome_features(outcomes: Floats, limit: float, scale: float) -> Floats:
    """Return a distribution as features, shape (OUTCOME_FEATURES,).

    The features are the logarithms of the quantiles at `LEVELS`, the quantiles divided by `scale`, and the mass at the
    limit.

    Parameters
    ----------
    outcomes
        Result of `outcomes_of`.
    limit
        Request in seconds, or infinity without one.
    scale
        Unit of relative run times in seconds.

    >>> outcomes = np.zeros(BINS + 1)
    >>> outcomes[[1, -1]] = 0.5, 0.5
    >>> outcome_features(outcomes, 100.0, 100.0)[[0, 3, 6, 13, 14]].round(2).tolist()
    [0.12, 0.59, 4.61, 1.0, 0.5]
    """
    levels = len(LEVELS)
    features = np.empty(2 * levels + 1)
    below, j = 0.0, 0
    for k in range(levels):
        while j < BINS and (outcomes[j] <= 0.0 or below + outcomes[j] < LEVELS[k]):
            below += outcomes[j]
            j += 1
        if j == 0:
            time = 1.0
        elif j < BINS:
            low, high = EDGES[j], min(EDGES[j + 1], limit)
            time = low * (high / low) ** ((LEVELS[k] - below) / outcomes[j])
        else:
            time = limit if limit < EDGES[BINS] else EDGES[BINS]

        features[k], features[levels + k] = math.log(time), time / scale

    features[2 * levels] = outcomes[BINS]
    return features


def scale(requested_time: int | None) -> float:
    """Return the unit of relative run times in seconds: the request, or an hour without a request."""
    return 3600.0 if requested_time is None or requested_time == UNKNOWN else float(requested_time)


def outcome(run_time: int, requested_time: int) -> int:
    """Return the bin in which a job ended, or `BINS` if it ended at its request.

    Times are in seconds. Without a request, `requested_time` is `UNKNOWN`.

    >>> outcome(1000, 3600), outcome(3600, 3600) == BINS
    (12, True)
    """
    return BINS if UNKNOWN != requested_time <= run_time else bin_of(max(run_time, 1))
