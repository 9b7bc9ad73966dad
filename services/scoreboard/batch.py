"""A buffer of rows, one for each job, that are added to running sums in batches, in their order."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from shadowtime.shared.kernels import Integers

BATCH = 512
"""Number of buffered rows at which they are added to the sums."""


class Batched(ABC):
    """Running sums over the rows of jobs, which are added in batches. Call `fold` before you read the sums.

    A kernel adds one row after another, so the sums do not depend on where a batch ends.
    """

    def __init__(self) -> None:
        self._rows: list[tuple[Any, ...]] = []

    def fold(self) -> None:
        """Add the buffered rows to the sums."""
        if self._rows:
            rows, self._rows = self._rows, []
            self._take_in(rows)

    def add_all(self, columns: Sequence[Integers]) -> None:
        """Add the rows of many jobs in their order. `columns` has one array for each place of a row, shape (jobs,)."""
        self.fold()
        if len(columns[0]):
            self._take_in(list(zip(*[column.tolist() for column in columns], strict=True)))

    def _keep(self, row: tuple[Any, ...]) -> None:
        rows = self._rows
        rows.append(row)
        if len(rows) >= BATCH:
            self.fold()

    @abstractmethod
    def _take_in(self, rows: list[tuple[Any, ...]]) -> None:
        """Add rows, in their order, to the sums."""

    def _sums(self) -> dict[str, Any]:
        """Return all sums by name, after a `fold`."""
        self.fold()
        return {name: value for name, value in vars(self).items() if name != "_rows"}
