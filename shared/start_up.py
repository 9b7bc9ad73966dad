"""The first moment of a command: Ctrl-C while its modules are imported, which takes a second, ends it with one line."""

import os
import signal
import sys
from importlib import import_module
from types import FrameType

INTERRUPTED = 128 + signal.SIGINT


def run(module: str) -> None:
    """Import a module and run its `main`.

    `KeyboardInterrupt` will not do outside of `main`: what imports a module may take it for a fault of the module, and
    at the very end nobody is there to catch it. Nothing is begun then, or all is done, so the process just ends.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:  # whoever started us has it ignored
        import_module(module).main()
        return
    signal.signal(signal.SIGINT, _leave)
    main = import_module(module).main
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        main()
    finally:
        signal.signal(signal.SIGINT, _leave)


def _leave(number: int, frame: FrameType | None) -> None:
    os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, b"interrupted\n")
    os._exit(INTERRUPTED)
