"""Where in the picture of the machine a job is drawn: the log says on how many processors it runs, not on which."""

from bisect import bisect_left

from shadowtime.shared.bounds import MAX_PROCESSORS

LOOKED_AT = 32
"""Free ranges among which one is looked for that holds a job in one piece."""

Ranges = tuple[tuple[int, int], ...]
"""First row and number of rows of each piece."""


class Rows:
    """Rows of the picture, one a processor, and which of them are free.

    A job is in one piece where the lowest free ranges allow it, else on the lowest rows that there are; a machine that
    is told to run more than it has grows upwards. O(pieces + log ranges), and a memory move.

    >>> rows = Rows(8)
    >>> rows.take(4), rows.take(2), rows.take(3)
    (((0, 4),), ((4, 2),), ((6, 3),))
    >>> rows.give(((0, 4),))
    >>> rows.take(1), rows.take(4)
    (((0, 1),), ((1, 3), (9, 1)))
    """

    def __init__(self, processors: int) -> None:
        self.processors = processors
        self._starts = [0]
        self._ends = [MAX_PROCESSORS * 2]

    def take(self, count: int) -> Ranges:
        """Return rows that were free, and are not any more."""
        at = self._whole(count)
        if at is not None:
            start = self._starts[at]
            self._cut(at, count)
            return ((start, count),)
        taken: list[tuple[int, int]] = []
        while count:
            start, size = self._starts[0], min(count, self._ends[0] - self._starts[0])
            self._cut(0, size)
            taken.append((start, size))
            count -= size
        return tuple(taken)

    def give(self, ranges: Ranges) -> None:
        """Free rows that were taken."""
        for start, size in ranges:
            end, at = start + size, bisect_left(self._starts, start)
            if at < len(self._starts) and self._starts[at] == end:
                end = self._ends[at]
                del self._starts[at], self._ends[at]
            if at and self._ends[at - 1] == start:
                self._ends[at - 1] = end
            else:
                self._starts.insert(at, start)
                self._ends.insert(at, end)

    def _whole(self, count: int) -> int | None:
        for at in range(min(LOOKED_AT, len(self._starts))):
            if min(self._ends[at], self.processors) - self._starts[at] >= count:
                return at
        return None

    def _cut(self, at: int, count: int) -> None:
        self._starts[at] += count
        if self._starts[at] == self._ends[at]:
            del self._starts[at], self._ends[at]


def free_rows(taken: list[tuple[int, int]], count: int, processors: int) -> Ranges:
    """Return the lowest rows of the machine that `taken` leaves, fewer where there are not so many.

    >>> free_rows([(4, 2), (0, 3), (2, 1)], 4, 8)
    ((3, 1), (6, 2))
    """
    found: list[tuple[int, int]] = []
    row = 0
    for start, size in (*sorted(taken), (processors, 0)):
        gap = min(start, processors) - row
        if gap > 0 and count > 0:
            found.append((row, min(gap, count)))
            count -= gap
        row = max(row, start + size)
    return tuple(found)
