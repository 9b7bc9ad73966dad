"""Intervals of a job's attribute with similar waits in each, by hierarchical merging under exponential likelihood."""

import math
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np

from shadowtime.shared.kernels import Floats, Integers, kernel

MIN_MEAN = 1e-9
"""Assumed mean wait in seconds of a cluster of zeros, below any other. It keeps the likelihood of this cluster
finite."""


@kernel
def log_likelihood(count: int, total: float) -> float:
    """Return the maximum log-likelihood of `count` exponentially distributed waits that add up to `total` seconds.

    >>> log_likelihood(2, 24.0).__round__(6)
    -6.969813
    """
    return count * math.log(count / max(total, count * MIN_MEAN)) - count


@kernel
def merge_order(counts: Integers, totals: Floats) -> Integers:
    """Return the indices of clusters, in the order in which each is merged with its higher neighbour.

    The shape is (clusters - 1,). The next pair of neighbours to be merged is the one that lowers the joint likelihood
    least; of equals, the lowest.
    So the last k - 1 entries of the result are the upper ends of all but the last of k clusters.

    `counts` and `totals` have the number of waits and their sum for each cluster, lowest first; shape (clusters,).

    O(clusters log clusters), by a heap of pairs. Pairs that have changed since they were pushed are skipped.

    >>> merge_order(np.array([1, 1, 1, 1]), np.array([10.0, 14.0, 100.0, 150.0])).tolist()
    [0, 2, 1]
    """
    clusters = len(counts)
    # A merged cluster keeps the index of its highest member, which has its upper end.
    counts, totals = counts.copy(), totals.copy()
    likelihoods = np.empty(clusters)
    for i in range(clusters):
        likelihoods[i] = log_likelihood(counts[i], totals[i])
    below = np.arange(-1, clusters - 1)
    above = np.arange(1, clusters + 1)
    changes = np.zeros(clusters, np.int64)
    pairs = [
        (
            likelihoods[i] + likelihoods[i + 1] - log_likelihood(counts[i] + counts[i + 1], totals[i] + totals[i + 1]),
            i,
            0,
        )
        for i in range(clusters - 1)
    ]
    heapify(pairs)
    order = np.empty(max(clusters - 1, 0), np.int64)
    count = 0
    while count < len(order):
        _, lower, change = heappop(pairs)
        if change != changes[lower]:
            continue
        order[count] = lower
        count += 1
        changes[lower] = -1
        upper = above[lower]
        counts[upper] += counts[lower]
        totals[upper] += totals[lower]
        likelihoods[upper] = log_likelihood(counts[upper], totals[upper])
        below[upper] = below[lower]
        if below[upper] >= 0:
            above[below[upper]] = upper
        for i in (below[upper], upper):
            if i < 0 or above[i] == clusters:
                continue
            j = above[i]
            changes[i] += 1
            joint = log_likelihood(counts[i] + counts[j], totals[i] + totals[j])
            heappush(pairs, (likelihoods[i] + likelihoods[j] - joint, i, changes[i]))

    return order


class Clusters(NamedTuple):
    """Adjacent intervals, lowest first: their upper ends, numbers of waits and sums of waits."""

    ends: Integers
    counts: Integers
    totals: Floats

    @property
    def log_likelihood(self) -> float:
        """Return the logarithm of the joint likelihood, each cluster with its own mean."""
        return sum(map(log_likelihood, self.counts.tolist(), self.totals.tolist()))

    @property
    def bic(self) -> float:
        """Return the Bayes information criterion with 2 k - 1 parameters: k means and k - 1 ends. Larger is better."""
        return self.log_likelihood - (2 * len(self.ends) - 1) / 2 * math.log(self.counts.sum())

    def merged(self, lasts: Integers) -> "Clusters":
        """Return wider clusters. `lasts` has the index of the last member of each wider cluster, ascending."""
        firsts = np.concatenate(([0], lasts[:-1] + 1))
        return Clusters(self.ends[lasts], np.add.reduceat(self.counts, firsts), np.add.reduceat(self.totals, firsts))


def initial(values: Integers, waits: Floats | Integers, *, offset: float, minimum_end: int) -> Clusters:
    """Return one cluster per unique value, except that the first and the last have at least `minimum_end` waits each.

    If two such clusters are not possible, return a single one.

    >>> initial(np.array([9, 1, 2, 3, 3]), np.array([5, 0, 0, 7, 8]), offset=1.0, minimum_end=2).ends.tolist()
    [2, 9]
    """
    ends = np.unique(values)
    inverse = np.searchsorted(ends, values)
    counts = np.bincount(inverse)
    single = Clusters(ends, counts, np.bincount(inverse, weights=waits) + offset * counts)
    top = len(ends) - 1
    first = int(np.searchsorted(np.cumsum(counts), minimum_end))
    last = top - int(np.searchsorted(np.cumsum(counts[::-1]), minimum_end))  # the lowest value of the last cluster
    if first >= last:
        return single.merged(np.array([top]))
    return single.merged(np.append(np.arange(first, last), top))


def clusterings(single: Clusters, least: int, most: int) -> list[Clusters]:
    """Return the results of hierarchical merging into `least` to `most` clusters, at most the number in `single`."""
    order = merge_order(single.counts, single.totals)
    top = len(single.ends) - 1
    return [
        single.merged(np.append(np.sort(order[len(order) - k + 1 :]), top))
        for k in range(min(least, top + 1), min(most, top + 1) + 1)
    ]


def cut(
    values: Integers,
    waits: Floats | Integers,
    *,
    offset: float = 1.0,
    minimum_end: int = 59,
    least: int = 1,
    most: int = 15,
) -> list[int]:
    """Return the upper ends of all clusters of `values` but the last, ascending; empty for a single cluster.

    Parameters
    ----------
    values
        The attribute of each past job by which jobs are grouped, known at submission; shape (jobs,).
    waits
        Their waits in seconds; shape (jobs,).
    offset
        Seconds added to each wait, only in the likelihood, which would be infinite for a cluster of zeros.
    minimum_end
        Fewest waits in the first and in the last cluster.
    least, most
        Minimum and maximum number of clusters. The Bayes information criterion chooses among them; of equals, the
        fewest.

    O(jobs log jobs).

    References: docs/algorithms.md#clustered-groups (Brevik 2006, sections 3.4 and 3.5).

    >>> cut(np.array([60, 120, 600, 1200]), np.array([10, 14, 100, 150]), offset=0.0, minimum_end=0)
    [120]
    """
    if len(values) == 0:
        return []
    single = initial(values, waits, offset=offset, minimum_end=minimum_end)
    best = max(clusterings(single, least, most), key=lambda clusters: clusters.bic)
    ends: list[int] = best.ends[:-1].tolist()
    return ends
