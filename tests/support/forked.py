"""Commands as processes of their own without the seconds in which they import: forked from one that has imported all.

What a command does is as if it was typed, but for the last moments of its interpreter.
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from multiprocessing import get_context
from pathlib import Path

from shadowtime.__main__ import COMMANDS, main
from shadowtime.shared.cli.paths import ROOT
from tests.support.patience import PATIENCE

USED = {f"shadowtime.{COMMANDS[name]}" for name in ("serve", "watch", "replay", "live")}

_context = get_context("forkserver")
_context.set_forkserver_preload(
    ["pytest", *sorted(USED), "shadowtime.replayer.io.streamed", "tests.support.loaded", __name__]
)


class Forked:
    """A command, as typed behind `shadowtime`, with the methods of `subprocess.Popen` that tests use."""

    def __init__(self, arguments: list[str], environment: dict[str, str], log: Path) -> None:
        self._process = _context.Process(target=_command, args=(arguments, environment, ROOT, log, log), daemon=True)
        self._process.start()
        self.pid = self._process.pid or 0

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        assert self._process.exitcode is not None, f"process {self.pid} does not end within {timeout} s"
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def run_forked(
    *arguments: object, folder: Path = ROOT, environment: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Return what a command leaves when it has ended, as `subprocess.run` does.

    It must start no process of its own, and read nothing: its input is that of the tests.
    """
    words = [str(argument) for argument in arguments]
    with tempfile.TemporaryDirectory() as place:
        out, error = Path(place) / "out", Path(place) / "error"
        process = _context.Process(target=_command, args=(words, {**(environment or os.environ)}, folder, out, error))
        process.start()
        process.join(PATIENCE)
        if process.exitcode is None:
            process.kill()
            raise TimeoutError(f"shadowtime {' '.join(words)} does not end within {PATIENCE} s")
        return subprocess.CompletedProcess(words, process.exitcode, out.read_text(), error.read_text())


def _command(arguments: list[str], environment: dict[str, str], folder: Path, out: Path, error: Path) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    further = environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [entry for entry in further if entry and entry not in sys.path]  # read as an interpreter starts
    for number, path in ((1, out), (2, error)):
        with path.open("ab") as file:
            os.dup2(file.fileno(), number)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["shadowtime", *arguments]
    main()
