"""Tests beside busy loops, again and again.

Run `python -m tests.support.busy [--loops N] [--times N] [PYTEST'S ARGUMENTS]…`.
Ends with the first run that fails, and with its status.
"""

import argparse
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from shadowtime.shared.cli.command_line import run_app
from shadowtime.shared.cli.paths import ROOT
from shadowtime.stack.servers.server import start_guarded

LOOP = [sys.executable, "-c", "while True: pass"]
TESTS = ["tests/integration/parity", "tests/integration/faults", "-m", "not archive"]


@contextmanager
def busy_loop() -> Iterator[None]:
    """Keep one processor busy; the loop ends with this process, however that ends."""
    loop, guard = start_guarded(LOOP)
    try:
        yield
    finally:
        loop.kill()
        loop.wait()
        guard.release()


def main() -> int:
    """Run the tests that are named, or those that kill servers and workers."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.busy", description=__doc__)
    parser.add_argument("--loops", type=int, default=4, metavar="N", help="busy loops beside the tests (default 4)")
    parser.add_argument("--times", type=int, default=5, metavar="N", help="runs, one after another (default 5)")
    told, arguments = parser.parse_known_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with ExitStack() as loops:
        for _ in range(told.loops):
            loops.enter_context(busy_loop())
        for number in range(1, told.times + 1):
            print(f"run {number} of {told.times} beside {told.loops} busy loops", flush=True)
            status = subprocess.run([sys.executable, "-m", "pytest", "-q", *(arguments or TESTS)], cwd=ROOT).returncode
            if status:
                return status
    return 0


if __name__ == "__main__":
    run_app(main)
