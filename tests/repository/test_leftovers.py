"""`make gates` and `make test` leave neither server nor worker behind, however they are ended."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from shadowtime.shared.cli.paths import ROOT
from tests.support.patience import PATIENCE
from tests.support.processes import alive, wait_until

ENDLESS = """
import json, os, pathlib, subprocess, sys, time
import pytest

{marker}
def test_that_never_ends(redis_server, tmp_path_factory):
    worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(900)"])
    found = {{"tests": os.getpid(), "server": redis_server.pid, "worker": worker.pid}}
    part = pathlib.Path(__file__).with_name("part")
    part.write_text(json.dumps(found))
    part.rename(part.with_name("pids"))
    time.sleep(900)
"""


@pytest.mark.parametrize("target", ["gates", "test"])
@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGINT, marks=pytest.mark.nightly),
        pytest.param(signal.SIGTERM, marks=pytest.mark.nightly),
        signal.SIGKILL,
    ],
    ids=lambda number: number.name,
)
def test_ended_tests_leave_nothing_behind(tmp_path: Path, target: str, number: signal.Signals) -> None:
    shown = subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True, check=True)
    (command,) = (line for line in shown.stdout.splitlines() if " pytest " in line)
    (tmp_path / "Makefile").write_text(f"{target}:\n\t{command}\n")
    (tmp_path / "test_endless.py").write_text(
        ENDLESS.format(marker="@pytest.mark.archive" if target == "gates" else "")
    )
    options = f"-p tests.conftest -p no:cacheprovider -W ignore -o testpaths={tmp_path} --basetemp={tmp_path / 'b'}"
    environment = os.environ | {"PYTEST_ADDOPTS": options}
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(
            ["make", "-f", str(tmp_path / "Makefile"), target],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        ) as make,
    ):
        wait_until((tmp_path / "pids").exists, "the tests do not begin")
        pids = json.loads((tmp_path / "pids").read_text())
        if number == signal.SIGTERM:
            make.send_signal(number)
        else:  # as a terminal does, to all; or as bad as it can be
            os.killpg(make.pid, number)
        make.wait(PATIENCE)
    wait_until(lambda: not alive(set(pids.values())), f"some of {pids} run on")
