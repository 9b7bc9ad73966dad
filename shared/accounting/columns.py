"""Columns of cells. Distinct cells are parsed once, and whole numbers all at once."""

import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from shadowtime.shared.accounting.delimited import Shape
from shadowtime.shared.accounting.reading import UNKNOWN
from shadowtime.shared.kernels import Integers

MAX_PLAIN_DIGITS = 15
"""Digits of whole numbers that are read all at once."""

LEAST_LINES = 2_000
"""Lines from which on pyarrow is worth its import of a third of a second."""


class CellColumn:
    """A column of cells.

    Parameters
    ----------
    cells
        A sequence of cells, or an array of texts of pyarrow.

    Examples
    --------
    >>> column = CellColumn(["7", "None", "x", "7"])
    >>> column.numbers(lambda text: int(text) if text.isdecimal() else -1 if text == "None" else None)
    (array([ 7, -1, -1,  7]), [2])
    >>> CellColumn(["7", "8"]).numbers(int, lambda numbers: 60 * numbers)
    (array([420, 480]), [])
    """

    def __init__(self, cells: Any) -> None:
        self.cells = cells

    def __len__(self) -> int:
        return len(self.coded[1] if self.cells is None else self.cells)

    def __getitem__(self, row: int) -> Any:
        if self.cells is None:
            return self.coded[0][self.coded[1][row]]
        cell = self.cells[row]
        return cell.as_py() if hasattr(cell, "as_py") else cell

    def select(self, rows: Integers) -> "CellColumn":
        """Return the column of these rows, in this order."""
        if self.cells is None:
            cells, codes = self.coded
            return CellColumn([cells[code] for code in codes[rows].tolist()])
        return CellColumn(
            self.cells.take(rows) if hasattr(self.cells, "take") else [self.cells[row] for row in rows.tolist()]
        )

    @cached_property
    def is_plain(self) -> bool:
        """Whether all cells are texts of up to 15 digits."""
        return self._whole is not None

    @cached_property
    def coded(self) -> tuple[list[Any], Integers]:
        """The distinct cells in order of appearance, and the place of each row's cell among them."""
        if hasattr(self.cells, "dictionary_encode"):
            encoded = self.cells.dictionary_encode()
            return encoded.dictionary.to_pylist(), encoded.indices.to_numpy().astype(np.int64)
        known: dict[Any, int] = {}
        try:
            codes = [known.setdefault(cell, len(known)) for cell in self.cells]
        except TypeError:  # a nested value, as in JSON
            return list(self.cells), np.arange(len(self.cells))
        return list(known), np.array(codes, dtype=np.int64)

    def numbers(
        self, parse: Callable[[Any], int | None], plain: Callable[[Integers], Integers] | None = None
    ) -> tuple[Integers, list[int]]:
        """Return the number of each cell, shape (n,), and the rows of unreadable cells. These are `UNKNOWN`.

        Parameters
        ----------
        plain
            A faster function for the case that all cells are whole numbers, for `parse`; None if there is none.
        """
        if plain is not None and (whole := self._whole) is not None:
            return plain(whole), []
        cells, codes = self.coded
        parsed = [parse(cell) for cell in cells]
        values = np.array([UNKNOWN if value is None else value for value in parsed], dtype=np.int64)
        bad = np.array([value is None for value in parsed], dtype=np.bool_)
        return values[codes], np.flatnonzero(bad[codes]).tolist() if bad.any() else []

    def words(self, parse: Callable[[Any], str]) -> "CellColumn":
        """Return the column of the texts that cells stand for."""
        cells, codes = self.coded
        texts = CellColumn(None)
        texts.__dict__["coded"] = [parse(cell) for cell in cells], codes
        return texts

    @cached_property
    def _whole(self) -> Integers | None:
        """Return all cells as numbers; None if one of them is no text of up to 15 digits."""
        if self.cells is None:
            return None
        if hasattr(self.cells, "dictionary_encode"):
            return _whole_of_arrow(self.cells)
        if not (len(self.cells) and isinstance(self.cells[0], str) and all(self.cells)):
            return None
        try:
            text = "".join(self.cells)
        except TypeError:  # not all are texts
            return None
        if text.isdecimal() and text.isascii() and max(map(len, self.cells)) <= MAX_PLAIN_DIGITS:
            return np.array(list(map(int, self.cells)), dtype=np.int64)
        return None


def _whole_of_arrow(cells: Any) -> Integers | None:
    import pyarrow
    from pyarrow import compute

    if not compute.all(compute.ascii_is_decimal(cells)).as_py():
        return None
    if compute.max(compute.binary_length(cells)).as_py() > MAX_PLAIN_DIGITS:
        return None
    numbers: Integers = cells.cast(pyarrow.int64()).to_numpy()
    return numbers


def columns_of_lines(lines: Sequence[bytes], shape: Shape) -> dict[str, CellColumn] | None:
    """Return the columns of many lines at once; None if pyarrow is not there, or a line is not regular.

    All lines must have as many fields as `shape`, in UTF-8 and without quotes. Otherwise rows are read one by one.
    """
    unimported = "pyarrow" not in sys.modules
    if (
        not lines
        or (unimported and len(lines) < LEAST_LINES)
        or shape.spans
        or shape.delimiter == " "
        or len(shape.delimiter.encode()) != 1
    ):
        return None
    try:
        import pyarrow
        from pyarrow import csv
    except ModuleNotFoundError:
        return None

    text = b"\n".join(lines)
    if shape.quoted and b'"' in text:
        return None
    names = [str(at) for at in range(len(shape.names))]
    try:
        table = csv.read_csv(
            pyarrow.py_buffer(text),
            csv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=names),
            csv.ParseOptions(delimiter=shape.delimiter, quote_char=False, ignore_empty_lines=False),
            csv.ConvertOptions(column_types=dict.fromkeys(names, pyarrow.string()), strings_can_be_null=False),
        )
    except pyarrow.ArrowInvalid:
        return None
    if table.num_rows != len(lines):
        return None
    chunks = (column.combine_chunks() for column in table.columns)
    return dict(zip(shape.names, map(CellColumn, chunks), strict=True))
