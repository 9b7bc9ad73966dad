"""Known waits of one group of jobs, in order of time and in order of length."""

from array import array
from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from typing import Any

import numpy as np

from shadowtime.shared.distributions import packed_numbers, unpacked_numbers
from shadowtime.shared.kernels import Integers

SLACK = 1_000
"""Maximum number of removed waits that stay stored. All of them are deleted together, so the others move only once."""


class WaitHistory:
    """The last waits, at most `most` of them, in 16 bytes each.

    Adding and removing cost O(log n) comparisons and a move of O(n) bytes, looking up O(1).

    >>> history = WaitHistory(most=3)
    >>> for wait in (50, 10, 40, 20):
    ...     history.add(wait)
    >>> list(history.ordered), list(history.last(2))
    ([10, 20, 40], [40, 20])
    """

    def __init__(self, most: int, waits: Sequence[int] | Integers = ()) -> None:
        self._most = most
        self._first = 0
        self._fill(waits)

    def __len__(self) -> int:
        return len(self.ordered)

    def add(self, wait: int) -> None:
        """Add a wait in seconds. Remove the oldest wait if there are more than `most`."""
        waits, ordered = self._waits, self.ordered
        waits.append(wait)
        insort(ordered, wait)
        if len(ordered) <= self._most:
            return
        del ordered[bisect_left(ordered, waits[self._first])]
        self._first += 1
        if 2 * self._first > len(waits) or self._first > SLACK:
            del waits[: self._first]
            self._first = 0

    def keep(self, count: int) -> None:
        """Remove all but the last `count` waits."""
        self._fill(self.last(count))

    def limit(self, most: int) -> None:
        """Hold at most `most` waits from now on; O(n log n) if there are more."""
        self._most = most
        if len(self) > most:
            self.keep(most)

    def last(self, count: int) -> "array[int]":
        """Return the last `count` waits, oldest first."""
        return self._waits[max(len(self._waits) - count, self._first) :]

    def snapshot(self) -> Any:
        """Return the waits, oldest first."""
        return packed_numbers(np.array(self._waits[self._first :], np.int64))

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self._fill(unpacked_numbers(state, writable=False))

    def _fill(self, waits: Any) -> None:
        numbers = np.array(waits, np.int64)
        self._waits, self._first = array("q", numbers.tobytes()), 0
        self.ordered = array("q", np.sort(numbers).tobytes())
        """The waits in seconds, ascending."""


def at_rank(histories: Sequence[WaitHistory], rank: int) -> int:
    """Return the wait of a rank, 1 for the shortest, among the waits of several histories together.

    O(histories² * log² waits).

    >>> at_rank([WaitHistory(9, [5, 1]), WaitHistory(9, [3, 2])], 3)
    3
    """
    if len(histories) == 1:
        wait: int = histories[0].ordered[rank - 1]
        return wait

    def number_within(wait: int) -> int:
        """Return how many of all waits do not exceed a wait."""
        return sum(bisect_right(other.ordered, wait) for other in histories)

    kept: list[int] = []
    for history in histories:
        at = bisect_left(history.ordered, rank, key=number_within)
        kept += history.ordered[at : at + 1]

    return min(kept)
