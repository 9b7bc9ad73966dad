"""The queue and the running jobs as columns of whole numbers, for compiled passes."""

import heapq
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from services.scheduler.expected_end import Column
from shared.kernel import kernel
from shared.run_time_bins import BINS

NEVER = 1 << 40
"""Seconds that no job waits or runs (`shared.message.LONGEST` is shorter): stands for a request that was not made."""

UNKNOWN = -1
"""Stands for the histogram of a job whose run time has none."""

SIDES: tuple[Literal["left"], Literal["right"]] = ("left", "right")


@kernel("void(int64[:, ::1], int64, int64)")
def remove_row(table: npt.NDArray[np.int64], size: int, job_number: int) -> None:
    """Close the gap that a job leaves in the first `size` rows of a table of shape (columns, rows)."""
    at = 0
    while table[0, at] != job_number:
        at += 1
    for column in range(len(table)):
        for row in range(at, size - 1):
            table[column, row] = table[column, row + 1]


class Histograms:
    """Run-time distributions of the jobs in the system; each keeps its slot from submission to end. O(log jobs).

    >>> histograms = Histograms()
    >>> slot = histograms.add((0.25, 0.75))
    >>> histograms.masses[slot, :3].tolist()
    [0.25, 0.75, 0.0]
    """

    def __init__(self) -> None:
        self.masses = np.zeros((64, BINS))
        self._free = list(range(64))  # a heap: the lowest slot is taken first, also after a restart
        self._used: dict[int, tuple[float, ...]] = {}

    def add(self, histogram: tuple[float, ...]) -> int:
        """Return the slot of a new histogram, given from bin 0 on; `UNKNOWN` for an empty one."""
        if not histogram:
            return UNKNOWN
        if not self._free:
            self._grow()
        slot = heapq.heappop(self._free)
        self._used[slot] = histogram
        self.masses[slot] = 0.0
        self.masses[slot, : len(histogram)] = histogram
        return slot

    def remove(self, slot: int) -> None:
        """Give a slot back."""
        if slot != UNKNOWN:
            del self._used[slot]
            heapq.heappush(self._free, slot)

    def snapshot(self) -> Any:
        """Return the histograms by slot."""
        return [[slot, list(histogram)] for slot, histogram in self._used.items()]

    def restore(self, state: Any) -> None:
        """Take on what `snapshot` returned."""
        self._used = {slot: tuple(histogram) for slot, histogram in state}
        while len(self.masses) <= max(self._used, default=0):
            self._grow()
        for slot, histogram in self._used.items():
            self.masses[slot] = 0.0
            self.masses[slot, : len(histogram)] = histogram
        self._free = [slot for slot in range(len(self.masses)) if slot not in self._used]

    def _grow(self) -> None:
        size = len(self.masses)
        self.masses = np.concatenate([self.masses, np.zeros_like(self.masses)])
        self._free.extend(range(size, 2 * size))


class JobTable:
    """Jobs in order of (submit time, job number), one row each.

    Adding a job at the end costs O(1) amortised, anywhere else or removing one O(jobs) of a memory move. Columns are
    views: valid until the next change, and not to be written to.
    """

    COLUMNS: tuple[str, ...] = ("job_number", "submit_time", "processors", "requested_time", "predicted_time", "slot")

    def __init__(self, histograms: Histograms | None = None) -> None:
        self.histograms = Histograms() if histograms is None else histograms
        self._table = np.zeros((len(self.COLUMNS), 64), dtype=np.int64)
        self._size = 0
        self._rows: dict[int, tuple[int, ...]] = {}

    def __len__(self) -> int:
        return self._size

    @property
    def job_number(self) -> Column:
        """Job numbers."""
        return self._table[0, : self._size]

    @property
    def submit_time(self) -> Column:
        """Times of submission, in seconds."""
        return self._table[1, : self._size]

    @property
    def processors(self) -> Column:
        """Processors requested, or held."""
        return self._table[2, : self._size]

    @property
    def requested_time(self) -> Column:
        """Requested run times in seconds; `NEVER` where none was made."""
        return self._table[3, : self._size]

    @property
    def predicted_time(self) -> Column:
        """Predicted run times in seconds, at least 1 and at most the request; the request where none is known."""
        return self._table[4, : self._size]

    @property
    def slot(self) -> Column:
        """Where `histograms` has the job's run-time distribution; `UNKNOWN` where there is none."""
        return self._table[5, : self._size]

    def add(self, row: tuple[int, ...]) -> None:
        """Insert a job where it belongs; `row` has a number per column."""
        size = self._size
        if size == self._table.shape[1]:
            self._table = np.concatenate([self._table, np.zeros_like(self._table)], axis=1)
        at = size
        if size and (self._table[1, size - 1], self._table[0, size - 1]) > (row[1], row[0]):
            first, last = (int(np.searchsorted(self.submit_time, row[1], side)) for side in SIDES)
            at = first + int(np.searchsorted(self.job_number[first:last], row[0]))
            self._table[:, at + 1 : size + 1] = self._table[:, at:size]
        self._table[:, at] = row
        self._rows[row[0]] = row
        self._size = size + 1

    def remove(self, job_number: int) -> tuple[int, ...]:
        """Take a job out and return its row."""
        remove_row(self._table, self._size, job_number)
        self._size -= 1
        return self._rows.pop(job_number)

    def snapshot(self) -> Any:
        """Return the rows as plain numbers."""
        return self._table[:, : self._size].T.tolist()

    def restore(self, state: Any) -> None:
        """Take on what `snapshot` returned."""
        self._size = 0
        self._rows.clear()
        for row in state:
            self.add(tuple(row))


class Queue(JobTable):
    """The waiting jobs."""


class Running(JobTable):
    """The running jobs.

    Parameters
    ----------
    corrections
        Seconds by which each correction of an outlived prediction exceeds it, rising; see `expected_ends`.
    """

    COLUMNS = (*JobTable.COLUMNS, "start_time")

    def __init__(self, corrections: tuple[int, ...] = (), histograms: Histograms | None = None) -> None:
        super().__init__(histograms)
        self.corrections: Column = np.array(corrections, dtype=np.int64)

    @property
    def start_time(self) -> Column:
        """Times of start, in seconds."""
        return self._table[6, : self._size]
