"""A server as a child process. You can start, stop and kill it. It never outlives its parent process.

Every server here guarantees:

* It listens on loopback only, and keeps its port and its data through `stop`, `kill` and `start`.
* `start` returns once the server answers, or at once if `wait` is False. If the server does not start, it raises
  `ServerError` with the end of the log.
* The server ends when its parent ends, even if the parent is killed.
* Only its user can read its folder and the files that it writes.
"""

import os
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, BinaryIO, ClassVar, Self, cast

from shadowtime.shared.errors import ShadowtimeError
from shadowtime.stack.servers.ports import HOST, free_port, is_free

# Guards, so that no child process outlives its parent.
#
# The kernel offers `PR_SET_PDEATHSIG`, but that follows the *thread* that started the child: a server that a
# short-lived thread restarts would die with the thread. So each child has a guard instead. The guard is a shell that
# reads from a pipe. Only the parent holds the pipe open; when it breaks, the guard kills the child.
#
# Two rules close the gaps:
#
# * The child runs its command only after its guard has started. A parent that ends before that leaves nothing behind.
# * The guard has an empty environment. A tool that kills processes by their environment must not find the guard:
#   Redis overwrites its own environment, so such a tool would kill the guard but not Redis.

GATE = 'read -r guarded && exec "$@" </dev/null'
WATCH = 'read -r released || kill -KILL "$1"'


class ParentDeathGuard:
    """A guard that kills a process when this process ends, even if it is killed.

    Parameters
    ----------
    pid
        Process id. It must be a child of this process, so that the id is not reused until the child is waited for.
    """

    def __init__(self, pid: int) -> None:
        self._watcher = subprocess.Popen(  # noqa: S603
            ["/bin/sh", "-c", WATCH, "guard", str(pid)],
            env={},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a signal to the parent's process group must not end the guard
        )

    def release(self) -> None:
        """End the guard, after the process has ended."""
        self._watcher.communicate(b"released\n")


def start_guarded(command: Sequence[str], **how: Any) -> tuple["subprocess.Popen[bytes]", ParentDeathGuard]:
    """Start a command that ends when this process ends. Return the process and its guard.

    The command reads nothing from its standard input. A command that cannot be run ends with status 127.

    Parameters
    ----------
    command
        The command line.
    how
        Keyword arguments of `subprocess.Popen`, without `stdin`.
    """
    process = subprocess.Popen(  # noqa: S603
        ["/bin/sh", "-c", GATE, "gate", *command], stdin=subprocess.PIPE, **how
    )
    try:
        guard = ParentDeathGuard(process.pid)
        with suppress(BrokenPipeError), cast("IO[bytes]", process.stdin) as gate:  # broken if the process has ended
            gate.write(b"guarded\n")
    except BaseException:
        process.kill()
        process.wait()
        raise

    return process, guard


Settings = Mapping[str, str | int]

LOG_TAIL_LINES = 20
OWNER_ONLY = 0o077
"""The umask of every process of the stack."""
POLL_SECONDS = 0.02


class ServerError(ShadowtimeError):
    """A server is not available, does not start, does not stop, or rejects a request."""


def open_log(path: Path) -> BinaryIO:
    """Return a log file opened for appending, readable by its owner only."""
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")


class Server(ABC):
    """A server with one data folder and one port.

    Parameters
    ----------
    folder
        Folder for data, log and written configuration; created by `start`, never removed.
    port
        Port on loopback; by default a port that is free now.
    """

    name: str
    start_seconds: ClassVar[float] = 100.0
    stop_seconds: ClassVar[float] = 60.0

    def __init__(self, folder: Path, port: int | None = None) -> None:
        self.folder = folder.resolve()
        self.port = free_port() if port is None else port
        self.log = self.folder / "server.log"
        self._log_start = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: ParentDeathGuard | None = None

    @classmethod
    @abstractmethod
    def available(cls) -> str | None:
        """Return the reason why this server is not available on this machine, or None if it is."""

    @abstractmethod
    def answers(self) -> bool:
        """Return whether the server answers a request within a second."""

    @abstractmethod
    def _command(self) -> list[str]:
        """Write the configuration; return the command line of the server."""

    def settings_for(self, role: str) -> dict[str, str]:
        """Return the settings with which a process of a role reaches this server (`shared/streaming/settings.py`)."""
        return {}

    @property
    def address(self) -> str:
        """Host and port."""
        return f"{HOST}:{self.port}"

    @property
    def running(self) -> bool:
        """Whether the process exists, paused or not."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Process id of the running server. Raise `ServerError` if it does not run."""
        if self._process is None or not self.running:
            raise ServerError(f"{self.name} at {self.address} is not running")
        return self._process.pid

    @property
    def exit_status(self) -> int | None:
        """Exit status of the last process, negative for a signal; None while it runs or before the first start."""
        return None if self._process is None else self._process.poll()

    def start(self, *, wait: bool = True) -> None:
        """Start the server with its existing data. With `wait`, wait until the server answers.

        Raise `ServerError` if it runs already, its program or a port is not available, or it does not answer in time.
        """
        if self.running:
            raise ServerError(f"{self.name} at {self.address} is running already")
        self._release()
        if (reason := self.available()) is not None:
            raise ServerError(reason)
        for port in self._ports():
            if not is_free(port):
                raise ServerError(f"{self.name} cannot listen on {HOST}:{port}: another process does (see ss -tlnp)")
        self._log_start = self.log.stat().st_size if self.log.exists() else 0
        command = self.launch_command()
        with open_log(self.log) as log:
            # The server has its own session: Ctrl-C in a terminal reaches only the parent, which stops its servers.
            self._process, self._guard = start_guarded(
                command,
                cwd=self.folder,
                env=self.environment(),
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                umask=OWNER_ONLY,
            )

        try:
            if wait:
                self._wait_until_it_answers(self._process)
        except BaseException:
            self.kill()
            raise

    def launch_command(self) -> list[str]:
        """Make the folder and write the configuration; return the command line of the server."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        return self._command()

    def stop(self, within: float | None = None) -> None:
        """End the server gracefully. Kill it and raise `ServerError` after `within` seconds, by default `stop_seconds`.

        Nothing happens if it is not running.
        """
        seconds = self.stop_seconds if within is None else within
        if self._process is not None and self.running:
            self._process.send_signal(signal.SIGTERM)
            self._process.send_signal(signal.SIGCONT)  # a paused server would not handle SIGTERM
            try:
                self._process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.kill()
                raise self._error(f"did not stop within {seconds:g} s and was killed") from None

        self._release()

    def kill(self) -> None:
        """End the server by SIGKILL, as in a crash. Nothing happens if it is not running."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._release()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _ports(self) -> list[int]:
        return [self.port]

    def environment(self) -> dict[str, str] | None:
        """Return the environment of the server; None for the environment of this process."""
        return None

    def _wait_until_it_answers(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + self.start_seconds
        while not self.answers():
            if process.poll() is not None:
                raise self._error(f"ended with status {process.returncode} while starting")
            if time.monotonic() > deadline:
                raise self._error(f"does not answer after {self.start_seconds:g} s")
            time.sleep(POLL_SECONDS)

    def _release(self) -> None:
        if self._guard is not None:
            self._guard.release()
        self._guard = None

    def _error(self, what: str) -> ServerError:
        """Return an error that ends with the server's last log lines since its start."""
        logged = self.log.read_bytes()[self._log_start :].decode(errors="replace").splitlines()
        tail = "\n".join(logged[-LOG_TAIL_LINES:]) or "(nothing)"
        return ServerError(f"{self.name} at {self.address} {what}; the end of {self.log}:\n{tail}")
