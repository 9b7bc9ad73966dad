"""Logs in the Standard Workload Format: 18 numbers per job, `; Key: value` in comments."""

import os
import re
import warnings
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from shadowtime.replayer.logs.trace import Trace, trace_name
from shadowtime.shared.accounting import UNREADABLE, OddRows, lines_of
from shadowtime.shared.bounds import MAX_HEADER_SIZE, MAX_INTEGER, MAX_TIME
from shadowtime.shared.errors import TraceError
from shadowtime.shared.kernels import Floats, Integers
from shadowtime.shared.output import result_file

FIELDS = (
    "job_number",
    "submit_time",
    "wait_time",
    "run_time",
    "allocated_processors",
    "average_cpu_time",
    "used_memory",
    "requested_processors",
    "requested_time",
    "requested_memory",
    "status",
    "user_id",
    "group_id",
    "executable_number",
    "queue_number",
    "partition_number",
    "preceding_job_number",
    "think_time",
)
"""Names of the 18 fields, in the order of the format. Times are in seconds."""

BLOCK = 4096
"""Number of jobs that are written at a time."""

MAX_VALUES = np.array([MAX_TIME if name in ("submit_time", "wait_time") else MAX_INTEGER for name in FIELDS])
"""Maximum value of each field. A float represents every integer up to it exactly."""

PARTIAL = (2, 3, 4)
"""Statuses of partial executions of a job: to be continued, the last and completed, the last and failed."""

_HEADER = re.compile(r";\s*([A-Z]\w*)\s*:\s*(.*)$")
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,2})?")
_NUMERIC_BYTES = b"0123456789+-.eE \t\n\v\f"


def read_swf(path: str | os.PathLike[str], *, lenient: bool = False) -> Trace:
    """Read a log in the Standard Workload Format, plain or compressed by gzip, xz, bzip2, zstd or zip.

    Parameters
    ----------
    path : str or os.PathLike
        Path of the file. Its first bytes show the compression. Its name without `.swf` and a suffix such as `.gz`
        becomes the name of the trace.
    lenient : bool
        Whether more than a tenth of the job lines may be odd.

    Returns
    -------
    Trace
        Every job of the log, sorted by submit time and job number. Fractions of a second are cut off. A line is odd if
        it is neither a comment nor at least 18 numbers, or if its job number is negative or repeated. Odd lines are
        left out and counted.

    Raise `TraceError` if the file cannot be read, has no job, or too many lines are odd. The error names the file, the
    line and the fault.

    Examples
    --------
    >>> from shadowtime.replayer.logs.trace import BUNDLED
    >>> trace = read_swf(BUNDLED)
    >>> trace.name, trace.processors, trace.table.shape
    ('bundled', 128, (5000, 18))

    References
    ----------
    docs/algorithms.md#sources (SWF 2.2).
    """
    path = Path(path)
    odd = OddRows()
    header, table, notes = read_text(path, odd)
    require_few_odd(path, odd, len(table), lenient=lenient)
    left_out = {UNREADABLE: (odd.count, odd.quoted)} if odd.count else {}
    notes = (odd.note(len(table)), *notes) if odd.count else notes
    order = np.lexsort((table[:, FIELDS.index("job_number")], table[:, FIELDS.index("submit_time")]))
    trace = Trace(trace_name(path), header, table[order], notes, left_out=left_out)
    if trace.unix_start_time == 0 and header.get("UnixStartTime", "").strip("0"):
        dated = "submissions are Unix times, so the UnixStartTime of the header does not count"
        return replace(trace, notes=(*notes, dated))
    return trace


class SwfBlock(NamedTuple):
    """A block of jobs of a log: their line numbers, and their values of shape (n, 18)."""

    lines: Integers
    table: Integers
    longer: int
    """Number of lines with more than 18 values."""


def require_few_odd(path: Path, odd: OddRows, jobs: int, *, lenient: bool) -> None:
    """Raise `TraceError` if a file has no job line, or too many of its lines are odd. `jobs` counts the others."""
    if jobs:
        odd.require_few(path, jobs, lenient=lenient)
        return
    if not odd.count:
        raise TraceError(f"{path}: it has no job line; expected lines of {len(FIELDS)} numbers")
    line, reason = odd.first[0]
    raise TraceError(
        f"{path}, line {line}: {reason}; is this a Standard Workload Format file? If its first line has names of "
        "columns with blanks between them, give --delimiter ' '"
    )


def read_pieces(path: Path, header: dict[str, str], odd: OddRows) -> Iterator[SwfBlock]:
    """Yield the jobs of a log in blocks of several thousand, in the order of the file.

    Add the first value of each `; Key: value` to `header`, and lines that are neither comments nor jobs to `odd`.

    Raise `TraceError` if the file cannot be read, or its header is too large.
    """
    of_header, last = 0, 0
    for lines in lines_of(path):
        for at in [at for at, line in enumerate(lines) if b";" in line or b"#" in line]:
            row = lines[at].strip()
            row = b";" + row[1:] if row.startswith(b"#") else row
            lines[at] = b"" if row.startswith(b";") else _spaced(row)
            if row.startswith(b";") and (match := _HEADER.match(row.decode(errors="replace"))):
                header.setdefault(match[1], match[2] or "")
                of_header += len(row)
                if of_header > MAX_HEADER_SIZE:
                    raise TraceError(
                        f"{path}, line {last + at + 1}: a header has at most {MAX_HEADER_SIZE:,} bytes; shorten it"
                    )

        numbers = np.arange(last + 1, last + 1 + len(lines))
        last += len(lines)
        if not all(map(bytes.strip, lines)):
            numbers = numbers[[at for at, line in enumerate(lines) if line.strip()]]
            lines = list(filter(bytes.strip, lines))
        block = _block(numbers, lines, odd)
        if len(block.table):
            yield block


def read_text(path: Path, odd: OddRows) -> tuple[dict[str, str], Integers, tuple[str, ...]]:
    """Return the header, the (n, 18) table of jobs in the order of the file, and notes on oddities.

    Invalid lines, and lines that repeat a job number, count as `odd`.

    Raise `TraceError` if the file cannot be read.
    """
    header: dict[str, str] = {}
    pieces = list(read_pieces(path, header, odd)) or [_block(np.empty(0, dtype=np.int64), [], odd)]
    lines, whole = (np.concatenate([getattr(piece, name) for piece in pieces]) for name in ("lines", "table"))
    kept, whole, notes = _joined_executions(whole)
    whole = whole[_unique(lines[kept], whole, odd)]
    notes = notes_on(sum(piece.longer for piece in pieces)) + notes
    if unordered := int(np.count_nonzero(np.diff(whole[:, 1]) < 0)):
        notes += (f"{unordered} lines were not in order of submit time",)
    return header, whole, notes


def _joined_executions(table: Integers) -> tuple[Integers, Integers, tuple[str, ...]]:
    """Join the lines of each job that was checkpointed: a summary, and a line for each partial execution.

    The summary counts as the job. Without a summary, the first execution does, with the run time of all executions and
    the outcome of the last one. A summary without a run time gets that of its executions.

    Returns
    -------
    rows
        The row of each job in `table`, shape (jobs,).
    joined
        Table of shape (jobs, 18).
    notes
        A note for the user if lines were joined.

    References
    ----------
    docs/algorithms.md#sources (SWF 2.2, field 11).
    """
    numbers, status = table[:, 0], table[:, FIELDS.index("status")]
    partial = np.isin(status, PARTIAL)
    if not partial.any():
        return np.arange(len(table)), table, ()

    order = np.flatnonzero(np.isin(numbers, numbers[partial]))
    order = order[np.lexsort((partial[order], numbers[order]))]  # the summary first, the rest as in the file
    first = np.flatnonzero(np.r_[True, np.diff(numbers[order]) != 0])
    rows, last = order[first], order[np.r_[first[1:], len(order)] - 1]
    run_time = table[order, FIELDS.index("run_time")]
    run_time = np.add.reduceat(np.where(partial[order], np.maximum(run_time, 0), 0), first)
    joined = table.copy()
    most = np.maximum.reduceat(table[order], first)
    of_first = [FIELDS.index(name) for name in ("submit_time", "wait_time", "run_time", "status")]
    most[:, of_first] = table[rows][:, of_first]
    joined[rows] = np.where(table[rows] < 0, most, table[rows])
    alone = partial[rows]
    at = FIELDS.index("run_time")
    joined[rows, at] = np.where(alone | (table[rows, at] < 0), run_time, table[rows, at])
    joined[rows[alone], FIELDS.index("status")] = np.array([-1, 1, 0])[status[last[alone]] - PARTIAL[0]]
    kept = ~partial
    kept[rows] = True
    lines = int(np.count_nonzero(~kept))
    notes = (f"{lines} lines of partial executions count with their jobs",) if lines else ()
    return np.flatnonzero(kept), joined[kept], notes


def notes_on(longer: int) -> tuple[str, ...]:
    """Return a note for the user if lines had too many fields, else nothing; `longer` counts these lines."""
    if not longer:
        return ()
    return (f"{longer} lines had more than {len(FIELDS)} fields; further fields are ignored",)


def write_swf(path: str | os.PathLike[str], header: Mapping[str, str], table: Integers) -> None:
    """Write a trace in the Standard Workload Format, compressed if the name ends in `.gz`.

    The same contents give the same bytes: no time stamp is stored. The file is written atomically.

    Parameters
    ----------
    path : str or os.PathLike
        File to write or replace.
    header : Mapping[str, str]
        Written as `; Key: value` in its order. Line breaks in a value become spaces.
    table : numpy.ndarray
        (n, 18) integers, -1 if unknown. Columns are as in `FIELDS`, times in seconds.

    Raise `OutputError` if the file cannot be written.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_swf(f"{folder}/one.swf", {"MaxProcs": "4"}, np.arange(18).reshape(1, 18))
    ...     print(Path(folder, "one.swf").read_text(), end="")
    ; MaxProcs: 4
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17

    References
    ----------
    docs/algorithms.md#sources (SWF 2.2).
    """
    with result_file(path) as file:
        write_jobs(file, header, table, compressed=str(path).endswith(".gz"))


def table_of(columns: Mapping[str, Integers]) -> Integers:
    """Return named columns of equal length as (n, 18), in the order of `FIELDS`. Missing columns are -1.

    >>> table_of({"job_number": np.array([7])}).tolist()[0][:3]
    [7, -1, -1]
    """
    unknown = np.full_like(next(iter(columns.values())), -1)
    return np.column_stack([columns.get(name, unknown) for name in FIELDS])


def write_jobs(file: BinaryIO, header: Mapping[str, str], table: Integers, *, compressed: bool) -> None:
    """Write a trace into an open file as `write_swf` does, `BLOCK` jobs at a time.

    Raise `ValueError` if `table` does not have the shape (n, 18).
    """
    if table.ndim != 2 or table.shape[1] != len(FIELDS):
        raise ValueError(f"expected a table of shape (n, {len(FIELDS)}), found {table.shape}")
    packed = zlib.compressobj(6, wbits=zlib.MAX_WBITS | 16) if compressed else None  # level 9: 3 % less, twice the time
    for text in _texts(header, table):
        file.write(text if packed is None else packed.compress(text))
    if packed is not None:
        file.write(packed.flush())


def _texts(header: Mapping[str, str], table: Integers) -> Iterator[bytes]:
    yield "".join(f"; {key}: {' '.join(value.splitlines())}\n" for key, value in header.items()).encode()
    for start in range(0, len(table), BLOCK):
        yield "".join(" ".join(map(str, row)) + "\n" for row in table[start : start + BLOCK].tolist()).encode()


def _block(numbers: Integers, rows: list[bytes], odd: OddRows) -> SwfBlock:
    """Return the jobs of some lines, and count the invalid lines in `odd`."""
    table, longer = _table(rows)
    if table is None:
        faults = [_fault_of(row) for row in rows]
        for number, fault in zip(numbers.tolist(), faults, strict=True):
            if fault is not None:
                odd.add(number, fault)
        valid = [at for at, fault in enumerate(faults) if fault is None]
        numbers = numbers[valid]
        table, longer = _table([rows[at] for at in valid])
        if table is None:
            raise AssertionError("a job line that is neither valid nor invalid")
    return SwfBlock(numbers, table, longer)


def _table(rows: list[bytes]) -> tuple[Integers | None, int]:
    """Return a table of shape (n, 18), or None if a line is invalid, and the number of lines with extra fields."""
    if not rows:
        return np.empty((0, len(FIELDS)), dtype=np.int64), 0
    text, longer = b"\n".join(rows), 0
    other_blanks = any(blank in text for blank in (b"\t", b"\v", b"\f"))
    if other_blanks or {row.count(b" ") for row in rows} != {len(FIELDS) - 1}:  # 17 blanks separate at most 18 fields
        widths = [len(row.split()) for row in rows]
        if min(widths) < len(FIELDS):
            return None, 0
        longer = sum(width > len(FIELDS) for width in widths)
        if longer:
            text = b"\n".join(b" ".join(row.split()[: len(FIELDS)]) for row in rows)
    values = _numbers(text)
    if values is None or values.size != len(rows) * len(FIELDS):
        return None, 0
    table = values.reshape(-1, len(FIELDS))
    if (table > MAX_VALUES).any() or (table < -MAX_VALUES).any():
        return None, 0
    return table.astype(np.int64, copy=False), longer


def _spaced(row: bytes) -> bytes:
    """Return a job line with spaces instead of semicolons between its fields, and without a comment behind a semicolon.

    >>> _spaced(b"1;0;;600"), _spaced(b"1 0 -1 600 ; checkpointed")
    (b'1 0 -1 600', b'1 0 -1 600')
    """
    fields = row.split(b";")
    if len(fields[0].split()) > 1:
        return fields[0].rstrip()
    return b" ".join(field.strip() or b"-1" for field in fields)


def _numbers(text: bytes) -> Floats | Integers | None:
    """Return all numbers of a text; None if it holds anything else."""
    if text.translate(None, _NUMERIC_BYTES):  # also keeps out nan, inf and hexadecimal numbers
        return None
    whole = not any(mark in text for mark in (b".", b"e", b"E"))
    kind: Any = np.int64 if whole else np.float64  # whole numbers are read six times as fast
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)  # numpy warns if it stopped early
            values: Floats | Integers = np.fromstring(text.decode(), dtype=kind, sep=" ")
    except (DeprecationWarning, ValueError):
        return None

    return values


def _fault_of(row: bytes) -> str | None:
    """Return why a job line is invalid; None if it is valid.

    >>> _fault_of(b"1 0 5 soon"), _fault_of(b" ".join([b"1"] * 18))
    ("field 4 is 'soon', not a number", None)
    """
    fields = row.split()
    for position, field in enumerate(fields[: len(FIELDS)], 1):
        shown = field[:30].decode(errors="replace")
        if not _NUMBER.fullmatch(field):
            return f"field {position} is {shown!r}, not a number"
        if abs(float(field)) > (most := MAX_VALUES[position - 1]):
            name = FIELDS[position - 1].replace("_", " ")
            return f"field {position} is {shown}, beyond {most}, the largest {name}"

    if len(fields) < len(FIELDS):
        return f"{len(fields)} fields; a job line has {len(FIELDS)}"
    return None


def _unique(lines: Integers, table: Integers, odd: OddRows) -> Integers:
    """Return the rows of the jobs whose number is neither negative nor repeated. All other rows count as odd.

    They must be unique, since all other code identifies a job by its number.
    """
    numbers = table[:, 0]
    different, order = np.unique(numbers, return_index=True)
    kept = np.zeros(len(numbers), dtype=np.bool_)
    kept[order] = True
    kept &= numbers >= 0
    for row in np.flatnonzero(~kept).tolist():
        number, line = int(numbers[row]), int(lines[row])
        first = int(lines[order[np.searchsorted(different, number)]])
        again = f"job number {number} on line {first} and again on line {line}"
        odd.add(line, f"job number {number} is negative" if number < 0 else again)
    return np.flatnonzero(kept)
