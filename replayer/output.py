"""Result files: complete or not there at all."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from shared.errors import OutputError

STANDARD_OUTPUT = "-"


@contextmanager
def result_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a result file for bytes: written beside its place, and moved there when all went well.

    `-` is standard output. Whatever goes wrong inside, no half-written file is left.

    Raises
    ------
    OutputError
        If the file cannot be written; names it.
    """
    if str(path) == STANDARD_OUTPUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        if path.is_dir():
            raise OutputError(f"{path}: cannot be written: Is a directory")
        try:
            with partial.open("wb") as file:
                yield file
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from error
