"""The start of a command. Ctrl-C during its imports, which take a second, ends it with one line."""

import codecs
import gc
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FrameType
from typing import NoReturn

from shadowtime.shared.cli.endings import end_with

STREAM = {"aiohttp", "aiokafka", "faust", "prometheus_client", "pydantic_settings", "redis", "uvloop"}
"""Libraries that the extra `stream` installs."""

EXTRAS = {"stream": STREAM, "frames": {"pandas", "pyarrow"}, "campaign": {"dask", "distributed", "pyarrow"}}
"""Libraries of each extra that a command may need."""


PLAIN = str.maketrans(
    dict.fromkeys("\u2013\u2212", "-") | {"…": "...", "≠": "!=", "≤": "<=", "≥": ">=", "±": "+-", "·": "*", "→": "->"}
)
"""Characters in our texts that old encodings lack, with their replacements."""


def write_on_any_terminal() -> None:
    """Make standard output and error accept every text, even if a stream is closed or its encoding lacks characters."""
    sys.stdout, sys.stderr = (
        open(os.devnull, "w") if stream is None else stream  # noqa: SIM115  # open as long as the process
        for stream in (sys.stdout, sys.stderr)
    )
    if not os.environ.get("COLUMNS", "").strip("0"):  # the terminal's width is unknown; rich would show nothing at 0
        os.environ.pop("COLUMNS", None)
    codecs.register_error("shadowtime", _in_plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() != "utf-8":
            stream.reconfigure(errors="shadowtime")


def _in_plain(error: UnicodeError) -> tuple[str, int]:
    """Return the replacement of characters that cannot be encoded, for `codecs.register_error`."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(PLAIN)
    return text.encode(error.encoding, "replace").decode(error.encoding), error.end


def run(module: str) -> None:
    """Import a module and run its command.

    After the command all work is done and nothing catches `KeyboardInterrupt`. Ctrl-C then ends the process at once.
    """
    interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    sys.unraisablehook = _unraisable
    try:
        with lasting_imports():
            command = import_module(module)
            from shadowtime.shared.cli.command_line import run_command  # here, since typer takes its time

        run_command(command)
    except ModuleNotFoundError as error:
        _lacks(error, module)
    finally:
        if interruptible:
            signal.signal(signal.SIGINT, _leave)


@contextmanager
def lasting_imports() -> Iterator[None]:
    """Disable garbage collection during imports, and freeze the imported objects: saves 5 % of a start and of a replay.

    Ctrl-C ends the process at once, as no work has begun. Raising `KeyboardInterrupt` would not be enough. Code that
    imports a module may take this exception for a fault of the module. While a kernel is being loaded, the exception is
    lost.
    """
    interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interruptible:
        signal.signal(signal.SIGINT, _leave)
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
        if interruptible:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _lacks(error: ModuleNotFoundError, module: str) -> NoReturn:
    """Exit with a line that names the extra to install for a missing library.

    Raise `error` if no extra has the library. If several extras have it, the line names the one with the name of
    the command's folder.
    """
    library = (error.name or "").partition(".")[0]
    extras = [name for name, libraries in EXTRAS.items() if library in libraries]
    if not extras:
        raise error
    extra = max(extras, key=module.split(".").count)
    remedy = f"pip install 'shadowtime[{extra}]'"
    end_with(f"this command needs {library}, which is not installed: {remedy}")


def _unraisable(lost: "sys.UnraisableHookArgs") -> None:
    """Repeat Ctrl-C a moment later if it arrived in a finalizer, where no exception can be raised."""
    if lost.exc_type is KeyboardInterrupt:
        threading.Timer(0.01, _repeat_interrupt).start()
    else:
        sys.__unraisablehook__(lost)


def _repeat_interrupt() -> None:
    """Send Ctrl-C to the main thread once it has left `_unraisable`, where Ctrl-C would be lost again."""
    main = threading.main_thread().ident or 0
    frame: FrameType | None = sys._current_frames()[main]  # noqa: SLF001  # it is documented
    while frame is not None and frame.f_code is not _unraisable.__code__:
        frame = frame.f_back
    if frame is None:
        signal.pthread_kill(main, signal.SIGINT)
    else:
        threading.Timer(0.01, _repeat_interrupt).start()


def _leave(number: int, frame: FrameType | None) -> None:
    os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, b"interrupted\n")
    os._exit(128 + number)  # as a shell reports it
