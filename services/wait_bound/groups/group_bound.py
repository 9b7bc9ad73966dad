"""BMBP for one group of jobs: a history of waits that is cut at change points."""

from functools import cache
from typing import Any

import numpy as np

from shadowtime.services.wait_bound.binomial_ranks import lower_rank, minimum_history, upper_rank, upper_ranks
from shadowtime.services.wait_bound.groups.change_point import LEVELS, RUNS, ChangePoints, replay
from shadowtime.services.wait_bound.wait_history import WaitHistory, at_rank
from shadowtime.shared.kernels import Integers

DETECTING = 0.95
"""Quantile and confidence of the bounds whose misses indicate change points. `THRESHOLDS` are made for such bounds."""


@cache
def ranks(most: int) -> Integers:
    """Return the rank of the detecting bound for each number of waits up to `most`; 0 if there are too few waits.

    >>> ranks(60).tolist()[57:]
    [0, 0, 59, 60]
    """
    return np.array([0, *(upper_rank(count, DETECTING, DETECTING) or 0 for count in range(1, most + 1))])


class WaitGroup:
    """The waits of similar jobs, oldest first, and how many waits in a row have just exceeded their bounds.

    A bound costs O(log n), a wait O(log n). A change point costs O(keep) more, a recomputed autocorrelation O(500).

    Parameters
    ----------
    most
        Maximum number of stored waits.
    keep
        Number of waits that are kept at a change point.

    >>> group = WaitGroup(most=1000, keep=59)
    >>> for _ in range(100):
    ...     change = group.add(5, bound=5)
    >>> [group.add(100, bound=5) for _ in range(3)], len(group.history)
    ([0, 0, 3], 59)

    References: docs/algorithms.md#change-points (Brevik 2006, section 3.3).
    """

    def __init__(self, most: int, keep: int) -> None:
        self._most = most
        self._keep = keep
        self.history = WaitHistory(most)
        self.change_points = ChangePoints()
        """Counter of misses in a row, with the limit at which they are a change point."""

    def add(self, wait: int, bound: int | None) -> int:
        """Record a known wait and its bound, if it had one. Return the misses in a row at a change point, else 0.

        Times in seconds.
        """
        self.history.add(wait)
        misses = self.change_points.add(wait, bound, self.history.last)
        if misses:
            self.history.keep(self._keep)
        return misses

    def limit(self, most: int) -> None:
        """Store at most `most` waits from now on."""
        self._most = most
        self.history.limit(most)

    @classmethod
    def replayed(cls, most: int, keep: int, waits: Integers) -> "WaitGroup":
        """Return a group with these waits, oldest first, each compared with the bound from the waits before it."""
        group = cls(most, keep)
        first, *counts = replay(waits, ranks(most), keep, LEVELS, RUNS)
        group.change_points.restore(counts)
        group.history = WaitHistory(most, waits[max(first, len(waits) - most) :])
        return group

    def snapshot(self) -> Any:
        """Return waits and counts."""
        return [*self.change_points.snapshot(), self.history.snapshot()]

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        *counts, waits = state
        self.change_points.restore(counts)
        self.history.restore(waits)


def bound(groups: list[WaitGroup], at: int, quantile: float, confidence: float) -> tuple[int | None, int]:
    """Return the bound of group `at` in seconds and the number of waits behind it.

    The bound is None if all groups together have too few waits.
    A group with too few waits borrows the whole history of the next higher groups until there are enough. Then it
    borrows from the next lower groups (docs/algorithms.md#borrowed-history).

    >>> groups = [WaitGroup(100, 59) for _ in range(3)]
    >>> for group, count in zip(groups, [20, 30, 40]):
    ...     for wait in range(count):
    ...         change = group.add(wait, bound=None)
    >>> bound(groups, 0, 0.95, 0.95), bound(groups, 2, 0.95, 0.95), bound(groups[:1], 0, 0.95, 0.95)
    ((39, 90), (39, 70), (None, 20))
    """
    waits = groups[at].history.ordered
    rank = upper_rank(len(waits), quantile, confidence)
    if rank is not None:  # the usual case, without borrowing
        return waits[rank - 1], len(waits)
    histories = borrowed(groups, at, minimum_history(quantile, confidence))
    count = sum(map(len, histories))
    rank = upper_rank(count, quantile, confidence)
    return (None if rank is None else at_rank(histories, rank)), count


def bounds(groups: list[WaitGroup], at: int, quantiles: tuple[float, ...], confidence: float) -> list[int | None]:
    """Return the bound of group `at` at each of some quantiles, as `bound` does, but with one look-up of all ranks."""
    waits = groups[at].history.ordered
    ranks = upper_ranks(len(waits), quantiles, confidence)
    if None in ranks:
        return [bound(groups, at, quantile, confidence)[0] for quantile in quantiles]
    return [waits[rank - 1] for rank in ranks if rank is not None]


def lower_bound(groups: list[WaitGroup], at: int, quantile: float, confidence: float) -> int | None:
    """Return the bound of group `at` from below, in seconds; None if all groups together have too few waits.

    It mirrors `bound`: a group borrows from the next lower groups first. So the bound is too low rather than too high.

    >>> groups = [WaitGroup(100, 59) for _ in range(2)]
    >>> for group, wait in zip(groups, (10, 1000)):
    ...     for number in range(40):
    ...         change = group.add(wait + number, bound=None)
    >>> lower_bound(groups, 1, 0.05, 0.95), lower_bound(groups, 1, 0.5, 0.95), lower_bound(groups[:1], 0, 0.05, 0.95)
    (10, 1014, None)
    """
    histories = borrowed(groups, at, minimum_history(round(1 - quantile, 12), confidence), upwards=False)
    rank = lower_rank(sum(map(len, histories)), quantile, confidence)
    return None if rank is None else at_rank(histories, rank)


def borrowed(groups: list[WaitGroup], at: int, need: int, *, upwards: bool = True) -> list[WaitHistory]:
    """Return the history of a group and those that it borrows to reach `need` waits, `upwards` or downwards first."""
    histories = [groups[at].history]
    count = len(histories[0])
    higher, lower = range(at + 1, len(groups)), range(at - 1, -1, -1)
    for other in (*higher, *lower) if upwards else (*lower, *higher):
        if count >= need:
            break
        histories.append(groups[other].history)
        count += len(groups[other].history)

    return histories
