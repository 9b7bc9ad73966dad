"""Let no process outlive the tests that started it, directly or not, however they end.

Servers have guards (`stack/parent_death.py`); what tests start beside them is known by a variable of its environment.
"""

import os
import subprocess

MARK = "TESTED_BY"  # not one that a process of the stack would take for a setting, and drop
WATCH = """
(
    read -r nothing
    for pass in 1 2 3; do  # what is killed last may have started others
        for process in /proc/[0-9]*; do
            grep -qzsxF "$1" "$process/environ" && kill -KILL "${process#/proc/}"
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
