"""The files that tables of jobs come in: text with a delimiter, Parquet, and JSON."""

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import orjson

from shadowtime.shared.accounting import (
    OddRows,
    Reading,
    RowReader,
    Shape,
    beginning_of,
    lines_of,
    whole_contents,
)
from shadowtime.shared.bounds import MAX_LINES, MAX_LOG_SIZE
from shadowtime.shared.errors import TraceError
from shadowtime.shared.quoting import quote

if TYPE_CHECKING:
    import pyarrow

PARQUET = b"PAR1"
"""First bytes of a Parquet file."""

BATCH = 65_536
"""Rows read at a time."""

MAX_JSON = 2**29
"""Largest JSON file in bytes, unpacked, that is not a line for each row. It takes several times this memory."""

DELIMITERS = (",", ";", "\t", "|")

IsRow = Callable[[Mapping[str, Any]], bool]
"""A function that returns whether the values of a row, by column, are of their kinds."""


class TableBlock(NamedTuple):
    """Some rows of a table: the line of each, and the cells of each column."""

    lines: Sequence[int]
    columns: Mapping[str, Sequence[Any]]


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

    def blocks(self, is_row: IsRow, odd: OddRows) -> Iterator[TableBlock]:
        """Yield the rows. Damaged ones are counted as odd."""
        ...


def table_file(path: Path, reading: Reading) -> TableFile:
    """Return the table in a file.

    Raises
    ------
    TraceError
        If the file cannot be read or is no table.
    """
    beginning = beginning_of(path)
    if beginning.startswith(PARQUET):
        return _ParquetFile(path)
    if beginning.lstrip()[:1] in (b"[", b"{"):
        return _JsonLines(path) if _is_lines(beginning) else _JsonFile(path)
    return _TextFile(path, beginning, reading)


def delimiter_of(line: str) -> str:
    """Return the most frequent delimiter of a line.

    >>> delimiter_of("job;submit;start"), delimiter_of("job,submit;x,start")
    (';', ',')
    """
    return max(DELIMITERS, key=line.count)


class _TextFile:
    def __init__(self, path: Path, beginning: bytes, reading: Reading) -> None:
        self._path = path
        lines = [line.decode(errors="surrogateescape") for line in beginning.splitlines()]
        self._skipped = next((at for at, line in enumerate(lines) if line.strip()), 0)
        head = lines[self._skipped] if lines else ""
        delimiter = reading.delimiter or delimiter_of(head)
        names = Shape((), delimiter, quoted=True).split(head)
        if reading.fields:
            self._skipped -= names != list(reading.fields)
            names = list(reading.fields)
        names = [name.strip() for name in names]
        if not names[-1]:  # a delimiter at the end of each line
            names.pop()
        self.names = names
        self._shape = Shape(names, delimiter, quoted=True)
        first = next((line for line in lines[self._skipped + 1 :] if line.strip()), "")
        self.values: Sequence[str] = self._shape.split(first) if first else ()

    def blocks(self, is_row: IsRow, odd: OddRows) -> Iterator[TableBlock]:
        reader = RowReader(self._shape, lambda fields: is_row(dict(zip(self.names, fields, strict=True))), odd)
        last, to_skip = 0, self._skipped + 1
        for block in lines_of(self._path):
            lines = [(number, line.decode(errors="surrogateescape")) for number, line in enumerate(block, last + 1)]
            yield from self._block(*reader.take(lines[max(to_skip - last, 0) :]))
            last += len(block)
        numbers, rows, cut = reader.finish()
        yield from self._block(numbers, rows)
        if cut is not None:
            odd.add(cut[0], f"cut off: {quote(cut[1])}")

    def _block(self, numbers: list[int], rows: list[list[str]]) -> Iterator[TableBlock]:
        if rows:
            yield TableBlock(numbers, dict(zip(self.names, map(list, zip(*rows, strict=True)), strict=True)))


class _ParquetFile:
    def __init__(self, path: Path) -> None:
        try:
            from pyarrow import parquet  # here, since this import takes a third of a second
        except ModuleNotFoundError:
            raise TraceError(f"{path}: to read Parquet, pip install 'shadowtime[frames]'") from None
        if path.stat().st_size > MAX_LOG_SIZE:
            raise TraceError(f"{path}: the log is too large; the maximum is {MAX_LOG_SIZE:,} bytes")
        self._path = path
        with _ArrowErrors(path), parquet.ParquetFile(path) as packed:
            self.names: Sequence[str] = packed.schema_arrow.names
            batch = next(packed.iter_batches(batch_size=1), None)
            self.values: Sequence[str] = (
                () if batch is None else [str(column.to_pylist()[0]) for column in batch.columns if len(column)]
            )

    def blocks(self, is_row: IsRow, odd: OddRows) -> Iterator[TableBlock]:
        from pyarrow import parquet

        last = 0
        with _ArrowErrors(self._path), parquet.ParquetFile(self._path) as packed:
            for batch in packed.iter_batches(batch_size=BATCH):
                columns = {name: _cells(column) for name, column in zip(self.names, batch.columns, strict=True)}
                yield TableBlock(range(last + 1, last + 1 + batch.num_rows), columns)
                last += batch.num_rows
                if last > MAX_LINES:
                    raise TraceError(f"{self._path}: a table has at most {MAX_LINES:,} rows")


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


def _cells(column: "pyarrow.Array") -> list[Any]:
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
    return list(column.to_pylist())


def _is_lines(beginning: bytes) -> bool:
    """Return whether a JSON file has an object on each line."""
    line = beginning.lstrip().partition(b"\n")[0]
    try:
        return isinstance(orjson.loads(line), dict) and b"\n" in beginning.strip()
    except orjson.JSONDecodeError:
        return False


def _from_objects(rows: Sequence[tuple[int, Mapping[str, Any]]], names: Sequence[str]) -> TableBlock:
    return TableBlock([line for line, _ in rows], {name: [row.get(name) for _, row in rows] for name in names})


class _JsonLines:
    def __init__(self, path: Path) -> None:
        self._path = path
        first = next(self._rows(OddRows()), None)
        self.names: list[str] = list(dict.fromkeys(name for _, row in first or () for name in row))
        self.values = [str(first[0][1].get(name, "")) for name in self.names] if first else []

    def blocks(self, is_row: IsRow, odd: OddRows) -> Iterator[TableBlock]:
        for rows in self._rows(odd):
            yield TableBlock(
                [line for line, _ in rows], {name: [row.get(name) for _, row in rows] for name in self.names}
            )

    def _rows(self, odd: OddRows) -> Iterator[list[tuple[int, dict[str, Any]]]]:
        last = 0
        for block in lines_of(self._path):
            rows: list[tuple[int, dict[str, Any]]] = []
            for number, line in enumerate(block, last + 1):
                try:
                    row = orjson.loads(line) if line.strip() else None
                except orjson.JSONDecodeError:
                    row = line
                if isinstance(row, dict):
                    rows.append((number, row))
                elif row is not None:
                    odd.add(number, f"no object of JSON: {quote(line.decode(errors='replace'))}")
            last += len(block)
            if rows:
                yield rows


class _JsonFile:
    """A list of objects, or what pandas writes with `orient` as `columns`, `split` or `table`."""

    def __init__(self, path: Path) -> None:
        try:
            content = orjson.loads(whole_contents(path, MAX_JSON))
        except orjson.JSONDecodeError as error:
            raise TraceError(f"{path}: cannot be read as JSON: {error}") from None
        if isinstance(content, dict) and isinstance(content.get("data"), list):
            names = content.get("columns")
            content = (
                [dict(zip(names, row, strict=False)) for row in content["data"] if isinstance(row, list)]
                if isinstance(names, list) and all(isinstance(name, str) for name in names)
                else content["data"]
            )
        elif isinstance(content, dict) and content and all(isinstance(cells, dict) for cells in content.values()):
            keys = dict.fromkeys(key for cells in content.values() for key in cells)
            content = [{name: cells.get(key) for name, cells in content.items()} for key in keys]
        if not isinstance(content, list) or not any(isinstance(row, dict) for row in content):
            raise TraceError(f"{path}: expected a table in JSON: a list of objects, or an object on each line")
        self._rows: list[Any] = content
        self.names = list(dict.fromkeys(name for row in content[:BATCH] if isinstance(row, dict) for name in row))
        first = next(row for row in content if isinstance(row, dict))
        self.values = [str(first.get(name, "")) for name in self.names]

    def blocks(self, is_row: IsRow, odd: OddRows) -> Iterator[TableBlock]:
        for first in range(0, len(self._rows), BATCH):
            numbered = list(enumerate(self._rows[first : first + BATCH], first + 1))
            rows = [(number, row) for number, row in numbered if isinstance(row, dict)]
            for number, row in numbered:
                if not isinstance(row, dict):
                    odd.add(number, f"no object of JSON: {quote(str(row))}")
            yield TableBlock(
                [line for line, _ in rows], {name: [row.get(name) for _, row in rows] for name in self.names}
            )
