"""LSF's accounting file."""

from pathlib import Path

import pytest

from shadowtime.replayer.logs.formats import read_trace
from shadowtime.shared.accounting import UNKNOWN, Reading
from shadowtime.shared.accounting.systems import lsf
from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.cluster import KILLED, LIMIT


def record(
    *,
    version: str = "10.108",
    start: int = 1_600_000_010,
    begin: int = 0,
    hosts: str = '2 "16*n01" "8*n02"',
    asked: str = "0",
    status: int = 64,
    task: int = 0,
    exit_info: int = 0,
    rest: str = '0 0 43200 4194304 1024 "select[type == any] " "" -1 "" -1 0 "" 0 0 "" 3500 "/root" 0 ""',
) -> str:
    """Return a record as LSF 10.1 writes it. The run of an hour has 100 s of suspension."""
    return (
        f'"JOB_FINISH" "{version}" 1600003610 1001 500 33816578 4 1600000000 {begin} 0 {start} "ann" "normal" "" "" "" '
        f'"login1" "" "" "" "" "1600000000.1001" {asked} {hosts} {status} 60.0 "a ""job""" "run ""1""" 0.1 0.1 0 0 -1 '
        f'0 0 0 0 0 0 0 -1 0 0 0 0 0 -1 "" "phys" 0 4 "" "" {task} 0 0 "" "" "" "" 0 "" {exit_info} "" -1 "" "" "" "" '
        f'-1 "" "" 6160 "" 1600000010 "" "" {rest}\n'
    )


def read(tmp_path: Path, text: str) -> dict[str, int]:
    path = tmp_path / "lsb.acct"
    path.write_text(text)
    rows = lsf.read(path, Reading())
    assert rows.odd.count == 0
    names = ("job_number", "submit", "eligible", "start", "end", "processors", "limit", "suspended", "status")
    return {name: int(rows.column(name)[0]) for name in names}


def test_a_record_is_a_job(tmp_path: Path) -> None:
    assert read(tmp_path, record()) == {
        "job_number": 1001,
        "submit": 1_600_000_000,
        "eligible": 1_600_000_000,
        "start": 1_600_000_010,
        "end": 1_600_003_610,
        "processors": 24,
        "limit": 43_200,
        "suspended": 100,
        "status": 1,
    }


@pytest.mark.parametrize(
    ("hosts", "processors"),
    [('1 "4*n01"', 4), ('4 "n01" "n01" "n02" "n02"', 4), ('1 "n01"', 1), ("0", 4)],
)
@pytest.mark.parametrize("asked", ["0", '2 "n01" "n02"'])
def test_sizes(tmp_path: Path, hosts: str, asked: str, processors: int) -> None:
    assert read(tmp_path, record(hosts=hosts, asked=asked))["processors"] == processors


@pytest.mark.parametrize(
    ("exit_info", "status"), [(0, 0), (5, LIMIT), (6, LIMIT), (14, 5), (15, 5), (16, 0), (1, KILLED), (11, KILLED)]
)
def test_reasons_of_termination(tmp_path: Path, exit_info: int, status: int) -> None:
    assert read(tmp_path, record(status=32, exit_info=exit_info))["status"] == status


def test_a_job_that_never_started(tmp_path: Path) -> None:
    job = read(tmp_path, record(start=0, status=32, hosts="0"))
    assert (job["start"], job["end"], job["status"], job["processors"]) == (UNKNOWN, 1_600_003_610, 5, 4)


def test_tasks_and_times_of_eligibility(tmp_path: Path) -> None:
    job = read(tmp_path, record(task=3, begin=1_600_000_005))
    assert (job["job_number"], job["eligible"]) == (400_001_001, 1_600_000_005)


@pytest.mark.parametrize(
    "rest",
    [
        '2 1032 "0" 1033 "0" 1 n01 1306 0 1287486 242 0 600 0 7 "select[1] " "" -1 "" -1 0 "" 0 0 "" 3600 "/" 0 ""',
        '1 1110 "default" 1 "n01" 1306 0 12 24 600 0 7 "select[1]" "" -1 "" -1 0 "" 0 0 "" 3600 "/" 0 ""',
    ],
)
def test_the_limit_is_behind_lists_of_any_length(tmp_path: Path, rest: str) -> None:
    assert read(tmp_path, record(rest=rest))["limit"] == 600


@pytest.mark.parametrize("rest", ["3", "0", '0 0 -1 0 7 "select[1]" "" -1 "" -1 0 "" 0 0 "" 3600 "/" 0 ""'])
def test_no_limit_is_stated(tmp_path: Path, rest: str) -> None:
    path = tmp_path / "lsb.acct"
    path.write_text(record(rest=rest))
    trace = read_trace(path)
    assert trace.table[0, 8] == MAX_DURATION
    assert any("it states no run time limit (bsub -W)" in note for note in trace.notes)


def test_records_of_old_versions_are_shorter(tmp_path: Path) -> None:
    old = record(version="5.1")
    assert read(tmp_path, old[: old.index(' "" "" 0 "" 0')] + "\n")["status"] == 1


@pytest.mark.parametrize("version", ["10.1.0.14", "8.0.1", "10"])
def test_a_version_may_have_several_points(tmp_path: Path, version: str) -> None:
    assert read(tmp_path, record(version=version, status=32, exit_info=5))["status"] == LIMIT


def test_other_records_are_no_jobs(tmp_path: Path) -> None:
    path = tmp_path / "lsb.acct"
    path.write_text('"EVENT_ADRSV_FINISH" "10.1" 1600003610 1 2 3\n' + record() + "what\n" + record()[:200] + "\n")
    rows = lsf.read(path, Reading())
    assert (len(rows), rows.passed_over, rows.odd.count) == (1, 1, 2)
    assert rows.odd.first[0][0] == 3
