"""Let no process outlive the tests that started it, directly or not, however they end.

The watcher knows processes by a variable of their environment. Some servers overwrite their environment (Redis does):
those have guards (`stack/servers/server.py`), which the watcher leaves alone.
"""

import os
import subprocess

MARK = "TESTED_BY"  # not one that a process of the stack would take for a setting, and drop
WATCH = """
(
    read -r nothing
    quiet=0
    while [ "$quiet" -lt 3 ]; do  # a process that is being executed has no environment for a moment
        quiet=$((quiet + 1))
        for environment in $(grep -lzsxF "$1" /proc/[0-9]*/environ); do
            process=${environment#/proc/}
            kill -KILL "${process%/environ}" && quiet=0  # what is killed last may have started others
        done
        sleep 0.2
    done
) <&"$2" &
"""


def watch() -> None:
    """Start a shell that kills, once this process has ended, whatever it has started from now on."""
    end, _ = os.pipe()  # the other end is never closed but by the kernel
    subprocess.run(
        ["/bin/sh", "-c", WATCH, "watcher", f"{MARK}={os.getpid()}", str(end)],
        env={"PATH": os.environ.get("PATH", os.defpath)},  # without the mark of whoever started us
        pass_fds=[end],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        check=True,
    )
    os.close(end)
    os.environ[MARK] = str(os.getpid())
