"""The text of the Standard Workload Format: 18 numbers to a job, `; Key: value` in comments."""

import gzip
import os
import re
import warnings
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from replayer.output import result_file
from shared.errors import TraceError

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
"""Names of the 18 fields, in the order of the format; times in seconds."""

_HEADER = re.compile(r";\s*([A-Z]\w*):(?:\s+(.*))?$")
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)")
_NUMERIC_BYTES = b"0123456789+-. \t\n\v\f"
_LARGEST = 2**53  # a float holds every integer up to here


def read_text(path: Path) -> tuple[dict[str, str], NDArray[np.int64], tuple[str, ...]]:
    """Return the header, the (n, 18) table of jobs in the order of the file, and notes on oddities.

    Raises
    ------
    TraceError
        If the file cannot be read, holds no job, or a line of it is not a job; names the line.
    """
    # Lone carriage returns are line ends too: else a whole old file would pass for one long job line.
    text = _uncompressed(path).removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    header: dict[str, str] = {}
    numbers: list[int] = []
    rows: list[bytes] = []
    for number, line in enumerate(text.split(b"\n"), 1):
        row = line.strip()
        if row.startswith(b";"):
            if match := _HEADER.match(row.decode(errors="replace")):
                header.setdefault(match[1], match[2] or "")
        elif row:
            numbers.append(number)
            rows.append(row)
    if not rows:
        msg = f"{path}: no job line in it"
        raise TraceError(msg)

    widths = [len(row.split()) for row in rows]
    notes = []
    if longer := sum(width > len(FIELDS) for width in widths):
        notes.append(f"{longer} lines had more than {len(FIELDS)} fields; the rest of them is ignored")
        rows = [b" ".join(row.split()[: len(FIELDS)]) for row in rows]
    values = _numbers(b"\n".join(rows))
    if min(widths) < len(FIELDS) or values is None or values.size != len(rows) * len(FIELDS):
        _refuse(path, numbers, rows)
    table = values.astype(np.int64).reshape(-1, len(FIELDS))
    _refuse_repeated(path, numbers, table[:, 0])
    if unordered := int(np.count_nonzero(np.diff(table[:, 1]) < 0)):
        notes.append(f"{unordered} lines were not in order of submit time")
    return header, table, tuple(notes)


def write_swf(path: str | os.PathLike[str], header: Mapping[str, str], table: NDArray[np.int64]) -> None:
    """Write a trace in the Standard Workload Format, compressed if the name ends in `.gz`.

    The same contents make the same bytes: no time stamp is stored. The file appears whole or not at all.

    Parameters
    ----------
    path : str or os.PathLike
        File to write or to replace.
    header : Mapping[str, str]
        Written as `; Key: value`, in its order; line breaks in a value become spaces.
    table : numpy.ndarray
        (n, 18) integers, -1 where unknown; columns as in `FIELDS`, times in seconds.

    Raises
    ------
    OutputError
        If the file cannot be written.

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
    D. G. Feitelson, "The Standard Workload Format", version 2.2, Parallel Workloads Archive.
    """
    if table.ndim != 2 or table.shape[1] != len(FIELDS):
        msg = f"a table of shape {table.shape}; a trace has (n, {len(FIELDS)})"
        raise ValueError(msg)
    comments = [f"; {key}: {' '.join(value.splitlines())}\n" for key, value in header.items()]
    jobs = [" ".join(map(str, row)) + "\n" for row in table.tolist()]
    contents = "".join(comments + jobs).encode()
    if str(path).endswith(".gz"):
        contents = gzip.compress(contents, compresslevel=6, mtime=0)  # level 9 saves 3 % in twice the time
    with result_file(path) as file:
        file.write(contents)


def _uncompressed(path: Path) -> bytes:
    try:
        contents = path.read_bytes()
    except OSError as error:
        msg = f"{path}: cannot be read: {error.strerror}"
        raise TraceError(msg) from error
    if not contents.startswith(b"\x1f\x8b"):
        return contents
    try:
        return gzip.decompress(contents)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        msg = f"{path}: truncated or damaged gzip file: {error}"
        raise TraceError(msg) from error


def _numbers(text: bytes) -> NDArray[np.float64] | None:
    """Return all numbers of a text that holds nothing else, or None."""
    if text.translate(None, _NUMERIC_BYTES):  # also keeps out nan, inf and hexadecimal numbers
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)  # numpy's way to say that it stopped early
            values = np.fromstring(text.decode(), dtype=np.float64, sep=" ")
    except (DeprecationWarning, ValueError):
        return None
    return values if np.abs(values).max() <= _LARGEST else None


def _refuse(path: Path, numbers: list[int], rows: list[bytes]) -> NoReturn:
    """Raise for the first line that is not a job."""
    for number, row in zip(numbers, rows, strict=True):
        hint = "; is this a Standard Workload Format file?" if number == numbers[0] else ""
        fields = row.split()
        for position, field in enumerate(fields[: len(FIELDS)], 1):
            shown = field[:30].decode(errors="replace")
            if not _NUMBER.fullmatch(field):
                msg = f"{path}, line {number}: field {position} is {shown!r}, not a number{hint}"
                raise TraceError(msg)
            if abs(float(field)) > _LARGEST:
                msg = f"{path}, line {number}: field {position} is {shown}, beyond {_LARGEST}"
                raise TraceError(msg)
        if len(fields) < len(FIELDS):
            msg = f"{path}, line {number}: {len(fields)} fields; a job line has {len(FIELDS)}{hint}"
            raise TraceError(msg)
    msg = f"{path}: not in the Standard Workload Format"
    raise TraceError(msg)


def _refuse_repeated(path: Path, numbers: list[int], job_numbers: NDArray[np.int64]) -> None:
    """Raise if a job number is missing or comes twice: it is the identity of a job everywhere else."""
    order = np.argsort(job_numbers, kind="stable")
    ranked = job_numbers[order]
    if ranked[0] < 0:
        msg = f"{path}, line {numbers[order[0]]}: job number {ranked[0]} is negative"
        raise TraceError(msg)
    for again in np.flatnonzero(ranked[1:] == ranked[:-1])[:1]:
        first, second = numbers[order[again]], numbers[order[again + 1]]
        msg = f"{path}: job number {ranked[again]} on line {first} and again on line {second}"
        raise TraceError(msg)
