"""The base of all command lines: remarks on standard error, errors on one line, no traceback for users."""

import errno
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

import typer
from rich.console import Console

from shadowtime.shared.cli.endings import end_unwritten
from shadowtime.shared.errors import ShadowtimeError, first_of, in_plain_words
from shadowtime.shared.quoting import one_line, quote

TAKES_SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True}
"""Context settings of a command that passes unknown options on to the settings, which check them."""


SEE_SETTINGS = "Accepts every setting as a flag, too: see `shadowtime settings`."


USAGE_ERROR: Any = typer.BadParameter.__base__
"""Base class of typer's errors about the command line; typer has no public name for it."""

messages = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)


OF_OUTPUT = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF, errno.EINVAL)
"""Numbers of the errors with which the system refuses to write to standard output."""

INTERRUPTED, TERMINATED = 128 + signal.SIGINT, 128 + signal.SIGTERM
"""Exit statuses after Ctrl-C and SIGTERM, as a shell reports them."""


def say(text: str) -> None:
    """Print a remark on standard error, on one line. The work continues if standard error cannot be written."""
    _remark(text)


def _remark(text: str, style: str | None = None) -> None:
    with suppress(OSError):
        messages.print(one_line(text), markup=False, style=style)


def application(command: Callable[..., object]) -> typer.Typer:
    """Return the typer application of one command, for `run_app`."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(command)
    return app


def run_command(module: Any) -> None:
    """Run the command of a module: its `main`, or else its application `app`.

    `ON_INTERRUPT` of the module is the remark after Ctrl-C, which says what an interruption leaves behind.
    """
    if hasattr(module, "main"):
        module.main()
    else:
        run_app(module.app, getattr(module, "ON_INTERRUPT", "interrupted"))


def run_app(app: Callable[[], object], interrupted: str = "interrupted") -> None:
    """Run a command line, then exit the process.

    The exit status is the number that `app` returns, or else 0. It is 2 after an error, 130 after Ctrl-C, and 0 if
    standard output has been closed by its reader. It is 143 after SIGTERM if `interrupted` is not the default.
    """
    if interrupted != "interrupted" and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)  # batch systems send it: end child processes, and print the remark
    try:
        ended = _command(app)(standalone_mode=False, prog_name=program()) if isinstance(app, typer.Typer) else app()
        if ended == INTERRUPTED:  # typer returns this after Ctrl-C
            raise KeyboardInterrupt
        sys.exit(ended if isinstance(ended, int) else 0)
    except ShadowtimeError as error:
        _fail(str(error))
    except ValueError as error:
        from pydantic import ValidationError  # here, since this import is slow and `--help` does not need it

        if not isinstance(error, ValidationError):  # only a ValidationError is about the user's input
            raise
        _fail(first_of(error))
    except USAGE_ERROR as error:
        if text := error.format_message():  # if there is no message, the help has been shown already
            text = _all_missing(error) or text[0].lower() + text[1:].removesuffix(".")
            text = _in_our_words(text, error.__cause__).replace("Value error, ", "")
            _fail(text + _known_words(error))
        sys.exit(2)
    except MemoryError:
        _fail("out of memory")
    except _interruptions():
        _interrupted(interrupted)
    except SystemExit as ending:
        if isinstance(ending.__context__, BrokenPipeError):  # rich and typer end with status 1
            end_unwritten(ending.__context__)
        raise
    except OSError as error:
        if error.filename is not None:  # an error of standard output names no file
            _fail(f"{os.fsdecode(error.filename)}: {error.strerror}")
        if error.errno not in OF_OUTPUT:
            _fail(error.strerror or str(error))
        end_unwritten(error)
    except Exception as error:
        if not _hides_interruption(error):
            raise
        _interrupted(interrupted)


def _hides_interruption(error: Exception) -> bool:
    """Return whether Ctrl-C during the creation of a class became this error: Python 3.11 wraps it, pydantic names it.

    >>> _hides_interruption(RuntimeError("no")), _hides_interruption(ValueError("in a schema: KeyboardInterrupt: "))
    (False, True)
    """
    return isinstance(error.__cause__, KeyboardInterrupt) or str(error).rstrip(": \n").endswith("KeyboardInterrupt")


def _in_our_words(text: str, cause: Any) -> str:
    """Return an error of typer about a value that pydantic rejects, in our words and with the value."""
    from pydantic import ValidationError  # here, since this import is slow and `--help` does not need it

    first = cause.errors()[0] if isinstance(cause, ValidationError) else {"type": "value_error"}
    if first["type"] == "value_error":  # the words are our own
        return text
    return text.replace(first["msg"], f"{in_plain_words(first)}, found {quote(str(first['input']))}")


def _all_missing(error: Any) -> str | None:
    """Return the text about all options that are missing, if several are; None for other errors."""
    if not error.format_message().startswith("Missing option"):
        return None
    typed = {word.partition("=")[0] for word in sys.argv[1:]}
    required = [option for option in error.ctx.command.params if option.required and option.opts[-1].startswith("-")]
    lacking = [f"'{option.opts[-1]}'" for option in required if not typed & set(option.opts)]
    return f"missing options {', '.join(lacking)}" if len(lacking) > 1 else None


def _known_words(error: Any) -> str:
    """Return the advice for an error about an unknown sub-command or option; empty for other errors."""
    commands, text = getattr(getattr(error.ctx, "command", None), "commands", {}), error.format_message()
    if text.startswith("No such option") and not getattr(error, "possibilities", None):
        return f"; see {error.ctx.command_path} --help"
    guessed = text.endswith("?")  # "Did you mean …?"
    known = f"{'' if guessed else ';'} known: {', '.join(commands)}"
    return known if text.startswith("No such command") and commands else ""


def _command(app: typer.Typer) -> Any:
    """Return the command, or group of commands, of a typer application. Help shows its flags without a type."""
    command: Any = typer.main.get_command(app)
    for member in (command, *getattr(command, "commands", {}).values()):
        asks_for_help = member.get_help_option(typer.Context(member))
        asks_for_help.default = False  # without a default, typer loads pydantic to find out if it is a flag
        for parameter in (*member.params, asks_for_help):
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        _refuse_repetition(member)

    return command


def _refuse_repetition(command: Any) -> None:
    """Let a command refuse an option that is there twice, with different values: typer would take the last."""
    parse = command.parse_args

    def parse_args(context: Any, words: list[str]) -> Any:
        by_name = {name: option for option in command.params for name in option.opts if name.startswith("-")}
        values: dict[str, str] = {}
        left = iter(list(words))
        for word in left:
            if word == "--":
                break
            name, sign, value = word.partition("=")
            option = by_name.get(name)
            if option is None or option.is_flag:
                continue
            value = value if sign else next(left, "")
            if not option.multiple and values.setdefault(option.name, value) != value:
                both = f"{quote(values[option.name])} and {quote(value)}"
                raise USAGE_ERROR(f"option {name} is there twice, with {both}; give it once", context)
        return parse(context, words)

    command.parse_args = parse_args


def _interruptions() -> tuple[type[BaseException], ...]:
    """Return the exceptions that Ctrl-C raises. asyncio's is included only if it is loaded: importing it is slow."""
    return (KeyboardInterrupt, *([sys.modules["asyncio"].CancelledError] if "asyncio" in sys.modules else []))


def program() -> str | None:
    """Return the words that the user typed if they are `shadowtime` with a sub-command, else None."""
    return sys.argv[0] if sys.argv[0].split(" ")[0] == "shadowtime" else None


def _interrupted(remark: str) -> NoReturn:
    terminated = signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    say(remark.replace("interrupted", "terminated", 1) if terminated else remark)
    sys.exit(TERMINATED if terminated else INTERRUPTED)


def _terminate(number: int, frame: object) -> NoReturn:
    """Interrupt the command as Ctrl-C does. A second SIGTERM is ignored, and marks the first."""
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _fail(reason: str) -> NoReturn:
    _remark(f"error: {reason}", "red")
    sys.exit(2)
