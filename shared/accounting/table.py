"""Tables of jobs, comma-separated or Parquet. The columns may have any names."""

import gzip
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, timedelta
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shadowtime.shared.accounting.durations import seconds_of
from shadowtime.shared.accounting.instants import NOT_SET, Instants, whole_number, zone_of
from shadowtime.shared.accounting.reading import NUMBERS, TEXTS, UNKNOWN, AccountingRows, Reading
from shadowtime.shared.accounting.sacct import GOING_ON, STATES
from shadowtime.shared.accounting.text_file import GZIP, first_lines
from shadowtime.shared.bounds import MAX_DURATION, MAX_INTEGER, MAX_LINE_LENGTH, MAX_LINES, MAX_LOG_SIZE
from shadowtime.shared.errors import SettingsError, TraceError
from shadowtime.shared.quoting import quote

if TYPE_CHECKING:
    import pyarrow

PARQUET = b"PAR1"
"""First bytes of a Parquet file."""

INSTANTS = ("submit", "eligible", "start", "end", "handed_in")
SPANS = ("run_time", "suspended", "limit")
NAMES = (*NUMBERS, "wait", "handed_in", "state", *TEXTS)
"""Names that `--columns` accepts."""

REQUIRED = ("submit", "limit", "processors")

OTHERWISE = {
    "submit": "submit_time",
    "wait": "wait_time",
    "limit": "requested_time",
    "user": "user_id",
    "account": "group_id",
    "job_name": "executable_number",
    "partition": "queue_number",
    "qos": "qos_number",
}
"""Alternative names of columns, as in the tables that `convert` writes."""

NONE = str(UNKNOWN)

_DECIMAL = re.compile(r"[0-9]{1,16}(\.[0-9]{0,9})?\Z")

BATCH = 65_536
"""Rows read at a time."""

NAME = "table"


def begins(head: bytes) -> bool:
    """Return whether a file with this beginning is a table, Parquet or comma-separated."""
    return head.startswith(PARQUET) or b"," in first_lines(head)[0]


def parse_columns(texts: Iterable[str]) -> dict[str, str]:
    """Return the columns by our names, from texts such as `submit=submitted_at,limit=wanted`.

    Raises `SettingsError` if a text is malformed, or a name is unknown or has two columns.

    >>> parse_columns(["submit=submitted_at,limit=wanted"])
    {'submit': 'submitted_at', 'limit': 'wanted'}
    """
    mapping: dict[str, str] = {}
    for text in texts:
        for pair in text.split(","):
            name, equals, column = pair.partition("=")
            if not equals or not column or name not in NAMES:
                raise SettingsError(f"--columns {quote(pair)}: expected NAME=COLUMN, NAME one of {', '.join(NAMES)}")
            if mapping.setdefault(name, column) != column:
                raise SettingsError(f"--columns: {name} is given twice")

    return mapping


def read(path: Path, reading: Reading) -> AccountingRows:
    """Return the jobs of a table, one for each row.

    A column has the name in `reading.columns`, or else our own name. Instants are Unix times in seconds, dates or
    timestamps. Spans are seconds or [DAYS-]HOURS:MINUTES:SECONDS. An empty limit means no limit.

    Raises
    ------
    TraceError
        If the table cannot be read, lacks a column, or has a value of the wrong kind. The message names the
        column and the row.

    References
    ----------
    docs/accounting.md#tables.
    """
    import pyarrow  # here, since this import takes a third of a second

    rows, instants = AccountingRows(), Instants(zone_of(reading.time_zone))
    try:
        batches = _batches(path)
        first = True
        last = 1
        for batch in batches:
            if first:
                named = _named(path, batch.schema.names, reading.columns)
                first = False
            columns = {name: batch.column(column) for name, column in named.items()}
            _take(path, rows, last, columns, instants)
            last += batch.num_rows
            if last > MAX_LINES:
                raise TraceError(f"{path}: a table has at most {MAX_LINES:,} rows")
    except (pyarrow.ArrowException, OSError, EOFError, zlib.error, ValueError, ArithmeticError, LookupError) as error:
        raise TraceError(
            f"{path}: cannot be read as a table: {(str(error) or type(error).__name__).splitlines()[0]}"
        ) from error

    if first:
        raise TraceError(f"{path}: the table has no rows")
    if instants.assumed:
        rows.notes.append("its dates tell no time zone: taken for UTC; see --time-zone")
    return rows


def _batches(path: Path) -> "Iterator[pyarrow.RecordBatch]":
    if path.stat().st_size > MAX_LOG_SIZE:
        raise TraceError(f"{path}: the log is too large; the maximum is {MAX_LOG_SIZE:,} bytes")
    with path.open("rb") as raw:
        begins = raw.read(len(PARQUET))
    if begins == PARQUET:
        from pyarrow import parquet

        with parquet.ParquetFile(path) as packed:
            yield from packed.iter_batches(batch_size=BATCH)
        return

    import pyarrow
    from pyarrow import csv

    unpacking = gzip.open if begins.startswith(GZIP) else open
    with unpacking(path, "rb") as file:
        names = csv.read_csv(pyarrow.py_buffer(file.readline(MAX_LINE_LENGTH))).schema.names
        file.seek(0)
        as_text = csv.ConvertOptions(column_types=dict.fromkeys(names, pyarrow.string()), strings_can_be_null=False)
        several = csv.ParseOptions(newlines_in_values=True)
        with csv.open_csv(file, convert_options=as_text, parse_options=several) as batches:
            yield from batches


def _named(path: Path, there: list[str], mapping: Mapping[str, str]) -> dict[str, str]:
    """Return the table's columns by our names. Names without a column are absent."""
    for name in mapping:
        if name not in NAMES:
            raise SettingsError(f"columns: unknown name {quote(name)}; known: {', '.join(NAMES)}")
    if twice := {column for column in there if there.count(column) > 1}:
        raise TraceError(f"{path}: column {quote(min(twice))} occurs twice")
    for name, column in mapping.items():
        if column not in there:
            raise TraceError(f"{path}: no column {quote(column)} for {name}; it has {', '.join(map(quote, there))}")
    ours = {name: name if name in there else OTHERWISE.get(name, name) for name in NAMES} | dict(mapping)
    named = {name: column for name, column in ours.items() if column in there}
    missing = [name for name in REQUIRED if name not in named]
    if not {"start", "wait"} & set(named) or not {"end", "run_time"} & set(named):
        missing.append("start or wait" if "end" in named or "run_time" in named else "end or run_time")
    if missing:
        options = ", ".join(f"{name}=COLUMN" for name in missing)
        raise TraceError(f"{path}: no column for {', '.join(missing)}; give --columns {options}")
    return named


def _take(
    path: Path, rows: AccountingRows, last: int, columns: "Mapping[str, pyarrow.Array]", instants: Instants
) -> None:
    def values(name: str) -> list[int]:
        parse = _instant if name in INSTANTS else _span if (name in SPANS or name == "wait") else _number
        return _parsed(path, name, columns[name], last, lambda value: parse(value, instants))

    count = len(next(iter(columns.values())))
    numbers = {name: values(name) for name in (*NUMBERS, "wait", "handed_in") if name in columns}
    if "limit" in numbers:
        numbers["limit"] = [MAX_DURATION if number == UNKNOWN else number for number in numbers["limit"]]
    numbers.setdefault("job_number", list(range(last, last + count)))
    if handed_in := numbers.pop("handed_in", None):
        numbers["eligible"] = numbers["submit"]
        pairs = zip(handed_in, numbers["submit"], strict=True)
        numbers["submit"] = [since if first == UNKNOWN else first for first, since in pairs]

    if eligible := numbers.get("eligible"):
        pairs = zip(eligible, numbers["submit"], strict=True)
        numbers["eligible"] = [first if since == UNKNOWN else since for since, first in pairs]
    if (waits := numbers.pop("wait", None)) and "start" not in numbers:
        since = numbers.get("eligible", numbers["submit"])
        numbers["start"] = [UNKNOWN if UNKNOWN in part else sum(part) for part in zip(since, waits, strict=True)]
    if "end" not in numbers:
        stopped = [max(number, 0) for number in numbers.get("suspended", [0] * count)]
        parts = zip(numbers["start"], numbers["run_time"], stopped, strict=True)
        numbers["end"] = [UNKNOWN if UNKNOWN in part else sum(part) for part in parts]

    states = (
        [str(state or "").split(" ")[0].upper() for state in columns["state"].to_pylist()] if "state" in columns else []
    )
    if states:
        numbers["status"] = [STATES.get(state, UNKNOWN) for state in states]
    for row, state in enumerate(states):
        if state in GOING_ON:
            numbers["end"][row] = UNKNOWN
    words = {name: list(map(_word, columns[name].to_pylist())) for name in TEXTS if name in columns}
    rows.extend(range(last + 1, last + count + 1), numbers, words)


def _parsed(path: Path, name: str, column: Any, last: int, parse: Any) -> list[int]:
    cells = column.to_pylist()
    values = [parse(cell) for cell in cells]
    if None in values:
        row = values.index(None)
        raise TraceError(f"{path}, row {last + row}: {name} is {quote(str(cells[row]))}, which is {EXPECTED[name]}")
    return values


EXPECTED = {
    **dict.fromkeys(INSTANTS, "not a time: neither a Unix time in seconds nor a date"),
    **dict.fromkeys((*SPANS, "wait"), "not a duration"),
} | {name: "not a whole number" for name in NUMBERS if name not in (*INSTANTS, *SPANS)}


def _word(value: object) -> str:
    return "" if value in (None, UNKNOWN, NONE) else str(value)


def _instant(value: object, instants: Instants) -> int | None:
    if isinstance(value, date):
        return instants(value.isoformat())
    if isinstance(value, str) and not _DECIMAL.match(value):
        return instants(value)
    return _number(value, instants)


def _span(value: object, instants: Instants) -> int | None:
    if isinstance(value, timedelta):
        return int(value.total_seconds())
    if isinstance(value, str) and not _DECIMAL.match(value) and value != NONE:
        if value.strip().lower() in NOT_SET:
            return UNKNOWN
        return MAX_DURATION if value.upper() == "UNLIMITED" else seconds_of(value)
    return _number(value, instants)


def _number(value: object, _: Instants) -> int | None:
    """Return a whole number, without fractions of a second; `UNKNOWN` if missing, None if it is no valid number."""
    if value in (None, "", NONE) or value is False:
        return UNKNOWN
    if isinstance(value, str):
        number = whole_number(value.split(".")[0]) if _DECIMAL.match(value) else None
    elif isinstance(value, float | Decimal):
        number = None if not isfinite(value) else int(value)
    else:
        number = int(value) if isinstance(value, int) else None

    return number if number is not None and UNKNOWN <= number <= MAX_INTEGER else None
