"""Let no child process outlive its parent.

The kernel's own means (`PR_SET_PDEATHSIG`) follows the *thread* that started the child: a server that a test
restarts from a short thread would die with it. So each child has a watcher instead, a shell at the end of a
pipe that only the parent holds open; when the pipe breaks, the watcher kills.
"""

import subprocess

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
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # what ends the parent's process group must not end the watcher
        )

    def release(self) -> None:
        """Let the process be: it has ended."""
        self._watcher.communicate(b"released\n")
