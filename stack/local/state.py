"""The supervisor's state: a lock that it holds while it runs, and a file with the state of its processes."""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from shadowtime.shared.private_files import read_private, write_private
from shadowtime.stack.servers import ServerError

LOOK_SECONDS = 1.0
"""Seconds to wait for the lock: `supervisor_of` holds it for a moment, too."""


@dataclass(frozen=True)
class Process:
    """State of one process of the stack."""

    name: str
    address: str
    pid: int | None
    restarts: int
    healthy: bool
    failure: str
    log: str


@dataclass(frozen=True)
class StackState:
    """State of the stack. `expected` is the number of processes that it should have."""

    supervisor: int
    expected: int
    processes: tuple[Process, ...]

    @property
    def healthy(self) -> bool:
        """Whether every expected process exists and is healthy."""
        return len(self.processes) == self.expected and all(process.healthy for process in self.processes)


@contextmanager
def hold_lock(folder: Path) -> Iterator[None]:
    """Hold the lock of a stack. The kernel releases it when the process ends, even after a kill.

    Raise `ServerError` if another process holds the lock for `LOOK_SECONDS`, or the file system has no locks.
    """
    with (folder / "lock").open("a+") as file:
        deadline = time.monotonic() + LOOK_SECONDS
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise ServerError(
                        f"a supervisor already runs in {folder}; end it with shadowtime stack down"
                    ) from None
                time.sleep(0.02)
            except OSError as error:
                raise _unlockable(folder, error) from None

        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def supervisor_of(folder: Path) -> int | None:
    """Return the process id of the supervisor that runs in `folder`; None if no supervisor runs.

    Raise `ServerError` if the file system has no locks.
    """
    try:
        with (folder / "lock").open("r+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return int(file.read() or 0) or None
            except OSError as error:
                raise _unlockable(folder, error) from None
    except (FileNotFoundError, NotADirectoryError):
        pass

    return None


def _unlockable(folder: Path, error: OSError) -> ServerError:
    """Return the error for a file system without locks, such as some mounts of NFS and Lustre."""
    return ServerError(f"{folder / 'lock'} cannot be locked: {error.strerror}; choose a local disk with --folder")


def write_state(folder: Path, state: StackState) -> None:
    """Replace the state atomically: readers see the old one or the new one."""
    write_private(folder / "state.json", json.dumps(asdict(state)))


def read_state(folder: Path) -> StackState | None:
    """Return the state of the stack that runs in `folder`; None if there is none yet."""
    try:
        document = json.loads(read_private(folder / "state.json"))
    except FileNotFoundError:
        return None
    return StackState(
        document["supervisor"], document["expected"], tuple(Process(**values) for values in document["processes"])
    )
