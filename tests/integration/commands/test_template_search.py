"""The command that searches a log for a template set."""

import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shadowtime.replayer.logs.swf import FIELDS, write_swf
from shadowtime.replayer.logs.trace import BUNDLED
from shadowtime.services.catalogue import canonical
from shadowtime.services.runtime_distribution.templates.template import CHARACTERISTICS
from tests.support.patience import PATIENCE

FEW = ("--population", "6", "--generations", "3", "--jobs", "300")


def search(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "shadowtime", "search-templates", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def written(path: Path, jobs: int, **columns: int) -> Path:
    """Write a log of jobs that wait for a minute."""
    table = np.full((jobs, len(FIELDS)), -1, np.int64)
    known: dict[str, Any] = {
        "job_number": np.arange(1, jobs + 1),
        "submit_time": np.arange(jobs) * 100,
        "wait_time": 60,
        "run_time": 30 + np.arange(jobs) * 37 % 500,
        "requested_processors": 1 + np.arange(jobs) % 4,
        "requested_time": 600 * (1 + np.arange(jobs) % 3),
        "user_id": 1 + np.arange(jobs) % 5,
    }
    for name, column in (known | columns).items():
        table[:, FIELDS.index(name)] = column
    write_swf(path, {"MaxProcs": "8"}, table)
    return path


@pytest.mark.nightly
def test_a_found_set_can_be_loaded_and_does_not_depend_on_workers(tmp_path: Path) -> None:
    files = [tmp_path / f"{workers}.templates" for workers in (1, 3)]
    for workers, file in zip((1, 3), files, strict=True):
        result = search(BUNDLED, "-o", file, "--workers", str(workers), *FEW)
        assert result.returncode == 0, result.stderr
    assert files[0].read_text() == files[1].read_text()
    assert files[0].read_text().startswith("# bundled, first 300 jobs: error ")
    assert (
        "\n# shadowtime search-templates --jobs 300 --population 6 --generations 3 --seed 0\n" in files[0].read_text()
    )
    assert canonical("runtime", f"templates:set={files[0]}").startswith("templates(history=20000,set=")


def test_a_log_without_users(tmp_path: Path) -> None:
    result = search(written(tmp_path / "none.swf", 200, user_id=-1), "-o", "-", *FEW)
    assert result.returncode == 0, result.stderr
    found = [line for line in result.stdout.splitlines() if not line.startswith("#")]
    assert found
    assert not any(each in line for each in CHARACTERISTICS if each != "request" for line in found)


def test_ctrl_c_leaves_no_file_and_says_so(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "shadowtime",
        "search-templates",
        str(BUNDLED),
        "-o",
        str(tmp_path / "found.templates"),
    ]
    heard = partial(signal.signal, signal.SIGINT, signal.default_int_handler)  # also where tests run in the background
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=heard) as process:
        until = time.monotonic() + PATIENCE
        while not list(tmp_path.iterdir()):  # the file is opened as the search begins
            assert time.monotonic() < until
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=PATIENCE)
    assert process.returncode in (130, -signal.SIGINT)  # a repeated signal ends the process; a shell says 130 of both
    assert told == "interrupted; only the sets that were reported are written\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("columns", "jobs", "options", "says"),
    [
        ({}, 99, (), "99 jobs are too few; a search needs at least 100"),
        ({"wait_time": -1}, 200, (), "its jobs have no wait times"),
        ({"submit_time": 7}, 200, (), "nothing to learn from, because no job ends before the last prediction"),
        ({}, 200, ("--population", "7"), "--population 7: expected an even number"),
        ({}, 200, ("--population", "2"), "--population 2: expected at least 4"),
        ({}, 200, ("--generations", "0"), "--generations 0: expected at least 1"),
        ({}, 200, ("--workers", "-1"), "--workers -1: expected at least 0"),
    ],
)
def test_what_cannot_be_searched(
    tmp_path: Path, columns: dict[str, int], jobs: int, options: tuple[str, ...], says: str
) -> None:
    output = tmp_path / "found.templates"
    result = search(written(tmp_path / "log.swf", jobs, **columns), "-o", output, *options)
    assert result.returncode == 2
    assert says in result.stderr
    assert "Traceback" not in result.stderr
    assert not output.exists()
