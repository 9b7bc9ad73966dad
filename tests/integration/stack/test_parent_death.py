"""A guarded process ends with its parent: before it has a guard, and when the guard is slow."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from shadowtime.shared.cli.paths import ROOT
from tests.support.processes import alive, descendants, wait_until

BEFORE_THE_GUARD = """
import os, sys
from shadowtime.stack.servers import server

def die(pid):
    print(pid, flush=True)
    os.kill(os.getpid(), 9)

server.ParentDeathGuard = die
server.start_guarded([sys.executable, "-c", f"open({sys.argv[1]!r}, 'w'); import time; time.sleep(900)"])
"""

WATCHED = """
import subprocess, time
from shadowtime.stack.servers.server import start_guarded
from tests.support.watcher import watch

watch()
hidden, guard = start_guarded(["sleep", "900"], env={})  # like Redis, which overwrites its environment
marked = subprocess.Popen(["sleep", "900"])
print(hidden.pid, marked.pid, flush=True)
time.sleep(900)
"""


def start(program: str, *arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def with_words(*words: str) -> set[int]:
    """Return every process whose command line has these words."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if {word.encode() for word in words} <= set(line):
            found.add(int(path.parent.name))
    return found


def test_a_process_whose_parent_dies_before_the_guard_is_there_never_runs(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    with start(BEFORE_THE_GUARD, str(ran)) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
    wait_until(lambda: not alive({pid}), f"process {pid} outlives its parent")
    assert not ran.exists()


def test_a_slow_guard_outlives_the_watcher_of_tests_and_kills_what_that_cannot_find() -> None:
    """On a busy machine the watcher came first, killed the guard, and never found the Redis that the guard guarded."""
    with start(WATCHED) as parent:
        assert parent.stdout is not None
        hidden, marked = map(int, parent.stdout.readline().split())
        (guard,) = descendants(parent.pid) & with_words("guard", str(hidden))
        os.kill(guard, signal.SIGSTOP)
        parent.kill()
    try:
        watcher = with_words("watcher", f"TESTED_BY={parent.pid}")
        wait_until(lambda: not alive({marked, *watcher}), "the watcher does not kill, or does not end")
        assert alive({guard}), "the watcher has killed the guard"
    finally:
        if alive({guard}):
            os.kill(guard, signal.SIGCONT)
        else:
            os.kill(hidden, signal.SIGKILL)
    wait_until(lambda: not alive({hidden}), "the guard does not kill")
