"""Ctrl-C at any moment at which a command starts: one line, and no traceback."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from shadowtime.shared.cli.command_line import INTERRUPTED, run_app
from shadowtime.shared.cli.paths import ROOT
from tests.support.patience import PATIENCE
from tests.support.processes import wait_until

MOMENTS = (0.0, 0.3, 1.0, 3.0)
"""Seconds after the first of the libraries is there: while others are imported, settings read, servers looked for."""


QUIET: dict[str, list[str]] = {"watch decisions": []}
"""Ctrl-C is the way to end it."""


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of a server that takes every connection and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


@pytest.mark.parametrize(
    "typed",
    [
        "serve scheduler --web-port 0",
        pytest.param("serve metrics --web-port 0", marks=pytest.mark.nightly),
        "watch decisions",
        pytest.param("live --port 0", marks=pytest.mark.nightly),
        pytest.param("rebuild scheduler", marks=pytest.mark.nightly),
        pytest.param("ask --cluster kth --processors 4", marks=pytest.mark.nightly),
        pytest.param("ask --serve --port 0", marks=pytest.mark.nightly),
        pytest.param("topics", marks=pytest.mark.nightly),
        pytest.param("replay", marks=pytest.mark.nightly),
        "replay --speed 1",
        pytest.param("replay --transport kafka", marks=pytest.mark.nightly),
        pytest.param("dashboards push --url http://127.0.0.1:SILENT --token abcdefgh", marks=pytest.mark.nightly),
    ],
)
def test_interrupted_at_the_start(typed: str, silent: int, tmp_path: Path) -> None:
    environment = os.environ | {
        "SHADOWTIME_KAFKA_BOOTSTRAP": f"127.0.0.1:{silent}",
        "SHADOWTIME_REDIS_URL": f"redis://127.0.0.1:{silent}/0",
        "SHADOWTIME_CONNECT_SECONDS": "900",
    }
    command = [sys.executable, "-m", "shadowtime", *typed.replace("SILENT", str(silent)).split()]
    running = [
        subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        for _ in MOMENTS
    ]
    try:
        for process in running:
            wait_until(partial(imports, process), "no library")
        began = time.monotonic()
        for moment, process in zip(MOMENTS, running, strict=True):
            time.sleep(max(0.0, began + moment - time.monotonic()))
            process.send_signal(signal.SIGINT)
        for process in running:
            _, told = process.communicate(timeout=PATIENCE)
            ended = process.returncode
            if typed == "replay" and ended == 0:
                continue  # it was quicker
            assert told.splitlines() in (["interrupted"], ["interrupted; no result file was written"], QUIET.get(typed))
            assert ended in (INTERRUPTED, -signal.SIGINT)  # a shell sees the same; Python chooses by where it fell
    finally:
        for process in running:
            process.kill()
            process.communicate()


def imports(process: "subprocess.Popen[str]") -> bool:
    """Return whether a process has begun to import libraries, or has ended."""
    return process.poll() is not None or "_pydantic_core" in Path(f"/proc/{process.pid}/maps").read_text()


def test_interrupted_while_a_kernel_is_loaded() -> None:
    """LLVM calls back into Python then, where `KeyboardInterrupt` would be lost."""
    program = (
        "import ctypes, os, signal\n"
        "from shadowtime.shared.cli.start_up import lasting_imports\n"
        "with lasting_imports():\n"
        "    ctypes.CFUNCTYPE(None)(lambda: os.kill(os.getpid(), signal.SIGINT))()\n"
        "print('went on')\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (INTERRUPTED, "", "interrupted\n")


@pytest.mark.parametrize("pause", [0.0, 0.3])
def test_interrupted_where_an_object_is_let_go(tmp_path: Path, pause: float) -> None:
    """Nothing can be raised there: importlib lets go of a lock after each import, for one. The hook may take long."""
    (tmp_path / "lets_go.py").write_text(
        "import os, signal, threading, time\n"
        "from shadowtime.shared.cli.command_line import run_app\n"
        "start = threading.Thread.start\n"
        f"threading.Thread.start = lambda self: (start(self), time.sleep({pause}))\n"
        "class Held:\n"
        "    def __del__(self):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "def command():\n"
        "    Held()\n"
        "    time.sleep(900)\n"
        "def main():\n"
        "    run_app(command)\n"
    )
    path = f"import sys; sys.path.append({str(tmp_path)!r}); "
    program = path + "from shadowtime.shared.cli.start_up import run; run('lets_go')"
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (INTERRUPTED, "", "interrupted\n")


def test_interrupted_where_a_class_is_made(capsys: pytest.CaptureFixture[str]) -> None:
    """Python 3.11 makes a `RuntimeError` of it: what typer imports while it reads a command line has such classes."""

    class Late:
        def __set_name__(self, owner: type, name: str) -> None:
            raise KeyboardInterrupt

    def command() -> None:
        type("Made", (), {"late": Late()})

    with pytest.raises(SystemExit) as ended:
        run_app(command)
    assert (ended.value.code, capsys.readouterr().err) == (INTERRUPTED, "interrupted\n")


def test_a_fault_where_a_class_is_made_is_no_interruption() -> None:
    def command() -> None:
        raise RuntimeError("no interruption")

    with pytest.raises(RuntimeError, match="no interruption"):
        run_app(command)
