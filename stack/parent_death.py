"""Let no child process outlive its parent.

The kernel offers `PR_SET_PDEATHSIG`, but that follows the *thread* that started the child: a server that a short
thread restarts would die with the thread. So each child has a guard instead. The guard is a shell at the end of a
pipe that only the parent holds open; when the pipe breaks, the guard kills the child.

Two rules close the gaps:

* The child runs its command only once its guard is there. A parent that ends before leaves nothing behind.
* The guard has an empty environment. A tool that ends processes by their environment must not find the guard:
  Redis overwrites its own environment, so after the guard's death nobody would find Redis either.
"""

import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Any, cast

GATE = 'read -r guarded && exec "$@" </dev/null'
WATCH = 'read -r released || kill -KILL "$1"'


class ParentDeathGuard:
    """Kills a process when this one ends, however it ends.

    Parameters
    ----------
    pid
        The process; a child of this one, so that its number stays its own until it is waited for.
    """

    def __init__(self, pid: int) -> None:
        self._watcher = subprocess.Popen(  # noqa: S603
            ["/bin/sh", "-c", WATCH, "guard", str(pid)],
            env={},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # what ends the parent's process group must not end the guard
        )

    def release(self) -> None:
        """Let the process be: it has ended."""
        self._watcher.communicate(b"released\n")


def start_guarded(command: Sequence[str], **how: Any) -> tuple["subprocess.Popen[bytes]", ParentDeathGuard]:
    """Start a command that ends with this process; return the process and its guard.

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
        with suppress(BrokenPipeError), cast("IO[bytes]", process.stdin) as gate:  # broken: it has ended already
            gate.write(b"guarded\n")
    except BaseException:
        process.kill()
        process.wait()
        raise
    return process, guard
