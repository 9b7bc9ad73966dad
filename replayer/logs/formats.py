"""All log formats by name, recognised by the beginning of a file."""

import gzip
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from shadowtime.replayer.logs.swf import read_swf
from shadowtime.replayer.logs.trace import Trace
from shadowtime.shared.accounting import BYTE_ORDER_MARK, GZIP, AccountingRows, Reading
from shadowtime.shared.bounds import MAX_LINE_LENGTH
from shadowtime.shared.errors import SettingsError


class Format(NamedTuple):
    """A log format: a test of the first line of a file, and the function that reads the file."""

    begins: Callable[[bytes], bool]
    read: Callable[[Path, Reading], AccountingRows]


STANDARD = (".swf", ".swf.gz")

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
    form = format_of(path)
    if form is None:
        if reading != AS_READ and path.is_file():
            raise SettingsError(
                f"{path} is read as a log in the Standard Workload Format; these options do not apply to it: "
                "--columns, --time-zone, --pools and --names are for accounting files, and tables with commas"
            )

        from shadowtime.replayer.logs.machine_size import with_sizes

        return with_sizes(read_swf(path))

    from shadowtime.replayer.logs.accounted_log import trace_of
    from shadowtime.shared.accounting import read_names, read_parts

    if reading.columns and form != formats()["table"]:
        raise SettingsError(f"{path}: --columns is only for tables")
    if reading.names_key is not None and reading.names is None:
        raise SettingsError("--names-key needs --names FILE, where the names are kept")
    parts = None if reading.pools is None else read_parts(reading.pools)
    names = read_names(reading.names, reading.names_key)
    rows = form.read(path, reading)
    rows.require_few_odd(path, lenient=reading.lenient)
    trace = trace_of(path.name.removesuffix(".gz").rpartition(".")[0] or path.name, rows, reading, names, parts)
    if reading.names is not None:
        names.write(reading.names)
    return trace


def format_of(path: Path) -> Format | None:
    """Return the format that a file's first line shows; None for the Standard Workload Format and unknown formats."""
    try:
        with path.open("rb") as file:
            line = file.peek(2)[:MAX_LINE_LENGTH]
            if line.startswith(GZIP):
                with gzip.GzipFile(fileobj=file) as unpacked:
                    line = unpacked.readline(MAX_LINE_LENGTH)
    except (OSError, EOFError, ValueError, zlib.error):
        return None  # the reader raises a better error

    line = line.removeprefix(BYTE_ORDER_MARK).split(b"\n", 1)[0]
    if line.startswith(b";") or not line.strip(NUMERIC):
        return None
    for name, form in formats().items():
        if form.begins(line) and not (name == "table" and path.name.endswith(STANDARD)):
            return form
    return None


def formats() -> dict[str, Format]:
    """Return the accounting formats by name, imported on first use. `table` is last: it is the fallback."""
    from shadowtime.shared.accounting import pbs, sacct, table

    return {reader.NAME: Format(reader.begins, reader.read) for reader in (sacct, pbs, table)}
