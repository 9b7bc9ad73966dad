"""The queue and the running jobs as columns of whole numbers, for compiled passes."""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from services.scheduler.expected_end import Column
from shared.kernel import kernel

NEVER = 1 << 40
"""Seconds that no job waits or runs (`shared.message.LONGEST` is shorter): stands for a request that was not made."""


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


class JobTable:
    """Jobs in order of (submit time, job number), one row each.

    Adding a job at the end costs O(1) amortised, anywhere else or removing one O(jobs) of a memory move. Columns are
    views: valid until the next change, and not to be written to.
    """

    COLUMNS: tuple[str, ...] = ("job_number", "submit_time", "processors", "requested_time", "predicted_time")

    def __init__(self) -> None:
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

    def __init__(self, corrections: tuple[int, ...] = ()) -> None:
        super().__init__()
        self.corrections: Column = np.array(corrections, dtype=np.int64)

    @property
    def start_time(self) -> Column:
        """Times of start, in seconds."""
        return self._table[5, : self._size]
