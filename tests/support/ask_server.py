"""`shadowtime ask --serve` as a process."""

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from shadowtime.shared.cli.paths import ROOT
from shadowtime.stack.servers.ports import free_port
from tests.support.patience import PATIENCE


@contextmanager
def ask_served(
    folder: Path, *settings: str, environment: Mapping[str, str] | None = None
) -> Iterator[tuple[int, "subprocess.Popen[bytes]"]]:
    """Run the server with these settings; yield its port and its process. Its log is in `folder`."""
    port = free_port()
    path = folder / "ask.log"
    command = [sys.executable, "-m", "shadowtime", "ask", "--serve", f"--port={port}", *settings]
    with path.open("ab") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
    try:
        until = time.monotonic() + PATIENCE
        while f"http://127.0.0.1:{port}/bound" not in path.read_text():
            assert time.monotonic() < until, path.read_text()
            assert process.poll() is None, path.read_text()
            time.sleep(0.05)
        yield port, process
        assert "Traceback" not in path.read_text()
    finally:
        process.kill()
        process.wait()
