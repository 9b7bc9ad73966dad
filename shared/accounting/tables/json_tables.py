"""Tables in JSON: a list of objects, an object on each line, or what pandas writes."""

import json
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from shadowtime.shared.accounting import NAMES, CellColumn, OddRows, lines_of, whole_contents
from shadowtime.shared.accounting.tables.blocks import BATCH, IsRow, TableBlock
from shadowtime.shared.bounds import MAX_JSON
from shadowtime.shared.errors import TraceError
from shadowtime.shared.quoting import quote

_BETWEEN = re.compile(r"[\s,\ufeff]*")
"""The text between two documents that were appended to each other."""


def documents_in(text: bytes) -> list[Any]:
    r"""Return the documents of a text. They may have the numbers `NaN` and `Infinity`, as Python and pandas write them.

    Raise `ValueError` if a document is damaged.

    >>> documents_in(b'[{"limit": NaN}]\n[{"limit": 60}]\n')
    [[{'limit': nan}], [{'limit': 60}]]
    """
    try:
        return [orjson.loads(text)]  # six times as fast as the standard library
    except orjson.JSONDecodeError:
        pass
    documents, whole, decode = list[Any](), text.decode(), json.JSONDecoder().raw_decode
    at = _behind(whole, 0)
    while at < len(whole) or not documents:
        document, end = decode(whole, at)
        documents.append(document)
        at = _behind(whole, end)
    return documents


def _behind(text: str, at: int) -> int:
    match = _BETWEEN.match(text, at)
    return match.end() if match else at


def is_json_lines(beginning: bytes) -> bool:
    """Return whether the first line of a JSON file is an object, and further lines follow."""
    line = beginning.lstrip().partition(b"\n")[0]
    try:
        return isinstance(documents_in(line)[0], dict) and b"\n" in beginning.strip()
    except (ValueError, RecursionError):
        return False


def flat(row: Any) -> Any:
    """Return an object with the values of the objects within it, under names with dots; other values unchanged.

    >>> flat({"id": 7, "times": {"submit": 10}}), flat([7])
    ({'id': 7, 'times.submit': 10}, [7])
    """
    if not isinstance(row, dict) or not any(isinstance(value, dict) for value in row.values()):
        return row
    values: dict[str, Any] = {}
    for name, value in row.items():
        inner = flat(value)
        values |= {f"{name}.{key}": part for key, part in inner.items()} if isinstance(inner, dict) else {name: value}
    return values


def _from_objects(rows: Sequence[tuple[int, Mapping[str, Any]]], names: Sequence[str]) -> TableBlock:
    columns = {name: CellColumn([row.get(name) for _, row in rows]) for name in names}
    return TableBlock(np.array([line for line, _ in rows], dtype=np.int64), columns)


class JsonLinesTable:
    """A table with an object on each line."""

    delimiter = ""

    def __init__(self, path: Path) -> None:
        self._path = path
        values: dict[str, Any] = {}  # a name may first occur anywhere, if empty values are left out
        for rows in self._rows(OddRows()):
            for _, row in rows:
                if not row.keys() <= values.keys():
                    values = row | values
        self.names: list[str] = list(values)
        self.values = [str(value) for value in values.values()]

    def blocks(self, is_row: IsRow, odd: OddRows, wanted: Container[str]) -> Iterator[TableBlock]:
        """Yield the rows, as `TableFile` does."""
        for rows in self._rows(odd):
            yield _from_objects(rows, [name for name in self.names if name in wanted])

    def _rows(self, odd: OddRows) -> Iterator[list[tuple[int, dict[str, Any]]]]:
        last = 0
        for block in lines_of(self._path):
            rows: list[tuple[int, dict[str, Any]]] = []
            for number, line in enumerate(block, last + 1):
                try:
                    (row,) = documents_in(line) if line.strip() else (None,)
                except (ValueError, RecursionError):
                    row = line
                if isinstance(row, dict):
                    rows.append((number, flat(row)))
                elif row is not None:
                    odd.add(number, f"not a JSON object: {quote(line.decode(errors='replace'))}")
            last += len(block)
            if rows:
                yield rows


class JsonTable:
    """A list of objects, alone or the only list in an object, or the output of pandas with any `orient`.

    If each row is an object within an object, its key is its job number, unless the row states one.
    """

    delimiter = ""

    def __init__(self, path: Path) -> None:
        try:
            documents = documents_in(whole_contents(path, MAX_JSON))
        except (ValueError, RecursionError) as error:
            raise TraceError(f"{path}: cannot be read as JSON: {error}") from None
        tables = list(map(_table_in, documents))
        content = [flat(row) for table in tables if isinstance(table, list) for row in table]
        if not all(isinstance(table, list) for table in tables):  # not tables, but rows
            content = list(map(flat, documents)) if len(documents) > 1 else []
        if not any(isinstance(row, dict) for row in content):
            shown = ", ".join(map(quote, [*documents[0]][:10])) if isinstance(documents[0], dict) else ""
            raise TraceError(
                f"{path}: expected a table in JSON: a list of objects, or an object on each line"
                + (f"; it is an object with {shown}" if shown else "")
            )
        self._rows: list[Any] = content
        self.names = list(dict.fromkeys(name for row in content if isinstance(row, dict) for name in row))
        first = next(row for row in content if isinstance(row, dict))
        self.values = [str(first.get(name, "")) for name in self.names]

    def blocks(self, is_row: IsRow, odd: OddRows, wanted: Container[str]) -> Iterator[TableBlock]:
        """Yield the rows, as `TableFile` does."""
        for first in range(0, len(self._rows), BATCH):
            numbered = list(enumerate(self._rows[first : first + BATCH], first + 1))
            rows = [(number, row) for number, row in numbered if isinstance(row, dict)]
            for number, row in numbered:
                if not isinstance(row, dict):
                    odd.add(number, f"not a JSON object: {quote(str(row))}")
            yield _from_objects(rows, [name for name in self.names if name in wanted])


def _table_in(content: Any) -> Any:
    """Return the list of rows that a document is, or that pandas has written in another form; else the document."""
    if not isinstance(content, dict):
        return content
    if isinstance(content.get("data"), list):
        names = content.get("columns")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            return content["data"]
        return [dict(zip(names, row, strict=False)) for row in content["data"] if isinstance(row, list)]
    if content and all(isinstance(cells, dict) for cells in content.values()):
        keys = dict.fromkeys(key for cells in content.values() for key in cells)
        by_row = not {*NAMES} & content.keys() and ({*NAMES} & keys.keys() or len(keys) <= len(content))
        if not by_row or all(map(str.isdecimal, keys)):
            return [{name: cells.get(key) for name, cells in content.items()} for key in keys]
        return [{"job_number": job, **of_job} for job, of_job in content.items()]
    lists = [rows for rows in content.values() if isinstance(rows, list) and rows and isinstance(rows[0], dict)]
    return lists[0] if len(lists) == 1 else content
