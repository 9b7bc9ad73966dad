"""Ctrl-C, delayed to a moment at which it is handled reliably."""

import signal
import time
from types import FrameType, TracebackType

from shadowtime.shared.messages import Envelope


class Interruption:
    """An observer that raises `KeyboardInterrupt` between two events of a replay, or while the replay sleeps.

    By default, Python raises this exception at any moment. Inside a compiled kernel or a validator, it is lost or
    turned into another error. A second signal raises it at once. Enter the context in the main thread, and pass every
    envelope to the observer.
    """

    def __init__(self) -> None:
        self._noted = False
        self._asleep = False

    def __enter__(self) -> "Interruption":
        self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        signal.signal(signal.SIGINT, self._before)

    def __call__(self, envelope: Envelope | None = None) -> None:
        """Raise `KeyboardInterrupt` if there was a signal."""
        if self._noted:
            raise KeyboardInterrupt

    def sleep(self, seconds: float) -> None:
        """Sleep as `time.sleep` does. A signal raises `KeyboardInterrupt` at once."""
        self._asleep = True
        try:
            if self._noted:
                raise KeyboardInterrupt
            time.sleep(seconds)
        finally:
            self._asleep = False

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._noted or self._asleep:
            raise KeyboardInterrupt
        self._noted = True
