"""Ctrl-C at a moment at which it is sure to be heard."""

import signal
import time
from types import FrameType, TracebackType

from shadowtime.shared.messages import Envelope


class Interruption:
    """Raises `KeyboardInterrupt` between two events of a replay, or while it sleeps.

    Python raises it wherever the signal falls; inside a compiled kernel or a validator it is lost, or comes out as
    another error. A second signal does not wait. To be entered in the main thread, and told of every envelope.
    """

    def __init__(self) -> None:
        self._noted = False
        self._asleep = False

    def __enter__(self) -> "Interruption":
        self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        signal.signal(signal.SIGINT, self._before)

    def __call__(self, envelope: Envelope) -> None:
        """Take in an envelope."""
        if self._noted:
            raise KeyboardInterrupt

    def sleep(self, seconds: float) -> None:
        """Sleep as `time.sleep` does."""
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
