"""Blocks of rows of a table, and the file that yields them."""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from shadowtime.shared.accounting import CellColumn, OddRows
from shadowtime.shared.kernels import Integers

BATCH = 65_536
"""Rows read at a time."""

IsRow = Callable[[Mapping[str, Any]], bool]
"""A function that returns whether the values of a row, by column, are valid."""


class TableBlock(NamedTuple):
    """Some rows of a table: the line of each, and the columns."""

    lines: Integers
    columns: Mapping[str, CellColumn]


class TableFile(Protocol):
    """A file with a table: the names of its columns, and the values of the first row."""

    @property
    def names(self) -> Sequence[str]:
        """Names of the columns."""
        ...

    @property
    def values(self) -> Sequence[str]:
        """Values of the first row, as texts."""
        ...

    @property
    def delimiter(self) -> str:
        """The delimiter of a text; empty for other files."""
        ...

    def blocks(self, is_row: IsRow, odd: OddRows, wanted: Container[str]) -> Iterator[TableBlock]:
        """Yield the rows, with the columns in `wanted` and perhaps others. Damaged rows are counted as odd."""
        ...
