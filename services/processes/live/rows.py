"""Rows of jobs in the picture of the machine. The log says how many processors a job has, but not which processors."""

from bisect import bisect_left
from collections import deque
from itertools import islice
from typing import NamedTuple

from shadowtime.shared.bounds import MAX_PROCESSORS
from shadowtime.shared.formatting import DAY
from shadowtime.shared.messages import JobEnded
from shadowtime.shared.stages import RunningJob

LOOKED_AT = 32
"""The number of free ranges that are searched for a range that is large enough for the job."""

Ranges = tuple[tuple[int, int], ...]
"""First row and number of rows of each range that a job occupies."""


class PictureRows:
    """The rows of the picture, one per processor, with the free rows as ranges.

    A job gets one range of rows (a piece) if one of the lowest free ranges is large enough. Otherwise it gets the
    lowest free rows, in several pieces. If the jobs of the log need more processors than the machine has, the picture
    grows upwards. O(pieces + log ranges), and a memory move.

    >>> rows = PictureRows(8)
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
        """Occupy free rows, and return them."""
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
    """Return the lowest `count` rows of the machine that are not `taken`, or all free rows if there are fewer.

    >>> free_rows([(4, 2), (0, 3), (2, 1)], 4, 8)
    ((3, 1), (6, 2))
    """
    ranges: list[tuple[int, int]] = []
    row = 0
    for start, size in (*sorted(taken), (processors, 0)):
        gap = min(start, processors) - row
        if gap > 0 and count > 0:
            ranges.append((row, min(gap, count)))
            count -= gap
        row = max(row, start + size)

    return tuple(ranges)


# The picture of the machine over the last day: ended and running jobs with their rows, and the number of waiting jobs.

MAX_BLOCKS = 1_500
"""The maximum number of ended jobs in the picture. If more jobs end in a day, the picture covers less than a day."""

STEP = 300
"""Seconds between two points of the curve of the number of waiting jobs."""


class Block(NamedTuple):
    """A job that has ended, in the picture of the machine."""

    job: int
    user: int | None
    start: int
    end: int
    rows: Ranges


class Picture:
    """The picture of the last day: ended jobs, the rows of running jobs, and the number of waiting jobs over time.

    O(1) for an event, amortised. An end adds the cost of `PictureRows`.

    `time` is the time at which the run began, and `processors` the size of its machine.
    """

    def __init__(self, time: int, processors: int) -> None:
        self.rows = PictureRows(processors)
        self.blocks: deque[Block] = deque()
        self.covered_from = time
        """The time from which on the picture has all jobs."""
        self.history: dict[int, int] = {}
        """The number of jobs that waited at the end of each step, by the first second of the step."""

    def pass_time(self, before: int, waiting: int, now: int) -> None:
        """Note how many jobs waited at the end of instant `before`. Forget everything older than a day."""
        self.history[before // STEP * STEP] = waiting
        while self.blocks and self.blocks[0].end < now - DAY:
            self.blocks.popleft()
        while len(self.history) > 1 and next(islice(self.history, 1, None)) <= now - DAY:
            del self.history[next(iter(self.history))]
        self.covered_from = max(self.covered_from, now - DAY)

    def end(self, ended: JobEnded, job: RunningJob, rows: Ranges) -> None:
        """Free the rows of an ended job, and keep its block in the picture."""
        self.rows.give(rows)
        self.blocks.append(Block(ended.job_number, job.submitted.user_id, job.started.time, ended.time, rows))
        if len(self.blocks) > MAX_BLOCKS:
            self.covered_from = max(self.covered_from, self.blocks.popleft().end)
