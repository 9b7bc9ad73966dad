"""The command `generate`."""

import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np

from shadowtime.replayer.logs.swf import FIELDS, read_swf
from shadowtime.replayer.logs.trace import BUNDLED
from shadowtime.replayer.logs.workload import prepare
from tests.support.forked import run_forked
from tests.support.generated_log import column


def run_command(*arguments: str) -> tuple[int, str]:
    done = run_forked("generate", *arguments)
    return done.returncode, done.stderr


def test_no_log_is_written_to_a_file_of_another_format(tmp_path: Path) -> None:
    status, told = run_command("--jobs", "9", "--processors", "8", "--seed", "1", "-o", str(tmp_path / "log.csv"))
    assert (status, told.endswith("log.csv: expected a name that ends in .swf or .swf.gz\n")) == (2, True)
    assert not list(tmp_path.iterdir())


def test_bundled_trace_equals_what_its_command_makes(tmp_path: Path) -> None:
    trace = read_swf(BUNDLED)
    made_by = trace.header["Note"].removeprefix("made by ")
    path = tmp_path / "bundled.swf"
    subprocess.run([sys.executable, "-m", *shlex.split(made_by), "-o", str(path)], check=True)
    again = read_swf(path)
    assert (again.name, again.header) == (trace.name, trace.header)
    assert np.array_equal(again.table, trace.table)
    assert BUNDLED.stat().st_size < 150_000


def test_command_writes_a_trace_that_can_be_replayed(tmp_path: Path) -> None:
    path = tmp_path / "made.swf.gz"
    arguments = ["--jobs", "50", "--processors", "16", "--seed", "4"]
    assert run_command(*arguments, "-o", str(path)) == (0, "")
    workload = prepare(read_swf(path))
    assert (len(workload), workload.processors, workload.skipped) == (50, 16, {})


def test_waits_are_those_of_easy_and_change_nothing_else(tmp_path: Path) -> None:
    tables = {}
    for waits in ("easy", "none"):
        path = tmp_path / f"{waits}.swf"
        arguments = ["--jobs", "300", "--processors", "16", "--seed", "4", "--load", "0.9", "--waits", waits]
        assert run_command(*arguments, "-o", str(path)) == (0, "")
        trace = read_swf(path)
        assert trace.header["Note"].endswith(f"--waits {waits}")
        tables[waits] = trace.table
    wait = FIELDS.index("wait_time")
    rest = np.arange(len(FIELDS)) != wait
    assert np.array_equal(tables["easy"][:, rest], tables["none"][:, rest])
    assert np.all(tables["none"][:, wait] == -1)
    assert tables["easy"][:, wait].min() == 0
    assert tables["easy"][:, wait].max() > 0
    # A recorded replay of these waits never holds more processors than there are.
    start = tables["easy"][:, 1] + tables["easy"][:, wait]
    end, size = start + column(tables["easy"], "run_time"), column(tables["easy"], "requested_processors")
    assert max(size[(start <= now) & (end > now)].sum() for now in start) <= 16


def test_command_reports_errors_in_one_line(tmp_path: Path) -> None:
    arguments = ["--jobs", "0", "--processors", "16", "--seed", "4", "-o", str(tmp_path / "made.swf")]
    assert run_command(*arguments) == (2, "error: jobs 0: expected a value from 1 to 10000000\n")
    arguments[1], arguments[-1] = "5", str(tmp_path / "none" / "made.swf")
    code, message = run_command(*arguments)
    assert code == 2
    assert message == f"error: {arguments[-1]}: cannot be written: No such file or directory\n"
