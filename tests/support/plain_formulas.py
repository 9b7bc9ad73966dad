"""Formulas for one value at a time, with which tests compare what the product does for arrays."""

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from shadowtime.services.scheduler.kernels.terminations import condition
from shadowtime.services.scoreboard.scores.waits_and_utilization import WAIT_FLOOR
from shadowtime.services.wait_bound.binomial_ranks import lower_rank, one_sided, upper_rank
from shadowtime.services.wait_bound.groups.clustering import Clusters, log_likelihood
from shadowtime.shared.distributions import Masses
from shadowtime.shared.distributions.outcomes import EDGES, occupied_time, outcome_of
from shadowtime.shared.kernels import Floats


def geometric_term(wait: int) -> float:
    """Return the logarithm that a wait in seconds adds to the geometric mean.

    >>> round(math.exp(sum(map(geometric_term, [0, 5, 10, 60, 3600])) / 5), 8)
    46.43984379
    """
    return math.log(max(wait, WAIT_FLOOR))


def wfp_priority(wait: int, requested_time: int, processors: int) -> float:
    """Return the WFP score (wait / requested time)³ · processors (Tang 2013, section 6.1).

    >>> wfp_priority(7200, 3600, 512)
    4096.0
    """
    return (wait / requested_time) ** 3 * processors


class Ranks(NamedTuple):
    """Ranks of the observations between which a quantile lies; None on a side with too few observations."""

    lower: int | None
    upper: int | None


def two_sided_ranks(count: int, quantile: float, confidence: float) -> Ranks:
    """Return the ranks between which `quantile` lies with `confidence`; each side has half of the error probability.

    >>> two_sided_ranks(100, 0.5, 0.95)
    Ranks(lower=40, upper=61)
    """
    tail = one_sided(confidence, "both")
    return Ranks(lower_rank(count, quantile, tail), upper_rank(count, quantile, tail))


def conditional(masses: Masses, elapsed: float, request: float, *, censor: bool = False) -> tuple[Masses, Masses]:
    """Return `condition` on the common grid of run times.

    >>> times, probabilities = conditional(np.array([0.0, 0.5, 0.0, 0.5]), 2.0, 3600.0)
    >>> times.round(3).tolist(), probabilities.tolist()
    ([5.832], [1.0])
    """
    return condition(np.asarray(masses, dtype=np.float64), EDGES, elapsed, request, censor)


def transformed(outcomes: Floats, run_time: float, limit: float) -> tuple[float, float]:
    """Return the probability integral transform of a run time: the ends of an interval, equal except at an atom.

    `outcomes` are the masses of the job's outcomes, shape (bin of the limit + 2,), adding up to 1. The atoms are one
    second and the limit. Within any other bin, up to the limit, the logarithm of the run time is uniform.

    >>> transformed(np.array([0.2, 0.0, 0.8, 0.0]), 1.0, 3.24), transformed(np.array([0.2, 0.6, 0.2]), 1.8, 1.8)
    ((0.0, 0.2), (0.8, 1.0))
    """
    last = outcome_of(run_time, limit)
    begin = min(float(outcomes[:last].sum()), 1.0)
    if last == len(outcomes) - 1:
        return begin, 1.0
    if last == 0:
        return 0.0, min(float(outcomes[0]), 1.0)
    low, high = EDGES[last], min(EDGES[last + 1], limit)
    begin = min(begin + outcomes[last] * math.log(occupied_time(run_time, limit) / low) / math.log(high / low), 1.0)
    return begin, begin


def merge_deltas(clusters: Clusters) -> list[float]:
    """Return the change in the log-likelihood if each pair of neighbours is merged; never above 0."""
    pairs = list(zip(clusters.counts.tolist(), clusters.totals.tolist(), strict=True))
    return [
        log_likelihood(n + m, s + t) - log_likelihood(n, s) - log_likelihood(m, t) for (n, s), (m, t) in pairwise(pairs)
    ]
