"""The formats of files with tables of jobs: text with a delimiter, Parquet, and JSON."""

import re
import zlib
from collections.abc import Callable, Container, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shadowtime.shared.accounting import (
    CellColumn,
    OddRows,
    Reading,
    RowReader,
    Shape,
    beginning_of,
    columns_of_text,
    files_of,
    lines_of,
)
from shadowtime.shared.accounting.tables.blocks import BATCH, IsRow, TableBlock, TableFile
from shadowtime.shared.accounting.tables.json_tables import JsonLinesTable, JsonTable, is_json_lines
from shadowtime.shared.bounds import MAX_LINES, MAX_LOG_SIZE
from shadowtime.shared.errors import TraceError
from shadowtime.shared.quoting import quote

if TYPE_CHECKING:
    import pyarrow

PARQUET = b"PAR1"
"""First bytes of a Parquet file."""

DELIMITERS = (",", ";", "\t", "|")

LEAST_COLUMNS = 4
"""The number of columns that a table has at least. A first line with fewer is a title."""

ROWS_WITH_NAMES = 20
"""The number of rows that show whether rows have names."""

_SEPARATOR = re.compile(r"sep=.\Z", re.IGNORECASE)
"""A first line that states the delimiter for a spreadsheet."""


def table_file(path: Path, reading: Reading) -> TableFile:
    """Return the table in a file.

    Raise `TraceError` if the file cannot be read or is no table.
    """
    beginning = beginning_of(path)
    if beginning.startswith(PARQUET):
        return _parquet_table(path)
    if beginning.lstrip()[:1] in (b"[", b"{"):
        return JsonLinesTable(path) if is_json_lines(beginning) else JsonTable(path)
    return _TextFile(path, beginning, reading)


def delimiter_of(line: str) -> str:
    """Return the most frequent delimiter of a line.

    >>> delimiter_of("job;submit;start"), delimiter_of("job,submit;x,start")
    (';', ',')
    """
    return max(DELIMITERS, key=line.count)


def head_at(lines: Sequence[str]) -> int:
    """Return the index of the line with the names of columns: the first one, or one behind a title or comments.

    >>> [head_at(lines) for lines in (["# by eve", "", "job,submit", "1,2"], ["# job,submit", "1,2"], ["sep=;", "a;b"])]
    [2, 0, 1]
    >>> head_at(["Jobs of 2026, all queues", "", "job,submit,start,end", "1,2,3,4"])
    2
    """
    there = [at for at, line in enumerate(lines) if line.strip() and not _SEPARATOR.match(line)]
    plain = [at for at in there if not lines[at].startswith("#")]
    wide = (at for at in plain if lines[at].count(delimiter_of(lines[at])) >= LEAST_COLUMNS - 1)
    first = next(wide, next(iter(plain), None))
    if first is None:
        return there[0] if there else 0
    count = len(lines[first].split(delimiter_of(lines[first])))
    named = [at for at in there if at < first and len(lines[at].split(delimiter_of(lines[first]))) == count > 1]
    return named[-1] if named else first


class _TextFile:
    """Text with a delimiter. Other files may be appended, with their own heads and orders of columns."""

    def __init__(self, path: Path, beginning: bytes, reading: Reading) -> None:
        self._path = path
        lines = [line.decode(errors="surrogateescape") for line in beginning.splitlines()]
        self._skipped = head_at(lines)
        head = lines[self._skipped] if lines else ""
        self._head = head.encode(errors="surrogateescape")
        self.delimiter = reading.delimiter or delimiter_of(head)
        self._has_row_names = False
        names = self._names_in(head)
        if reading.fields:
            if names != list(reading.fields):  # it is a row
                self._skipped -= 1
                self._head = b""
            names = list(reading.fields)
        rows = list(filter(str.strip, lines[self._skipped + 1 :]))
        if self._head and _has_row_names(rows, self.delimiter, len(names)):
            self._has_row_names = True
            names.insert(0, "")
        self.names: Sequence[str] = names
        self._shape = Shape(names, self.delimiter, quoted=True)
        self.values: Sequence[str] = self._shape.split(rows[0]) if rows else ()

    def _names_in(self, head: str) -> list[str]:
        names = [name.strip() for name in Shape((), self.delimiter, quoted=True).split(head.removeprefix("#"))]
        if not names[-1]:  # a delimiter at the end of each line
            names.pop()
        return ["", *names] if self._has_row_names else names

    def blocks(self, is_row: IsRow, odd: OddRows, wanted: Container[str]) -> Iterator[TableBlock]:
        def new_reader() -> RowReader:
            names = self._shape.names
            return RowReader(self._shape, lambda fields: is_row(dict(zip(names, fields, strict=True))), odd)

        needed = [name for name in self.names if name in wanted]
        reader, last, to_skip = new_reader(), 0, self._skipped + 1
        for block in lines_of(self._path):
            skipped, to_skip = min(to_skip, len(block)), max(to_skip - len(block), 0)
            block, last, begin = block[skipped:], last + skipped, 0
            text = b"\n".join(block)
            for at, names in self._heads_in(block, text, last, needed):
                yield from self._rows(reader, last + begin, block[begin:at], b"\n".join(block[begin:at]), wanted)
                begin, text = at + 1, b"\n".join(block[at + 1 :])
                if names != self._shape.names:
                    yield from self._finish(reader, odd)
                    self._shape = self._shape._replace(names=names)
                    reader = new_reader()
            yield from self._rows(reader, last + begin, block[begin:], text, wanted)
            last += len(block)
        yield from self._finish(reader, odd)

    def _heads_in(
        self, block: list[bytes], text: bytes, last: int, needed: Sequence[str]
    ) -> Iterator[tuple[int, list[str]]]:
        """Yield the index and the names of each head of an appended file.

        Raise `TraceError` for a head that lacks a needed column.
        """
        longest = sorted(needed, key=len)[-2:]  # the least frequent in rows; one of them may be missing
        marks = [name.encode(errors="surrogateescape") for name in longest]
        if not self._head or not any(mark in text for mark in marks):
            return
        for at, line in enumerate(block):
            if not any(mark in line for mark in marks):
                continue
            names = self._names_in(line.decode(errors="surrogateescape"))
            missing = [name for name in needed if name not in names]
            if not missing:
                yield at, names
            elif len(missing) < len(needed) // 2:
                raise TraceError(
                    f"{self._path}, line {last + at + 1}: another head, without the column {quote(missing[0])}, which "
                    "the first head has; read files with different columns one by one"
                )

    def _rows(
        self, reader: RowReader, last: int, block: list[bytes], text: bytes, wanted: Container[str]
    ) -> Iterator[TableBlock]:
        regular = None if reader.waits else columns_of_text(text, len(block), self._shape, wanted)
        if regular is not None:
            yield TableBlock(np.arange(last + 1, last + 1 + len(block)), regular)
            return
        lines = [(number, line.decode(errors="surrogateescape")) for number, line in enumerate(block, last + 1)]
        yield from self._block(*reader.take(lines))

    def _finish(self, reader: RowReader, odd: OddRows) -> Iterator[TableBlock]:
        numbers, rows, cut = reader.finish()
        yield from self._block(numbers, rows)
        if cut is not None:
            odd.add(cut[0], f"cut off: {quote(cut[1])}")

    def _block(self, numbers: list[int], rows: list[list[str]]) -> Iterator[TableBlock]:
        if rows:
            columns = map(CellColumn, zip(*rows, strict=True))
            yield TableBlock(np.array(numbers, dtype=np.int64), dict(zip(self._shape.names, columns, strict=True)))


def _has_row_names(rows: Sequence[str], delimiter: str, columns: int) -> bool:
    """Return whether rows begin with their numbers in quotes, which have no column in the head, as R writes them.

    >>> _has_row_names(['"1",4,60', '"2",8,90'], ",", 2), _has_row_names(["1,4,60"], ",", 2)
    (True, False)
    """
    shape = Shape([""] * (columns + 1), delimiter, quoted=True)
    return bool(rows) and all(
        row.startswith(f'"{number}"{delimiter}') and len(shape.split(row)) == columns + 1
        for number, row in enumerate(rows[:ROWS_WITH_NAMES], 1)
    )


class _ArrowTable:
    """A table in batches of columns. `batches` yields the table from its beginning, at most so many rows at a time."""

    def __init__(
        self, path: Path, names: Sequence[str], batches: "Callable[[int], Iterator[pyarrow.RecordBatch]]"
    ) -> None:
        self._path = path
        self.delimiter = ""
        self._batches = batches
        self.names: Sequence[str] = names
        with _ArrowErrors(path):
            batch = next(batches(1), None)
            first = [column.to_pylist()[0] for column in batch.columns if len(column)] if batch is not None else ()
            self.values: Sequence[str] = [str(_decoded(cell)) for cell in first]

    def blocks(self, is_row: IsRow, odd: OddRows, wanted: Container[str]) -> Iterator[TableBlock]:
        last = 0
        with _ArrowErrors(self._path):
            for batch in self._batches(BATCH):
                there = dict(zip(batch.schema.names, batch.columns, strict=True))
                needed = [name for name in self.names if name in wanted]
                if missing := [name for name in needed if name not in there]:
                    raise TraceError(
                        f"{self._path}: a later file has no column {quote(missing[0])}, which the first one has; read "
                        "files with different columns one by one"
                    )
                columns = {name: CellColumn(_cells(there[name])) for name in needed}
                yield TableBlock(np.arange(last + 1, last + 1 + batch.num_rows), columns)
                last += batch.num_rows
                if last > MAX_LINES:
                    raise TraceError(f"{self._path}: a table has at most {MAX_LINES:,} rows; split it")


def _parquet_table(path: Path) -> TableFile:
    try:
        from pyarrow import parquet  # here, since this import takes a third of a second
    except ModuleNotFoundError:
        raise TraceError(f"{path}: to read Parquet, pip install 'shadowtime[frames]'") from None
    files = files_of(path)
    files = [file for file in files if not file.name.startswith("_")] or files  # Spark adds _SUCCESS and _metadata
    if sum(file.stat().st_size for file in files) > MAX_LOG_SIZE:
        raise TraceError(f"{path}: a log has at most {MAX_LOG_SIZE:,} bytes; split it")

    def batches(rows: int) -> "Iterator[pyarrow.RecordBatch]":
        for file in files:
            with _ArrowErrors(file), parquet.ParquetFile(file) as packed:
                yield from packed.iter_batches(batch_size=rows, columns=names)

    with _ArrowErrors(files[0]), files[0].open("rb") as file:
        if file.read(len(PARQUET)) != PARQUET:
            raise TraceError(f"{files[0]}: this is a packed Parquet file; unpack it first")
    with _ArrowErrors(files[0]), parquet.ParquetFile(files[0]) as packed:
        names = packed.schema_arrow.names
    return _ArrowTable(path, names, batches)


FRAME = Path("the data frame")
"""The name, in messages, of a table that is not a file."""


def frame_table(frame: Any) -> TableFile:
    """Return the table in a data frame of pandas, polars or pyarrow.

    Raises
    ------
    TraceError
        If it is no data frame.
    ImportError
        If pyarrow is not installed.
    """
    try:
        import pyarrow
    except ModuleNotFoundError:
        raise ImportError(
            "data frames need pyarrow, which is not installed: pip install 'shadowtime[frames]'"
        ) from None

    if not any(hasattr(frame, name) for name in ("columns", "column_names", "keys")):
        raise TraceError(
            f"expected the path of a log, or a data frame of pandas, polars or pyarrow; found {quote(repr(frame))}"
        )
    try:
        if hasattr(frame, "to_arrow"):  # polars
            frame = frame.to_arrow()
        table = frame if isinstance(frame, pyarrow.Table) else pyarrow.table(frame)
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        reason = "; ".join(map(str, reversed(error.args))).partition("\n")[0]
        raise TraceError(f"{FRAME}: cannot be read as a table: {reason}") from error
    return _ArrowTable(FRAME, table.column_names, lambda rows: iter(table.to_batches(max_chunksize=rows)))


class _ArrowErrors:
    """Context in which an error of pyarrow becomes one that names the file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        import pyarrow

        kinds = (pyarrow.ArrowException, OSError, EOFError, zlib.error, ValueError, ArithmeticError, LookupError)
        if isinstance(error, kinds):
            first = (str(error) or type(error).__name__).splitlines()[0]
            raise TraceError(f"{self._path}: cannot be read as a table: {first}") from error


def _cells(column: "pyarrow.Array") -> Any:
    """Return the cells of a column. Timestamps become Unix seconds, or dates if they have no time zone."""
    import pyarrow
    from pyarrow import compute

    if pyarrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pyarrow.types.is_timestamp(column.type):
        if column.type.tz is None:
            return list(
                compute.strftime(column.cast(pyarrow.timestamp("s"), safe=False), "%Y-%m-%dT%H:%M:%S").to_pylist()
            )
        return list(column.cast(pyarrow.timestamp("s", "UTC"), safe=False).cast(pyarrow.int64()).to_pylist())
    if pyarrow.types.is_duration(column.type):
        seconds = column.cast(pyarrow.duration("s"), safe=False).cast(pyarrow.int64()).to_pylist()
        return [None if cell is None else timedelta(seconds=cell) for cell in seconds]
    plain = (pyarrow.types.is_string(column.type) or pyarrow.types.is_integer(column.type)) and not column.null_count
    return column if plain else list(map(_decoded, column.to_pylist()))


def _decoded(cell: Any) -> Any:
    """Return a text for bytes, with which Hive and Impala write texts; other cells unchanged."""
    return cell.decode(errors="surrogateescape") if isinstance(cell, bytes) else cell
