"""What all command lines share: remarks go to standard error, an error is one line, a traceback reaches nobody."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable

from rich.console import Console

from shared.errors import ShadowtimeError

INTERRUPTED = 128 + signal.SIGINT

messages = Console(stderr=True, highlight=False, soft_wrap=True)


def plain(text: str) -> str:
    r"""Return a text without line breaks and whatever else is not to be seen.

    >>> plain("kth\x1b[2J\n")
    'kth\ufffd[2J\ufffd'
    """
    return "".join(each if each.isprintable() else "\ufffd" for each in text)


def one_line(text: str) -> str:
    r"""Return a text as one line for a terminal, whatever names are in it.

    >>> one_line("kth\x1b[2J is\nno cluster")
    'kth\ufffd[2J is no cluster'
    """
    return plain(" ".join(text.splitlines()))


def say(text: str) -> None:
    """Print a remark on one line."""
    messages.print(one_line(text), markup=False)


def run_app(app: Callable[[], object], interrupted: str | None = "interrupted") -> None:
    """Run a command line to its end, and the process with it if that was no good one.

    Exit codes are 2 after an error, 130 after Ctrl-C, 0 where nobody reads standard output any more. Typer makes of
    Ctrl-C an exit of its own.
    """
    try:
        app()
    except SystemExit as ended:
        if ended.code == INTERRUPTED and interrupted is not None:
            say(interrupted)
        raise
    except ShadowtimeError as error:
        messages.print(f"error: {one_line(str(error))}", markup=False, style="red")
        sys.exit(2)
    except (KeyboardInterrupt, asyncio.CancelledError):
        if interrupted is not None:
            say(interrupted)
        sys.exit(INTERRUPTED)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still buffered goes nowhere
        if isinstance(error, BrokenPipeError):
            sys.exit(0)
        say(f"error: standard output cannot be written: {error.strerror}")
        sys.exit(2)
