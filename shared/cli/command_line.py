"""The base of all command lines: remarks on standard error, errors on one line, no traceback for users."""

import os
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import typer
from rich.console import Console

from shadowtime.shared.cli.start_up import INTERRUPTED
from shadowtime.shared.errors import ShadowtimeError, first_of
from shadowtime.shared.quoting import one_line

TAKES_SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True}
"""Options that a command does not know go to the settings, which check them."""


SEE_SETTINGS = "Takes every setting as a flag, too: see `shadowtime settings`."


USAGE_ERROR: Any = typer.BadParameter.__base__
"""Error of typer for unknown words; typer has no public name for it."""

messages = Console(stderr=True, highlight=False, soft_wrap=True)


def say(text: str) -> None:
    """Print a remark on one line."""
    messages.print(one_line(text), markup=False)


def application(command: Callable[..., object]) -> typer.Typer:
    """Return the command line of one command, for `run_app`."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(command)
    return app


def run_app(app: Callable[[], object], interrupted: str = "interrupted") -> None:
    """Run a command line to its end, and the process with it if that was no good one.

    Exit codes are 2 after an error, 130 after Ctrl-C, 0 where nobody reads standard output any more.
    """
    try:
        ended = _command(app)(standalone_mode=False, prog_name=_program()) if isinstance(app, typer.Typer) else app()
        if ended == INTERRUPTED:  # what typer makes of Ctrl-C
            raise KeyboardInterrupt
        sys.exit(ended if isinstance(ended, int) else 0)
    except ShadowtimeError as error:
        _fail(str(error))
    except ValueError as error:
        from pydantic import ValidationError  # here, for it takes a moment, which help need not

        if not isinstance(error, ValidationError):  # what was made of somebody's input is out of bounds
            raise
        _fail(first_of(error))
    except USAGE_ERROR as error:
        if text := error.format_message():  # without one its help is shown already
            _fail(text[0].lower() + text[1:].removesuffix(".").replace("Value error, ", ""))
        sys.exit(2)
    except MemoryError:
        _fail("out of memory")
    except RuntimeError as error:
        if not isinstance(error.__cause__, KeyboardInterrupt):  # which Python 3.11 wraps where it makes a class
            raise
        _interrupted(interrupted)
    except _interruptions():
        _interrupted(interrupted)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still buffered goes nowhere
        if isinstance(error, BrokenPipeError):
            sys.exit(0)
        say(f"error: standard output cannot be written: {error.strerror}")
        sys.exit(2)


def _command(app: typer.Typer) -> Any:
    """Return the command of a command line, or its group of commands, with flags that are shown without a type."""
    command: Any = typer.main.get_command(app)
    for member in (command, *getattr(command, "commands", {}).values()):
        asks_for_help = member.get_help_option(typer.Context(member))
        asks_for_help.default = False  # with none, typer loads pydantic to make sure that it is no flag
        for parameter in (*member.params, asks_for_help):
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""

    return command


def _interruptions() -> tuple[type[BaseException], ...]:
    """Return what is raised at Ctrl-C, by asyncio only where it is loaded: that takes a moment, which help need not."""
    return (KeyboardInterrupt, *([sys.modules["asyncio"].CancelledError] if "asyncio" in sys.modules else []))


def _program() -> str | None:
    """Return what a user called, if that was `shadowtime` with a sub-command."""
    return sys.argv[0] if sys.argv[0].split(" ")[0] == "shadowtime" else None


def _interrupted(remark: str) -> NoReturn:
    say(remark)
    sys.exit(INTERRUPTED)


def _fail(reason: str) -> NoReturn:
    messages.print(f"error: {one_line(reason)}", markup=False, style="red")
    sys.exit(2)
