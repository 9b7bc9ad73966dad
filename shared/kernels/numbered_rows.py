"""Rows of numbers of the jobs that wait, in one table for compiled passes."""

from collections.abc import Iterable

import numpy as np

from shadowtime.shared.kernels.arrays import Floats, FloatTable


class NumberedRows:
    """A row of numbers for each job, without gaps. O(columns) for each change.

    >>> rows = NumberedRows(2)
    >>> for number in (7, 8, 9):
    ...     rows.add(number, np.array([number, 0.5]))
    >>> rows.remove(7)
    >>> rows.numbers, rows.table.tolist(), rows.of(7)
    ([9, 8], [[9.0, 0.5], [8.0, 0.5]], None)
    """

    def __init__(self, columns: int, numbers: Iterable[int] = (), rows: Iterable[Floats] = ()) -> None:
        self.numbers: list[int] = []
        """The jobs, in the order of the rows."""
        self._rows: dict[int, int] = {}
        self._table: FloatTable = np.empty((16, columns))
        for number, row in zip(numbers, rows, strict=True):
            self.add(number, row)

    @property
    def table(self) -> FloatTable:
        """The rows of all jobs, a view of shape (jobs, columns)."""
        return self._table[: len(self.numbers)]

    def of(self, job_number: int) -> FloatTable | None:
        """Return the row of a job, a view of shape (1, columns); None if it has none."""
        row = self._rows.get(job_number)
        return None if row is None else self._table[row : row + 1]

    def add(self, job_number: int, row: Floats) -> None:
        """Add a job that has no row."""
        if len(self.numbers) == len(self._table):
            self._table = np.concatenate((self._table, np.empty_like(self._table)))
        self._rows[job_number] = len(self.numbers)
        self._table[len(self.numbers)] = row
        self.numbers.append(job_number)

    def remove(self, job_number: int) -> None:
        """Remove the row of a job, if it has one. The last row moves into its place."""
        row = self._rows.pop(job_number, None)
        if row is None:
            return
        last = self.numbers.pop()
        if last != job_number:
            self.numbers[row], self._rows[last] = last, row
            self._table[row] = self._table[len(self.numbers)]
