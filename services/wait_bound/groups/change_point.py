"""Whether waits have changed for good: too many in a row beyond their bounds.

`ChangePoints` is the rule as it is kept live; `replay` is the same, gone through again when jobs are grouped anew.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shadowtime.services.wait_bound.groups.change_point_table import THRESHOLDS
from shadowtime.shared.kernels import Floats, Integers, kernel

WINDOW = 500
"""Last waits of which the autocorrelation is taken (docs/algorithms.md#change-points)."""

EVERY = 50
"""Waits after which it is taken anew."""

LEVELS = np.array(list(THRESHOLDS))
RUNS = np.array(list(THRESHOLDS.values()))


@kernel
def autocorrelation(waits: Integers) -> float:
    """Return the lag-1 autocorrelation of the logarithms of waits (and a second); 0 where they are all alike. O(n).

    >>> round(autocorrelation(np.array([1, 1, 1, 1, 100, 100, 100, 100])), 3)
    0.625
    """
    logs = np.log1p(waits.astype(np.float64))
    deviations: Floats = logs - logs.mean()
    total = (deviations * deviations).sum()
    if total <= 1e-12:
        return 0.0
    return float((deviations[1:] * deviations[:-1]).sum() / total)


@kernel
def misses_that_count(waits: Integers, levels: Floats, runs: Integers) -> int:
    """Return how many misses in a row are rare in a series correlated like these waits: the nearest of the table.

    >>> misses_that_count(np.array([1, 100, 1, 100]), LEVELS, RUNS)
    3
    """
    return int(runs[np.argmin(np.abs(levels - autocorrelation(waits)))])


class ChangePoints:
    """Misses in a row, and how many of them make a change point (docs/algorithms.md#change-points). O(1) a wait.

    >>> rule = ChangePoints()
    >>> [rule.add(100, 5, lambda count: [5] * count) for _ in range(3)]
    [0, 0, 3]
    """

    def __init__(self) -> None:
        self.misses = 0
        self.limit = int(RUNS[0])
        self.since = 0

    def add(self, wait: int, bound: int | None, last: Callable[[int], Sequence[int]]) -> int:
        """Take in a revealed wait and the bound that it had, if any; return the misses that make a change point, or 0.

        Times in seconds; `last` gives the last so many waits, this one among them.
        """
        self.since += 1
        if self.since >= EVERY:
            self.limit = misses_that_count(np.array(last(WINDOW)), LEVELS, RUNS)
            self.since = 0
        if bound is None:
            return 0
        self.misses = self.misses + 1 if wait > bound else 0
        if self.misses < self.limit:
            return 0
        misses, self.misses = self.misses, 0
        return misses

    def snapshot(self) -> list[Any]:
        """Return the counts."""
        return [self.misses, self.limit, self.since]

    def restore(self, state: Sequence[int]) -> None:
        """Take on what `snapshot` returned."""
        self.misses, self.limit, self.since = state


@kernel
def replay(waits: Integers, ranks: Integers, keep: int, levels: Floats, runs: Integers) -> tuple[int, int, int, int]:
    """Go once more through revealed waits, and return where their history begins after the change points in it.

    Each wait is held against the bound that those before it give. O(n log n): positions in order of size are kept in
    a Fenwick tree.

    Parameters
    ----------
    waits
        Seconds, in order of revelation.
    ranks
        For each number of waits, the rank of the one that is the bound; 0 where they are too few.
    keep
        Waits that are kept at a change point.

    Returns
    -------
    first, misses, limit, since
        Position of the first wait that is left; misses in a row at the end; how many count; waits since that was found.
    """
    count = len(waits)
    by_size = np.argsort(waits, kind="mergesort")
    place = np.empty(count, dtype=np.int64)
    place[by_size] = np.arange(1, count + 1)
    tree = np.zeros(count + 1, dtype=np.int64)
    highest = 1
    while 2 * highest <= count:
        highest *= 2
    first, held, in_a_row, limit, since = 0, 0, 0, runs[0], 0
    for k in range(count):
        rank = ranks[min(held, len(ranks) - 1)]
        miss = False
        if rank > 0:
            at, left, step = 0, rank, highest
            while step > 0:  # the place of the wait with this rank
                if at + step <= count and tree[at + step] < left:
                    at += step
                    left -= tree[at]
                step //= 2

            miss = waits[k] > waits[by_size[at]]

        at = place[k]
        while at <= count:
            tree[at] += 1
            at += at & -at
        held += 1
        since += 1
        if since >= EVERY:
            limit = misses_that_count(waits[max(first, k + 1 - WINDOW) : k + 1], levels, runs)
            since = 0
        in_a_row = in_a_row + 1 if miss else 0
        if in_a_row >= limit:
            while held > keep:
                at = place[first]
                while at <= count:
                    tree[at] -= 1
                    at += at & -at
                first += 1
                held -= 1

            in_a_row = 0

    return first, in_a_row, limit, since
