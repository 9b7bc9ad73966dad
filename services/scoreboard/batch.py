"""Rows that are kept until they are many, and then taken in at once, in their order."""

from abc import ABC, abstractmethod
from typing import Any

BATCH = 512
"""Rows that are taken in at once at the latest."""


class Batched(ABC):
    """Running sums that take in rows by the batch; whoever reads them calls `fold` first.

    Sums are made one row after another, by a kernel, so that it does not matter to them where a batch ends.
    """

    def __init__(self) -> None:
        self._rows: list[tuple[Any, ...]] = []

    def fold(self) -> None:
        """Take in the rows that were kept."""
        if self._rows:
            rows, self._rows = self._rows, []
            self._take_in(rows)

    def _keep(self, row: tuple[Any, ...]) -> None:
        rows = self._rows
        rows.append(row)
        if len(rows) >= BATCH:
            self.fold()

    @abstractmethod
    def _take_in(self, rows: list[tuple[Any, ...]]) -> None:
        """Add rows, in their order, to the sums."""

    def _sums(self) -> dict[str, Any]:
        """Return all that was summed, by name."""
        self.fold()
        return {name: value for name, value in vars(self).items() if name != "_rows"}
