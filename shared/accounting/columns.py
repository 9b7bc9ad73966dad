"""Columns of cells. Distinct cells are parsed once, and whole numbers all at once."""

import sys
from collections.abc import Callable, Container
from functools import cached_property
from typing import Any

import numpy as np

from shadowtime.shared.accounting.delimited import Shape
from shadowtime.shared.accounting.reading import UNKNOWN
from shadowtime.shared.kernels import Integers

MAX_PLAIN_DIGITS = 15
"""The maximum number of digits of whole numbers that are converted all at once."""

MISSING = ("", "None", "Unknown", "N/A")
"""Frequent texts for a missing number."""

DATE_LENGTH = len("2026-11-22T05:31:13")

FIRST = 1_000
"""The number of cells at the beginning of a column that are searched for texts of `MISSING`."""

LEAST_LINES = 2_000
"""The minimum number of lines for which pyarrow is imported, which takes a third of a second."""


class CellColumn:
    """A column of cells.

    Parameters
    ----------
    cells
        A sequence of cells, or an array of pyarrow. None only within `of_codes`.

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

    @staticmethod
    def of_codes(cells: list[Any], codes: Integers) -> "CellColumn":
        """Return the column in which row `i` has the cell `cells[codes[i]]`."""
        column = CellColumn(None)
        column.__dict__["coded"] = cells, codes
        return column

    def containing(self, text: str) -> list[tuple[int, str]]:
        """Return the cells that contain `text`, as pairs of row and cell. All cells must be texts.

        >>> CellColumn(["17", "17_1", "18"]).containing("_")
        [(1, '17_1')]
        """
        if self.cells is None:
            cells, codes = self.coded
            rows = np.flatnonzero(np.array([text in cell for cell in cells], dtype=np.bool_)[codes]).tolist()
            return [(row, cells[int(codes[row])]) for row in rows]
        if hasattr(self.cells, "dictionary_encode"):
            from pyarrow import compute

            there = np.flatnonzero(compute.match_substring(self.cells, text).to_numpy(zero_copy_only=False))
            return list(zip(there.tolist(), self.cells.take(there).to_pylist(), strict=True))
        return [(row, cell) for row, cell in enumerate(self.cells) if text in cell]

    def select(self, rows: Integers) -> "CellColumn":
        """Return the column of these rows, in this order."""
        if self.cells is None:
            cells, codes = self.coded
            return CellColumn.of_codes(cells, codes[rows])
        return CellColumn(
            self.cells.take(rows) if hasattr(self.cells, "take") else [self.cells[row] for row in rows.tolist()]
        )

    @cached_property
    def is_plain(self) -> bool:
        """Whether all cells can be converted at once, as whole numbers of up to 15 digits."""
        return self._whole is not None

    @cached_property
    def coded(self) -> tuple[list[Any], Integers]:
        """The different cells, and the index of each row's cell among them, shape (n,). A cell may occur twice."""
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
        self,
        parse: Callable[[Any], int | None],
        plain: Callable[[Integers], Integers | None] | None = None,
        dated: Callable[[Integers], Integers | None] | None = None,
    ) -> tuple[Integers, list[int]]:
        """Return the number of each cell, shape (n,), and the rows of unreadable cells, whose number is `UNKNOWN`.

        Parameters
        ----------
        parse
            Returns the number of a cell, `UNKNOWN` for a missing value, None if the cell is unreadable.
        plain
            A faster function that replaces `parse` for whole numbers, if there is one. If it returns None, `parse` is
            used.
        dated
            The same for local dates; it needs `plain`. Its argument is their seconds since 1970 without a time zone.
        """
        if plain is not None and (whole := self._whole) is not None and (values := plain(whole)) is not None:
            return values, []
        if plain is not None and (at_once := self._at_once(parse, plain, dated)) is not None:
            return at_once, []
        cells, codes = self.coded
        parsed = [parse(cell) for cell in cells]
        values = np.array([UNKNOWN if value is None else value for value in parsed], dtype=np.int64)
        bad = np.array([value is None for value in parsed], dtype=np.bool_)
        return values[codes], np.flatnonzero(bad[codes]).tolist() if bad.any() else []

    def words(self, parse: Callable[[Any], str]) -> "CellColumn":
        """Return the column of the texts that `parse` returns for the cells."""
        cells, codes = self.coded
        return CellColumn.of_codes([parse(cell) for cell in cells], codes)

    @cached_property
    def _whole(self) -> Integers | None:
        """Return all cells as numbers; None if one of them has more than 15 digits or is no number."""
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

    def _at_once(
        self,
        parse: Callable[[Any], int | None],
        plain: Callable[[Integers], Integers | None],
        dated: Callable[[Integers], Integers | None] | None,
    ) -> Integers | None:
        """Return the numbers of texts if all are missing or whole numbers, or all are missing or dates; else None."""
        if str(getattr(self.cells, "type", "")) != "string":  # an array of texts of pyarrow
            return None
        import pyarrow
        from pyarrow import compute

        words = [word for word in {*self.cells.slice(0, FIRST).to_pylist()} & {*MISSING} if parse(word) == UNKNOWN]
        missing = compute.is_in(self.cells, value_set=pyarrow.array(words, pyarrow.string()))
        rows = np.flatnonzero(~missing.to_numpy(zero_copy_only=False))
        there = self.cells.take(rows) if words else self.cells
        numbers = None
        if words and (whole := _whole_of_arrow(there)) is not None:
            numbers = plain(whole)
        elif dated is not None and (local := _local_of_arrow(there)) is not None:
            numbers = dated(local)
        if numbers is None:
            return None
        values = np.full(len(self.cells), UNKNOWN, dtype=np.int64)
        values[rows] = numbers
        return values


def as_it_is(numbers: Integers) -> Integers:
    """Return numbers unchanged: the `plain` of `CellColumn.numbers` if whole numbers need no conversion."""
    return numbers


def _local_of_arrow(cells: Any) -> Integers | None:
    """Return dates as seconds since 1970 without a time zone; None if one is not `YYYY-MM-DDTHH:MM:SS`."""
    import pyarrow
    from pyarrow import compute

    sizes = compute.min_max(compute.binary_length(cells)).as_py()
    if {*sizes.values()} != {DATE_LENGTH}:
        return None
    try:
        seconds: Integers = cells.cast(pyarrow.timestamp("s")).cast(pyarrow.int64()).to_numpy()
    except pyarrow.ArrowInvalid:
        return None
    return seconds


def _whole_of_arrow(cells: Any) -> Integers | None:
    import pyarrow
    from pyarrow import compute

    if pyarrow.types.is_integer(cells.type):
        least, most = compute.min_max(cells).as_py().values()
        if least is None or least < 0 or most >= 10**MAX_PLAIN_DIGITS:
            return None
        return np.asarray(cells.to_numpy(), dtype=np.int64)
    if not compute.all(compute.ascii_is_decimal(cells)).as_py():
        return None
    if compute.max(compute.binary_length(cells)).as_py() > MAX_PLAIN_DIGITS:
        return None
    numbers: Integers = cells.cast(pyarrow.int64()).to_numpy()
    return numbers


def _enclose_fields(text: bytes, delimiter: str) -> bool:
    r"""Return whether each quote in a text is at the beginning or the end of a field.

    >>> _enclose_fields(b'1,"a, b"\n2,""', ","), _enclose_fields(b'1,"a ""b"" c"', ",")
    (True, False)
    """
    characters = np.frombuffer(b"\n" + text + b"\n", dtype=np.uint8)
    between = (characters == ord(delimiter)) | (characters == ord("\n"))
    quotes = np.flatnonzero(characters == ord('"'))
    return len(quotes) % 2 == 0 and bool((between[quotes - 1] | between[quotes + 1]).all())


def columns_of_text(
    text: bytes, lines: int, shape: Shape, wanted: Container[str] | None = None
) -> dict[str, CellColumn] | None:
    """Return the columns of many lines at once; None if the rows must be read one by one.

    That is the case if pyarrow is missing, the lines are too few for its import, fields have a fixed width, or the
    delimiter is a blank or longer than a byte. It is also the case if a line is irregular. All lines must be UTF-8 with
    as many fields as `shape`. Quotes may only enclose whole fields, which have no quotes and no line ends themselves.

    Parameters
    ----------
    text
        The lines, with one line end between two of them.
    lines
        The number of lines.
    wanted
        The names of the columns that are returned; None for all.
    """
    unimported = "pyarrow" not in sys.modules
    if shape.spans or shape.delimiter == " " or len(shape.delimiter.encode()) != 1:
        return None
    if not lines or (unimported and lines < LEAST_LINES):
        return None
    try:
        import pyarrow
        from pyarrow import compute, csv
    except ModuleNotFoundError:
        return None

    quotes = text.count(b'"') if shape.quoted else 0
    if quotes and not _enclose_fields(text, shape.delimiter):
        return None
    names = [str(at) for at in range(len(shape.names))]
    kept = names if quotes or wanted is None else [str(at) for at, name in enumerate(shape.names) if name in wanted]
    try:
        table = csv.read_csv(
            pyarrow.py_buffer(text),
            csv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=names),
            csv.ParseOptions(
                delimiter=shape.delimiter,
                quote_char='"' if quotes else False,
                double_quote=False,
                ignore_empty_lines=False,
            ),
            csv.ConvertOptions(
                column_types=dict.fromkeys(names, pyarrow.string()), strings_can_be_null=False, include_columns=kept
            ),
        )
    except pyarrow.ArrowInvalid:
        return None
    if table.num_rows != lines:
        return None
    columns = {shape.names[int(name)]: table[name].combine_chunks() for name in kept}
    if quotes:  # all of them must have been around fields
        size = sum(compute.sum(compute.binary_length(cells)).as_py() for cells in columns.values())
        if size + quotes + len(names) * lines - 1 != len(text):
            return None
    return {name: CellColumn(cells) for name, cells in columns.items() if wanted is None or name in wanted}
