"""Ends of a process after an error. Importing this module is fast: errors of a start use it, too."""

import os
import sys
from contextlib import suppress
from typing import NoReturn


def end_unwritten(error: OSError) -> NoReturn:
    """Exit because standard output cannot be written: with status 0 if its reader has closed it, else 2."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # discard buffered output
    if isinstance(error, BrokenPipeError):
        sys.exit(0)
    end_with(f"standard output cannot be written: {error.strerror}")


def end_with(reason: str) -> NoReturn:
    """Print an error and exit with status 2, also if standard error cannot be written."""
    with suppress(OSError):
        print(f"error: {reason}", file=sys.stderr)  # noqa: T201
    sys.exit(2)
