"""Known waits of one group of jobs, in order of time and in order of length."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

from sortedcontainers import SortedList


class WaitHistory:
    """The last waits, at most `most` of them. Adding, removing and looking up cost O(log n) comparisons each.

    >>> history = WaitHistory(most=3)
    >>> for wait in (50, 10, 40, 20):
    ...     history.add(wait)
    >>> list(history.ordered), history.last(2)
    ([10, 20, 40], [40, 20])
    """

    def __init__(self, most: int, waits: Sequence[int] = ()) -> None:
        self._most = most
        self._waits = list(waits)
        self._first = 0
        self.ordered: SortedList[int] = SortedList(self._waits)

    def __len__(self) -> int:
        return len(self.ordered)

    def add(self, wait: int) -> None:
        """Add a wait in seconds. Remove the oldest wait if there are more than `most`."""
        self._waits.append(wait)
        self.ordered.add(wait)
        if len(self.ordered) > self._most:
            self.ordered.remove(self._waits[self._first])
            self._first += 1
        if 2 * self._first > len(self._waits):
            del self._waits[: self._first]
            self._first = 0

    def keep(self, count: int) -> None:
        """Remove all but the last `count` waits."""
        self.restore(self.last(count))

    def limit(self, most: int) -> None:
        """Hold at most `most` waits from now on; O(n log n) if there are more."""
        self._most = most
        if len(self) > most:
            self.keep(most)

    def last(self, count: int) -> list[int]:
        """Return the last `count` waits, oldest first."""
        return self._waits[max(len(self._waits) - count, self._first) :]

    def snapshot(self) -> Any:
        """Return the waits, oldest first."""
        return self._waits[self._first :]

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self._waits = list(state)
        self._first = 0
        self.ordered = SortedList(self._waits)


def at_rank(histories: Sequence[WaitHistory], rank: int) -> int:
    """Return the wait of a rank, 1 for the shortest, among the waits of several histories together.

    O(histories² * log² waits).

    >>> at_rank([WaitHistory(9, [5, 1]), WaitHistory(9, [3, 2])], 3)
    3
    """
    if len(histories) == 1:
        wait: int = histories[0].ordered[rank - 1]
        return wait
    kept: list[int] = []
    for history in histories:
        low, high = 0, len(history)
        while low < high:  # the first wait of this history that at least `rank` of all waits do not exceed
            middle = (low + high) // 2
            if sum(other.ordered.bisect_right(history.ordered[middle]) for other in histories) >= rank:
                high = middle
            else:
                low = middle + 1

        kept += islice(history.ordered, low, low + 1)

    return min(kept)
