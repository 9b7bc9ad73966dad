"""Result files, which are written completely or not at all."""

import csv
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import BinaryIO

from shadowtime.shared.errors import OutputError, SettingsError
from shadowtime.shared.quoting import json_text, table_cell

STANDARD_OUTPUT = "-"


def require_places(results: Iterable[Path | None], read: Iterable[str | os.PathLike[str] | None]) -> None:
    """Raise `SettingsError` if two results are the same file, or a result would overwrite a file that is `read`.

    None in `results` and `read` stands for no file.
    """
    wanted = [path for path in results if path is not None]
    names: dict[str, Path] = {}
    for path in wanted:
        place = os.path.realpath(path)
        if place in names:
            raise SettingsError(f"two results have the same path: {names[place]}, {path}")
        names[place] = path

    files = [name for name in read if name is not None and os.path.isfile(name)]
    for path in filter(os.path.isfile, wanted):
        if any(os.path.samefile(path, file) for file in files):
            raise SettingsError(f"{path} is an input; write the result to another file")


def require_suffix(option: str, path: Path | None, *suffixes: str) -> None:
    """Raise `SettingsError` if a result would be written to a file with the suffix of another format.

    A path without a suffix may be a pipe or a device, and is allowed.

    >>> require_suffix("--report", Path("page.html"), ".html")
    >>> require_suffix("--report", Path("page.pdf"), ".html")
    Traceback (most recent call last):
    shadowtime.shared.errors.SettingsError: --report page.pdf: expected a name that ends in .html
    """
    if path is not None and path.suffix and not path.name.endswith(suffixes):
        raise SettingsError(f"{option} {path}: expected a name that ends in {' or '.join(suffixes)}")


def csv_text(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    r"""Return a table as CSV. Texts in it are harmless to spreadsheets and terminals.

    >>> csv_text(["log", "mean"], [("=kth", 1.5), ("ctc", None)])
    "log,mean\n'=kth,1.5\nctc,\n"
    """
    text = StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(map(table_cell, head))
    lines.writerows(map(table_cell, row) for row in rows)
    return text.getvalue()


def print_json(text: bytes) -> None:
    """Write JSON to standard output, with a line end. Texts in it are harmless to terminals."""
    sys.stdout.buffer.write(json_text(text) + b"\n")
    sys.stdout.buffer.flush()


@contextmanager
def result_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a result file for bytes. It is written to a partial file beside its path, and renamed after success.

    After an error no half-written file is left. `-` is standard output. It, a pipe and a device are written directly.

    Raises
    ------
    OutputError
        If the file cannot be written. The message names the file.
    BrokenPipeError
        If the reader of a pipe has ended.
    """
    path = Path(path)
    partial = path.parent / f".{path.name}.{os.getpid()}.partial"
    try:
        if str(path) == STANDARD_OUTPUT:
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
            return

        if path.exists() and not path.is_file():  # a rename would replace a pipe or a device
            with path.open("wb") as file:
                yield file
            return

        try:
            with partial.open("wb") as file:
                yield file
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        name = "standard output" if str(path) == STANDARD_OUTPUT else path
        raise OutputError(f"{name}: cannot be written: {error.strerror or error}") from error
