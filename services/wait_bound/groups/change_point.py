"""Change points of waits: too many waits in a row exceed their bounds.

`ChangePoints` applies the rule live. `replay` applies it to past waits when jobs are regrouped.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shadowtime.services.wait_bound.groups.change_point_table import THRESHOLDS
from shadowtime.shared.kernels import Floats, Integers, kernel

WINDOW = 500
"""Number of the last waits from which the autocorrelation is computed (docs/algorithms.md#change-points)."""

EVERY = 50
"""Number of waits after which the autocorrelation is recomputed."""

LEVELS = np.array(list(THRESHOLDS))
RUNS = np.array(list(THRESHOLDS.values()))


@kernel
def logarithms(waits: Integers) -> Floats:
    """Return log(wait + 1 s) of each wait."""
    return np.log1p(waits.astype(np.float64))


@kernel
def autocorrelation(logs: Floats) -> float:
    """Return the lag-1 autocorrelation; 0 if all values are equal. O(n).

    >>> round(autocorrelation(logarithms(np.array([1, 1, 1, 1, 100, 100, 100, 100]))), 3)
    0.625
    """
    deviations: Floats = logs - logs.mean()
    total = (deviations * deviations).sum()
    if total <= 1e-12:
        return 0.0
    return float((deviations[1:] * deviations[:-1]).sum() / total)


@kernel
def misses_that_count(logs: Floats, levels: Floats, runs: Integers) -> int:
    """Return the number of misses in a row that is rare in a series with the autocorrelation of these `logarithms`.

    This number is the entry of the table with the nearest autocorrelation.

    >>> misses_that_count(logarithms(np.array([1, 100, 1, 100])), LEVELS, RUNS)
    3
    """
    return int(runs[np.argmin(np.abs(levels - autocorrelation(logs)))])


class ChangePoints:
    """Counter of misses in a row, with the limit at which they are a change point (docs/algorithms.md#change-points).

    O(1) a wait, and O(`WINDOW`) every `EVERY` waits.

    >>> rule = ChangePoints()
    >>> [rule.add(100, 5, lambda count: [5] * count) for _ in range(3)]
    [0, 0, 3]
    """

    def __init__(self) -> None:
        self.misses = 0
        self.limit = int(RUNS[0])
        self.since = 0

    def add(self, wait: int, bound: int | None, last: Callable[[int], Sequence[int]]) -> int:
        """Record a known wait and its bound, if it had one. Return the misses in a row at a change point, else 0.

        Times in seconds. `last(count)` returns the last `count` waits, including this one.
        """
        self.since += 1
        if self.since >= EVERY:
            self.limit = misses_that_count(logarithms(np.array(last(WINDOW))), LEVELS, RUNS)
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
        """Restore the state that `snapshot` returned."""
        self.misses, self.limit, self.since = state


@kernel
def replay(waits: Integers, ranks: Integers, keep: int, levels: Floats, runs: Integers) -> tuple[int, int, int, int]:
    """Replay known waits, and return where their history begins after the change points.

    Each wait is compared with the bound from the waits before it. O(n log n), by a Fenwick tree over the waits in order
    of length.

    Parameters
    ----------
    waits
        Seconds, oldest first.
    ranks
        For each number of waits, the rank of the wait that is the bound; 0 if there are too few waits.
    keep
        Number of waits that are kept at a change point.
    levels, runs
        Autocorrelations, and the misses in a row that are a change point at each; see `THRESHOLDS`.

    Returns
    -------
    first, misses, limit, since
        Position of the first kept wait; misses in a row at the end; the misses in a row that are a change point; waits
        since that number was computed.
    """
    count = len(waits)
    by_size = np.argsort(waits, kind="mergesort")
    place = np.empty(count, dtype=np.int64)
    place[by_size] = np.arange(1, count + 1)
    tree = np.zeros(count + 1, dtype=np.int64)
    highest = 1
    while 2 * highest <= count:
        highest *= 2
    logs = logarithms(waits)
    first, held, in_a_row, limit, since = 0, 0, 0, runs[0], 0
    for k in range(count):
        rank = ranks[min(held, len(ranks) - 1)]
        miss = False
        if rank > 0:
            at, left, step = 0, rank, highest
            while step > 0:  # the position, by length, of the wait with this rank
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
            limit = misses_that_count(logs[max(first, k + 1 - WINDOW) : k + 1], levels, runs)
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
