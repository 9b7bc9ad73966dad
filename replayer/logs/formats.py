"""All log formats by name, recognised by the beginning of a file."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from shadowtime.replayer.logs.swf import read_swf
from shadowtime.replayer.logs.trace import Trace
from shadowtime.shared.accounting import (
    SUFFIXES,
    AccountingRows,
    Reading,
    beginning_of,
    first_lines,
    header_of,
    is_header,
    is_pipe,
    is_table,
    kept,
)
from shadowtime.shared.errors import SettingsError, TraceError


class Format(NamedTuple):
    """A log format: a test of the beginning of a file, and the function that reads the file."""

    begins: Callable[[bytes], bool]
    read: Callable[[Path, Reading], AccountingRows]


STANDARD = (".swf", *(f".swf{suffix}" for suffix in SUFFIXES))

AS_READ = Reading()

NUMERIC = b"0123456789+-. \t\r"
"""All characters that a job line in the Standard Workload Format may have."""


def read_trace(path: Path, reading: Reading = AS_READ) -> Trace:
    """Return the log of a file in any known format.

    Raises
    ------
    TraceError
        If the file cannot be read, or does not continue in the format that its beginning shows.
    SettingsError
        If `reading` has options that do not apply to the format.

    Examples
    --------
    >>> from shadowtime.replayer.logs.trace import BUNDLED
    >>> read_trace(BUNDLED).name
    'bundled'
    """
    if is_pipe(path):
        with kept(path) as (copy, name):
            try:
                return replace(read_trace(copy, reading), name=name)
            except TraceError as error:
                raise TraceError(str(error).replace(str(copy), name).replace(copy.name, name)) from None
    form = _stated_format(path, reading) or format_of(path)
    if form is None:
        if reading != AS_READ and path.is_file():
            raise SettingsError(
                f"{path} is read as a log in the Standard Workload Format; these options do not apply to it: "
                "--columns, --time-zone, --pools and --names are for accounting files, and tables with commas"
            )

        return read_swf(path)

    from shadowtime.replayer.logs.accounted_log import trace_of
    from shadowtime.shared.accounting import read_names, read_parts

    if reading.columns and form not in (formats()["sacct"], formats()["table"]):
        raise SettingsError(f"{path}: --columns is only for tables and output of sacct")
    if reading.names_key is not None and reading.names is None:
        raise SettingsError("--names-key needs --names FILE, where the names are kept")
    parts = None if reading.pools is None else read_parts(reading.pools)
    names = read_names(reading.names, reading.names_key)
    rows = form.read(path, reading)
    rows.require_few_odd(path, lenient=reading.lenient)
    trace = trace_of(_name_of(path), rows, reading, names, parts)
    if reading.names is not None:
        names.write(reading.names)
    return trace


def _stated_format(path: Path, reading: Reading) -> Format | None:
    """Return the format of a file whose fields or delimiter the user has stated; None if they do not tell."""
    if reading.fields:
        return formats()["sacct" if is_header(reading.fields, any_case=True) else "table"]
    if reading.delimiter is None and not is_table(reading.columns):
        return None
    lines = [line.decode(errors="replace") for line in first_lines(beginning_of(path))]
    if is_table(reading.columns):
        shape = header_of(lines[0], reading.delimiter)
        return formats()["table"] if shape is not None and shape.delimiter != " " else None
    return formats()["sacct" if any(header_of(line, reading.delimiter) for line in lines) else "table"]


def _name_of(path: Path) -> str:
    name = path.name
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix)
    return name.rpartition(".")[0] or name


def trace_of_frame(frame: Any, reading: Reading = AS_READ) -> Trace:
    """Return the log of a data frame: of pandas, polars or pyarrow, with the columns of a table of jobs.

    Raises
    ------
    TraceError
        If it is no data frame, lacks a column, or has a value of the wrong kind.
    """
    from shadowtime.replayer.logs.accounted_log import trace_of
    from shadowtime.shared.accounting import read_names, read_parts, table

    parts = None if reading.pools is None else read_parts(reading.pools)
    return trace_of("frame", table.read_frame(frame, reading), reading, read_names(None, None), parts)


def format_of(path: Path) -> Format | None:
    """Return the format that a file's first line shows; None for the Standard Workload Format and unknown formats."""
    head = beginning_of(path)
    line = next(filter(bytes.strip, first_lines(head)), b"")
    if line.startswith(b";") or not line.strip(NUMERIC):
        return None
    for name, form in formats().items():
        if form.begins(head) and not (name == "table" and path.name.endswith(STANDARD)):
            return form
    return None


def formats() -> dict[str, Format]:
    """Return the accounting formats by name, imported on first use. `table` is last: it is the fallback."""
    from shadowtime.shared.accounting import pbs, sacct, table

    return {reader.NAME: Format(reader.begins, reader.read) for reader in (sacct, pbs, table)}
