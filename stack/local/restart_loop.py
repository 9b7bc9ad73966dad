"""Supervision of one process: it is restarted whenever it ends, after a pause that grows while it keeps failing."""

import logging
import threading
import time
from contextlib import suppress

from shadowtime.shared.backoff import Backoff
from shadowtime.stack.servers import Server, ServerError

log = logging.getLogger("stack")

FIRST_PAUSE = 0.5
MAX_PAUSE = 10.0
STEADY_SECONDS = 30.0
"""Seconds of running after which a process counts as steady. Then the pause before its next restart is short again."""

LOOK_SECONDS = 0.1
ASK_SECONDS = 1.0


class RestartLoop(threading.Thread):
    """A thread that keeps a server or worker running until `stop_within` is called.

    Parameters
    ----------
    server
        The server or worker to keep running. Only this thread starts and stops it.
    """

    def __init__(self, server: Server) -> None:
        super().__init__(name=server.name, daemon=True)
        self.server = server
        self.pid: int | None = None
        self.restarts = 0
        self.healthy = False
        self.failure = ""
        self._stopping = threading.Event()
        self._stop_seconds = 0.0

    def stop_within(self, seconds: float) -> None:
        """Ask the thread to end its process, or to kill it after `seconds`. To wait for the end, join the thread."""
        self._stop_seconds = seconds
        self._stopping.set()

    def run(self) -> None:
        """Keep the process running."""
        backoff = Backoff(FIRST_PAUSE, MAX_PAUSE)
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                self._live()
            except (ServerError, OSError) as error:  # such as a full disk
                self.failure = str(error)

            self.pid, self.healthy = None, False
            if self._stopping.is_set():
                break
            if time.monotonic() - began > STEADY_SECONDS:
                backoff.reset()
            pause = backoff.pause()
            log.warning("%s: %s; starting it again in %g s", self.name, self.failure, pause)
            self._stopping.wait(pause)
            self.restarts += 1

    def _live(self) -> None:
        """Start the process and watch it. Return when it has ended by itself, or has been stopped."""
        self.server.start(wait=False)
        try:
            with suppress(ServerError):  # the process may have ended already
                self.pid = self.server.pid
                log.info("%s runs as process %d", self.name, self.pid)
            asked = 0.0
            while self.server.running and not self._stopping.wait(LOOK_SECONDS):
                if not self.healthy or time.monotonic() - asked > ASK_SECONDS:
                    self.healthy = self.server.answers()
                    asked = time.monotonic()

            if not self._stopping.is_set():
                self.failure = f"ended with status {self.server.exit_status}"
        finally:
            self.server.stop(self._stop_seconds)
