"""`shadowtime check` reports nothing impossible, and names the size of the machine once."""

import os
import threading
from pathlib import Path

import orjson
import pytest

from shadowtime.replayer.commands.check import check
from shadowtime.replayer.logs.formats import read_trace
from shadowtime.replayer.logs.workload import prepare
from shadowtime.shared.errors import SettingsError

TABLE = "job_number,submit,start,end,processors,limit\nx.1,0,100,200,4,200\nx.2,10,100,200,4,200\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.csv"
    path.write_text(TABLE)
    return path


def facts(log: str, capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, object], str]:
    check(log, as_json=True)
    printed = capsys.readouterr()
    return orjson.loads(printed.out), printed.err


def test_the_load_is_of_the_time_in_which_jobs_ran(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert facts(f"{log}@16", capsys)[0]["load"] == 0.5


def test_the_name_of_a_file_may_end_in_a_number(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = log.rename(log.parent / "jobs@12")
    assert facts(str(other), capsys)[0]["log"] == "jobs@12"
    assert facts(f"{other}@64", capsys)[0]["processors"] == 64
    (log.parent / "jobs").write_text(TABLE)
    assert facts(str(other), capsys)[0] == facts(f"{log.parent / 'jobs'}@12", capsys)[0]


def test_the_assumed_size_fits_the_jobs_also_if_some_were_suspended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log.csv"
    rows = "1,0,0,200,100,100,4,200\n2,0,150,250,100,0,4,200\n"
    path.write_text("job_number,submit,start,end,run_time,suspended,processors,limit\n" + rows)
    checked, _ = facts(str(path), capsys)
    assert (checked["processors"], checked["odd"]) == (4, [])


def test_one_of_a_kind_has_no_plural(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log.swf"
    path.write_text("; MaxProcs : 8\n1 0 0 60 1 -1 -1 1 60 -1 1 1 1 1 1 1 -1 -1\n")
    check(str(path))
    printed = " ".join(capsys.readouterr().out.split())
    assert "log: 1 job on 8 processors" in printed
    assert "1 user, 1 account or group, 1 program or job name, 1 queue or partition" in printed


def test_a_size_that_is_stated_gets_no_remark(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert facts(f"{log}@64", capsys)[1] == ""
    assert "8 processors were held at one time, more than the 4 that you give it" in facts(f"{log}@4", capsys)[1]
    told = facts(str(log), capsys)[1]
    assert "8 processors are assumed" in told
    assert "LOG@PROCESSORS or --pools" in told
    assert "--processors" not in told


def test_what_is_unknown_is_no_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log.swf"
    path.write_text("; MaxProcs: 8\n1 0 -1 -1 -1 -1 -1 -1 -1 -1 5 1 1 1 1 1 -1 -1\n")
    found, _ = facts(str(path), capsys)
    assert found["load"] is None
    assert "-1" not in orjson.dumps(found["odd"]).decode()
    check(str(path))
    assert "load unknown" in capsys.readouterr().out


@pytest.mark.parametrize("size", [0, 10_000_001])
def test_a_size_that_no_machine_has_is_refused(log: Path, size: int) -> None:
    with pytest.raises(SettingsError, match=f"processors {size}: a machine has at"):
        check(f"{log}@{size}")


def test_a_time_before_the_log_is_odd(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log.swf"
    path.write_text("; MaxProcs: 8\n1 -100 0 9 4 -1 -1 4 9 -1 1 1 1 1 1 1 -1 -1\n")
    odd = facts(str(path), capsys)[0]["odd"]
    assert odd == [{"what": "submit time negative", "times": 1, "example": "job 1: -100"}]


def test_ids_are_shown_beside_numbers(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = facts(f"{log}@2", capsys)[0]["odd"]
    assert "job 1 ('x.1'): 4 of 2 processors" in orjson.dumps(odd).decode()


def test_unreadable_rows_are_in_the_first_line(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log.write_text(TABLE + "".join(f"{at},0,1,9,1,9\n" for at in range(20)) + "soon\n")
    check(f"{log}@64")
    assert "1 more row cannot be read" in " ".join(capsys.readouterr().out.split("\n")[:2])


def test_the_size_of_a_machine_is_assumed_only_if_nobody_states_it(log: Path) -> None:
    assert prepare(read_trace(log)).assumed_size
    assert not prepare(read_trace(log), 64).assumed_size


def test_a_log_may_come_from_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(TABLE,))
    writer.start()
    trace = read_trace(pipe)
    writer.join()
    assert (trace.name, len(trace.table)) == ("pipe", 2)
