"""All formats of logs by name, told apart by how a file begins."""

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
    """How a file of a format begins, and what reads it."""

    begins: Callable[[bytes], bool]
    read: Callable[[Path, Reading], AccountingRows]


STANDARD = (".swf", ".swf.gz")

AS_READ = Reading()

NUMERIC = b"0123456789+-. \t\r"
"""All that stands in a line of a log in the standard format."""


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
    >>> from shadowtime.replayer.logs.trace import BUNDLED
    >>> read_trace(BUNDLED).name
    'bundled'
    """
    form = format_of(path)
    if form is None:
        if reading != AS_READ and path.is_file():
            raise SettingsError(
                f"{path} begins as a log in the Standard Workload Format does, which tells all by itself; "
                "--columns, --time-zone, --pools and --names are for accounting files, and tables with commas"
            )

        return read_swf(path)

    from shadowtime.replayer.logs.accounted_log import trace_of
    from shadowtime.shared.accounting import read_names, read_parts

    if reading.columns and form != formats()["table"]:
        raise SettingsError(f"{path}: --columns is for tables")
    if reading.names_key is not None and reading.names is None:
        raise SettingsError("--names-key says how names are kept in --names, which is not given")
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
    except (OSError, EOFError, ValueError, zlib.error):
        return None  # who reads it says what is wrong

    line = line.removeprefix(BYTE_ORDER_MARK).split(b"\n", 1)[0]
    if line.startswith(b";") or not line.strip(NUMERIC):
        return None
    for name, form in formats().items():
        if form.begins(line) and not (name == "table" and path.name.endswith(STANDARD)):
            return form
    return None


def formats() -> dict[str, Format]:
    """Return the formats of accounting by name, imported once one is needed; a table is what is none of the others."""
    from shadowtime.shared.accounting import pbs, sacct, table

    return {reader.NAME: Format(reader.begins, reader.read) for reader in (sacct, pbs, table)}
