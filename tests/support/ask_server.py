"""`shadowtime ask --serve` as a process."""

import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from shadowtime.shared.cli.paths import ROOT
from shadowtime.stack.servers.ports import free_port
from tests.support.patience import PATIENCE
from tests.support.processes import wait_until


@contextmanager
def ask_served(environment: Mapping[str, str]) -> Iterator[int]:
    """Run the server with the settings in an environment, and yield its port once it answers."""
    port = free_port()
    command = [sys.executable, "-m", "shadowtime", "ask", "--serve", "--port", str(port)]
    process = subprocess.Popen(command, cwd=ROOT, env=environment)

    def healthy() -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=PATIENCE) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    try:
        wait_until(healthy, "ask --serve does not answer")
        yield port
    finally:
        process.terminate()
        process.wait(PATIENCE)
