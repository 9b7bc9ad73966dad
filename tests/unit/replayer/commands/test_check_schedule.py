"""Schedules of others: equal or not, the first start that differs and why, and what cannot be compared."""

from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from shadowtime.replayer.analysis.schedule_difference import first_deviation, starts_of
from shadowtime.replayer.commands.check_schedule import check_schedule
from shadowtime.replayer.comparison.plan import RunPlan
from shadowtime.replayer.comparison.records import Schedule
from shadowtime.replayer.comparison.rows import write_schedule
from shadowtime.replayer.logs.other_schedule import read_starts
from shadowtime.replayer.logs.swf import table_of, write_swf
from shadowtime.replayer.logs.workload import Workload
from shadowtime.services.catalogue import configure
from shadowtime.shared.cli.command_line import application
from shadowtime.shared.errors import TraceError
from shadowtime.testing.examples import examples
from shadowtime.testing.workloads import TraceRow, workload, workloads

BLOCKER = TraceRow(1, 0, 4, 1000, 1000)
HEAD = TraceRow(2, 1, 8, 500, 500)
THEIRS = st.sampled_from(["fcfs", "easy", "easy-sjbf", "conservative", "lwf", "wfp"])


def plan(policy: str, jobs: Workload) -> RunPlan:
    return RunPlan(policy, "c", jobs, configure(policy))


def written(path: Path, jobs: Workload, starts: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> Path:
    """Write a log whose waits give these starts."""
    columns = jobs.columns
    known = {"wait_time": starts - columns["submit_time"], "allocated_processors": columns["processors"]}
    write_swf(path, {"MaxProcs": str(jobs.processors)}, table_of({**columns, **jobs.unused, **known}))
    return path


def why(policy: str, theirs: list[int], *rows: TraceRow) -> str:
    of = plan(policy, workload(8, rows))
    return str(first_deviation(of, np.array(theirs), starts_of(of)))


def test_what_they_do_not_backfill_is_told_with_when_the_head_can_start() -> None:
    fits_before = TraceRow(3, 2, 4, 998, 998)
    assert why("easy", [0, 1000, 1500], BLOCKER, HEAD, fits_before) == (
        "job 3: theirs starts at 1500, ours at 2: 4 of 8 processors were free: backfilled, ends by 00:16:40, when job "
        "2 can start as planned"
    )
    beside, narrow = HEAD._replace(processors=6), TraceRow(3, 2, 2, 5000, 5000)
    assert why("easy", [0, 1000, 1001], BLOCKER, beside, narrow) == (
        "job 3: theirs starts at 1001, ours at 2: 4 of 8 processors were free: backfilled, on what job 2 leaves: 2 "
        "procs left over at 00:16:40 as planned"
    )


@pytest.mark.parametrize(
    ("policy", "reasons"),
    [
        (
            "easy",
            "It fits into what is free, but job 2 goes first and must not be delayed. As the policy plans it, job 2 "
            "can start at 00:16:40, leaving 0 procs; started now, this one would run until 00:16:41 on 4 procs.",
        ),
        ("fcfs", "It fits into what is free, but jobs before it go first."),
    ],
)
def test_what_they_backfill_too_boldly_is_told_with_whom_it_delays(policy: str, reasons: str) -> None:
    assert why(policy, [0, 1001, 2], BLOCKER, HEAD, TraceRow(3, 2, 4, 999, 999)) == (
        "job 3: theirs starts at 2, ours at 1500: 4 of 8 processors were free. Before it in the order of the queue "
        f"(fcfs): 1 job, which requests 8 procs in all: 2. {reasons}"
    )


def test_what_does_not_fit_and_what_starts_for_no_reason_at_all() -> None:
    assert why("easy", [0, 5], BLOCKER, HEAD) == (
        "job 2: theirs starts at 5, ours at 1000: 4 of 8 processors were free. It is the first in the order of the "
        "queue (fcfs). It needs 8 procs, and 4 are free."
    )
    assert why("easy", [0, 7], BLOCKER, HEAD._replace(processors=2)) == (
        "job 2: theirs starts at 7, ours at 1: 4 of 8 processors were free: nothing waits ahead of it, and it fits"
    )


@given(jobs=workloads(max_jobs=15), policy=THEIRS)
@examples(30)
def test_a_policy_has_its_own_schedule(jobs: Workload, policy: str) -> None:
    of = plan(policy, jobs)
    assert first_deviation(of, starts_of(of), starts_of(of)) is None


@given(jobs=workloads(max_jobs=15), policy=THEIRS, other=THEIRS)
def test_the_first_start_that_differs_is_told_of_any_two(jobs: Workload, policy: str, other: str) -> None:
    of = plan(policy, jobs)
    ours, theirs = starts_of(of), starts_of(plan(other, jobs))
    told = first_deviation(of, theirs, ours)
    if told is None:
        assert (ours == theirs).all()
        return
    at = min(told.theirs, told.ours)
    before = np.minimum(ours, theirs) < at
    assert (ours[before] == theirs[before]).all()
    assert 0 <= told.free <= told.processors
    assert f"{told.free} of {told.processors} processors were free" in told.why


def test_the_command_tells_by_its_status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    jobs = workload(8, [BLOCKER, HEAD, TraceRow(3, 2, 4, 998, 998)])
    written(tmp_path / "log.swf", jobs, jobs.columns["submit_time"])
    written(tmp_path / "theirs.swf", jobs, starts_of(plan("fcfs", jobs)))
    app = application(check_schedule)
    equal = CliRunner().invoke(app, ["log.swf", "theirs.swf", "--policy", "fcfs"])
    assert (equal.exit_code, equal.output) == (0, "theirs.swf: all 3 jobs start as under fcfs\n")
    other = CliRunner().invoke(app, ["log.swf", "theirs.swf"])
    assert other.exit_code == 1
    assert other.output.startswith("theirs.swf: 1 of 3 jobs do not start as under easy; the first:\njob 3: theirs ")
    as_json = CliRunner().invoke(app, ["log.swf", "theirs.swf", "--json"])
    told = orjson.loads(as_json.output)
    assert (as_json.exit_code, told["different"], told["first"]["job_number"], told["first"]["free"]) == (1, 1, 3, 4)


@pytest.mark.parametrize("ending", ["csv", "parquet", "swf", "swf.gz"])
def test_schedules_as_replay_writes_them_are_read(tmp_path: Path, ending: str) -> None:
    jobs = workload(8, [BLOCKER, HEAD, TraceRow(3, 2, 4, 998, 998)])
    of, rows, path = plan("easy", jobs), Schedule(), tmp_path / f"theirs.{ending}"
    of.replay([rows]).run_to_end()
    with path.open("wb") as file:
        write_schedule(file, path, of, rows)
    assert read_starts(path, jobs).tolist() == [0, 1000, 2]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("1,0,0,4\n2,1,1000,8", "1 of 3 jobs of the log are missing, the first is job 3"),
        ("1,0,0,4\n2,1,1000,8\n3,2,2,4\n3,2,2,4", "job 3 occurs twice"),
        (
            "1,0,0,4\n2,1,1000,8\n3,2,2,4\n9,2,2,4",
            "a replay of the log does not use 1 of 4 jobs, the first is job 9",
        ),
        ("1,0,0,4\n2,1,1000,8\n3,2,1,4", "job 3 starts at 1, before its submission at 2"),
        ("1,0,0,4\n2,5,1000,8\n3,2,2,4", "job 2 is submitted at 5, in the log at 1"),
        ("1,0,0,4\n2,1,1000,9\n3,2,2,4", "job 2 takes 9 processors; the machine has 8"),
        ("1,0,0,4\n2,1,900,8\n3,2,2,4", "job 2 starts at 900, when 16 processors would be in use; the machine has 8"),
        ("", "3 of 3 jobs of the log are missing, the first is job 1"),
        ("1,0,0", "processors of whole numbers: a missing value is not a whole number"),
        ("1,0,zero,4", "expected columns job_number, .*, processors of whole numbers: 'zero' is not a whole number"),
        ("1,0,0.5,4", "whole numbers: '0.5' is not a whole number"),
        ("1,0,1e400,4", "whole numbers: '1e400' is not a whole number"),
        ("1,0,0,4\n2,1,1,000,8\n3,2,2,4", "line 3 has more values than there are columns"),
        (f"1,0,0,4\n2,1,{2**63 - 1},8\n3,2,2,4", f"whole numbers: '{2**63 - 1}' is not a whole number"),
        ("1,0,0,4\n2,1,1000,0\n3,2,2,4", "job 2 takes 0 processors"),
    ],
)
def test_what_cannot_be_compared_is_named(tmp_path: Path, rows: str, message: str) -> None:
    jobs = workload(8, [BLOCKER, HEAD, TraceRow(3, 2, 4, 998, 998)])
    path = tmp_path / "theirs.csv"
    path.write_text(f"job_number,submit_time,start_time,processors\n{rows}\n")
    with pytest.raises(TraceError, match=message):
        read_starts(path, jobs)


def test_whole_numbers_may_be_written_as_fractions(tmp_path: Path) -> None:
    """pandas writes them so if a column had missing values."""
    path = tmp_path / "theirs.csv"
    path.write_text("job_number,submit_time,start_time,processors\n1,0,5.0,4.0\n")
    assert read_starts(path, workload(8, [BLOCKER])).tolist() == [5]
    path.write_text("job,submit_time,start_time,processors\n1,0,5,4\n")
    with pytest.raises(TraceError, match=r"of whole numbers: there is no job_number$"):
        read_starts(path, workload(8, [BLOCKER]))


def test_a_column_that_is_there_twice_is_none(tmp_path: Path) -> None:
    path = tmp_path / "theirs.csv"
    path.write_text("job_number,submit_time,start_time,processors,start_time\n1,0,0,4,7\n")
    with pytest.raises(TraceError, match="a column occurs twice"):
        read_starts(path, workload(8, [BLOCKER]))


def test_fractions_are_no_starts_in_whatever_format(tmp_path: Path) -> None:
    """A start at 1000.9 is not the one at 1000."""
    jobs, path = workload(8, [BLOCKER, HEAD]), tmp_path / "theirs.parquet"
    columns = {"job_number": [1, 2], "submit_time": [0, 1], "processors": [4, 8]}
    for starts, wrong in (([0.0, 1000.9], "'1000.9' is"), ([0.0, float("nan")], "'nan' is"), ([0, None], "a missing")):
        pq.write_table(pa.table({**columns, "start_time": starts}), path)
        with pytest.raises(TraceError, match=f"of whole numbers: .*{wrong}"):
            read_starts(path, jobs)
    pq.write_table(pa.table({**columns, "start_time": [0.0, 1000.0]}), path)
    assert read_starts(path, jobs).tolist() == [0, 1000]


@pytest.mark.parametrize("name", ["theirs.csv", "theirs.parquet", "theirs.swf"])
def test_a_file_that_is_not_there_or_no_schedule_is_one_line(tmp_path: Path, name: str) -> None:
    jobs = workload(8, [BLOCKER, HEAD])
    with pytest.raises(TraceError, match=f"{name}.*No such file"):
        read_starts(tmp_path / name, jobs)
    (tmp_path / name).write_bytes(b"\x00\xff rubbish")
    with pytest.raises(TraceError, match=name):
        read_starts(tmp_path / name, jobs)


def test_a_log_without_waits_is_no_schedule(tmp_path: Path) -> None:
    jobs = workload(8, [BLOCKER, HEAD])
    path = written(tmp_path / "theirs.swf", jobs, jobs.columns["submit_time"] - 1)
    with pytest.raises(TraceError, match="job 1 has no wait time"):
        read_starts(path, jobs)
