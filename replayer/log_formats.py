"""All formats of logs by name, told apart by how a file begins."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from shadowtime.replayer.accounting import pbs, sacct, table
from shadowtime.replayer.accounting.accounted_log import trace_of
from shadowtime.replayer.accounting.machine_parts import read_parts
from shadowtime.replayer.accounting.names import read_names
from shadowtime.replayer.accounting.reading import Reading, Rows
from shadowtime.replayer.log_file import BYTE_ORDER_MARK, GZIP
from shadowtime.replayer.swf import Trace, read_swf
from shadowtime.shared.bounds import MAX_LINE_LENGTH
from shadowtime.shared.errors import SettingsError


class Format(NamedTuple):
    """How a file of a format begins, and what reads it."""

    begins: Callable[[bytes], bool]
    read: Callable[[Path, Reading], Rows]


FORMATS = {"sacct": Format(sacct.begins, sacct.read), "PBS": Format(pbs.begins, pbs.read)}
"""Accounting files; what is none of them is a table if its first line has commas, else a log in the standard format."""

TABLE = Format(table.begins, table.read)

STANDARD = (".swf", ".swf.gz")

AS_READ = Reading()


def read_trace(path: Path, reading: Reading = AS_READ) -> Trace:
    """Return the log in a file of any of the formats.

    Raises
    ------
    TraceError
        If the file cannot be read, or is none of the format that it begins as.
    SettingsError
        If what is said of it does not go with its format.

    Examples
    --------
    >>> from shadowtime.replayer.swf import BUNDLED
    >>> read_trace(BUNDLED).name
    'bundled'
    """
    form = format_of(path)
    if form is None:
        if reading != AS_READ:
            raise SettingsError(
                f"{path}: a log in the Standard Workload Format tells all by itself: "
                "--columns, --time-zone, --pools and --names are for accounting files and tables"
            )
        return read_swf(path)
    parts = None if reading.pools is None else read_parts(reading.pools)
    names = read_names(reading.names, reading.names_key)
    trace = trace_of(
        path.name.removesuffix(".gz").rpartition(".")[0] or path.name, form.read(path, reading), reading, names, parts
    )
    if reading.names is not None:
        names.write(reading.names)
    return trace


def format_of(path: Path) -> Format | None:
    """Return the format that a file begins as; None for the Standard Workload Format, and what is none at all."""
    try:
        with path.open("rb") as file:
            line = file.peek(2)[:MAX_LINE_LENGTH]
            if line.startswith(GZIP):
                with gzip.GzipFile(fileobj=file) as unpacked:
                    line = unpacked.readline(MAX_LINE_LENGTH)
    except (OSError, EOFError, ValueError):
        return None  # who reads it says what is wrong
    line = line.removeprefix(BYTE_ORDER_MARK).split(b"\n", 1)[0]
    for form in FORMATS.values():
        if form.begins(line):
            return form
    return TABLE if table.begins(line) and not path.name.endswith(STANDARD) else None
