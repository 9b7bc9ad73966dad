"""Files as programs and sites write them now and then: what is stated is read, and what is unclear is said."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from shadowtime.replayer.logs.formats import read_trace
from shadowtime.replayer.logs.trace import Trace
from shadowtime.shared.accounting import Reading, parse_columns
from shadowtime.shared.cluster import KILLED
from shadowtime.shared.errors import TraceError

JOB: dict[str, Any] = {"submit": 1795325000, "start": 1795325000, "end": 1795325009, "processors": 4, "limit": 60}
HEAD = "submit,start,end,processors,limit"


def read(path: Path, text: str, *columns: str) -> Trace:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return read_trace(path, Reading(parse_columns(columns)))


def facts(trace: Trace, *names: str) -> list[tuple[int, ...]]:
    at = {"submit": 1, "wait": 2, "run": 3, "size": 7, "limit": 8, "status": 10}
    columns = [trace.table[:, at[name]] if name in at else trace.more[name] for name in names]
    return list(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize("as_list", [False, True])
def test_a_key_of_json_may_first_occur_anywhere(tmp_path: Path, as_list: bool) -> None:
    rows = [JOB | {"job_number": number} for number in range(70_000 if as_list else 20_000)]
    rows.append(rows[-1] | {"job_number": 10**6, "gpus": 8, "state": "FAILED"})
    text = json.dumps(rows) if as_list else "\n".join(map(json.dumps, rows)) + "\n"
    trace = read(tmp_path / "jobs.json", text)
    assert facts(trace, "gpus", "status")[-1] == (8, 0)


def test_nested_values_have_names_with_dots(tmp_path: Path) -> None:
    rows = [{"id": n, "t": {"s": 10, "b": 20, "e": 80}, "size": {"cpus": 4}, "limit": 90} for n in range(1, 4)]
    columns = "job_number=id", "submit=t.s", "start=t.b", "end=t.e", "processors=size.cpus"
    for text in (json.dumps(rows), "\n".join(map(json.dumps, rows)) + "\n"):
        assert facts(read(tmp_path / "jobs.json", text, *columns), "wait", "run", "size") == [(10, 60, 4)] * 3


def test_resources_of_slurm_replace_sizes(tmp_path: Path) -> None:
    text = (
        f"{HEAD},tres_alloc\n"
        '1795325000,1795325010,1795328610,1,7200,"1=64,2=256000,4=1,5=64,1001=8"\n'
        '1795325000,1795325010,1795328610,2,7200,"cpu=8,mem=4G,node=2,gres/gpu=2"\n'
        "1795325000,1795325010,1795328610,3,7200,\n"
    )
    trace = read(tmp_path / "jobs.csv", text)
    assert facts(trace, "size", "memory", "nodes", "gpus") == [(64, 256_000, 1, -1), (8, 4096, 2, 2), (3, -1, -1, -1)]


def test_limits_that_a_tenth_of_the_jobs_exceed_are_in_doubt(tmp_path: Path) -> None:
    rows = [f"{9 * n},{9 * n},{9 * n + (20_000 if n % 5 == 0 else 90)},4,1440" for n in range(1, 61)]
    trace = read(tmp_path / "jobs.csv", "\n".join([HEAD, *rows, ""]))
    assert "12 of 60 jobs ran longer than their limits" in trace.doubt
    trace = read(tmp_path / "jobs.csv", "\n".join([HEAD, *rows, ""]), "limit=limit:min")
    assert not trace.doubt
    assert facts(trace, "limit") == [(86_400,)] * 60


def test_run_times_in_minutes_are_seen_beside_many_short_jobs(tmp_path: Path) -> None:
    lasting = [50] * 40 + [7200, 3600, 600, 6000, 1200, 900]
    rows = [f"{9 * n},{9 * n},{9 * n + lasts},4,36000,{lasts // 60}" for n, lasts in enumerate(lasting, 1)]
    with pytest.raises(TraceError, match="6 of 6 jobs have a run time that is not the time between"):
        read(tmp_path / "jobs.csv", "\n".join([f"{HEAD},run_time", *rows, ""]))


def test_the_column_at_fault_may_be_the_run_time(tmp_path: Path) -> None:
    rows = [f"{9 * n},{9 * n},2944000,4,14400" for n in range(1, 9)]
    trace = read(tmp_path / "jobs.csv", "\n".join(["submit,start,run_time,processors,limit", *rows, ""]))
    assert "(of run times with --columns run_time=COLUMN:ms)" in trace.doubt


def test_fractions_of_a_day_are_noted(tmp_path: Path) -> None:
    rows = [f"{9 * n},{9 * n},{9 * n + 50},4,0.006944" for n in range(1, 9)]
    text = "\n".join([HEAD, *rows, ""])
    assert any("--columns limit=limit:d" in note for note in read(tmp_path / "jobs.csv", text).notes)
    assert facts(read(tmp_path / "jobs.csv", text, "limit=limit:d"), "limit") == [(600,)] * 8


def test_a_status_of_exit_codes_is_noted(tmp_path: Path) -> None:
    rows = [f"{9 * n},{9 * n},{9 * n + 50},4,60,{n % 2}" for n in range(1, 9)]
    trace = read(tmp_path / "jobs.csv", "\n".join([f"{HEAD},status", *rows, ""]))
    assert any("leave the column out with status=" in note for note in trace.notes)


def test_missing_values_of_spreadsheets(tmp_path: Path) -> None:
    rows = ["1795325000,1795325000,1795325050,4,60", "1795325000,#N/A,#N/A,4,60"]
    trace = read(tmp_path / "jobs.csv", "\n".join([HEAD, *rows, ""]))
    assert len(trace.table) == 1
    assert "still waiting" in trace.left_out


def test_subfolders_that_state_a_column_are_not_read_as_one(tmp_path: Path) -> None:
    for cluster in "ab":
        (tmp_path / "log" / f"cluster={cluster}" / "year=2026").mkdir(parents=True)
        (tmp_path / "log" / f"cluster={cluster}" / "year=2026" / "p.csv").write_text(f"{HEAD}\n0,5,65,4,60\n")
    with pytest.raises(TraceError, match=r"its subfolders state cluster \('a', 'b'\), which the files lack"):
        read_trace(tmp_path / "log")
    assert len(read_trace(tmp_path / "log" / "cluster=a").table) == 1


SACCT = "JobID|State|Submit|Start|Elapsed|Timelimit|NCPUS\n"


def test_a_cancelled_job_without_an_end_never_ran(tmp_path: Path) -> None:
    row = "7|CANCELLED by 1|2026-03-02T08:00:00|2026-03-02T09:00:00|00:00:00|01:00:00|4\n"
    other = row.replace("7|CANCELLED by 1", "8|COMPLETED").replace(":00|01", ":09|01")
    assert facts(read(tmp_path / "sacct.txt", SACCT + row + other), "run", "wait") == [(-1, -1), (9, 3600)]


def test_a_repeated_field_that_is_not_read_does_no_harm(tmp_path: Path) -> None:
    row = "7|COMPLETED|2026-03-02T08:00:00|2026-03-02T09:00:00|00:00:09|01:00:00|4|0:0|0:0"
    text = f"{SACCT.strip()}|ExitCode|ExitCode\n{row}\n"
    assert facts(read(tmp_path / "sacct.txt", text), "run", "size") == [(9, 4)]


@pytest.mark.parametrize("state", ["LAUNCH_FAILED", "RECONFIG_FAIL"])
def test_a_job_that_slurm_could_not_start_was_killed(tmp_path: Path, state: str) -> None:
    text = SACCT + f"7|{state}|2026-03-02T08:00:00|2026-03-02T09:00:00|00:00:09|01:00:00|4\n"
    assert facts(read(tmp_path / "sacct.txt", text), "status") == [(KILLED,)]


def test_jobs_of_sacct_as_a_list_and_behind_a_message(tmp_path: Path) -> None:
    job = {
        "job_id": 7,
        "time": {
            "submission": 1795325000,
            "eligible": 1795325000,
            "start": 1795325010,
            "end": 1795325070,
            "elapsed": 60,
        },
        "state": {"current": ["COMPLETED"]},
        "tres": {"allocated": [{"type": "cpu", "count": 4}], "requested": [{"type": "cpu", "count": 4}]},
    }
    for text in (json.dumps([job]), "sacct: warning: slow\n" + json.dumps({"jobs": [job]})):
        assert facts(read(tmp_path / "sacct.json", text), "wait", "run", "size") == [(10, 60, 4)]


def test_numbers_with_exponents_and_comments_with_a_hash_in_a_log(tmp_path: Path) -> None:
    row = [1, 0, 5, 60, 4, -1, -1, 4, 600, -1, 1, 1, 1, -1, 1, -1, -1, -1]
    text = "# MaxProcs: 64\n# UnixStartTime: 1795325000\n" + " ".join(f"{value:.18e}" for value in row) + "\n"
    trace = read(tmp_path / "log.swf", text)
    assert (facts(trace, "wait", "run", "limit"), trace.processors) == ([(5, 60, 600)], 64)
    assert trace.unix_start_time == 1795325000


def test_ids_cost_the_same_for_each_job(tmp_path: Path) -> None:
    def seconds(jobs: int) -> float:
        rows = [f"{n}.pbs01,{9 * n},{9 * n},{9 * n + 50},4,60" for n in range(1, jobs + 1)]
        (tmp_path / "jobs.csv").write_text("\n".join([f"job_number,{HEAD}", *rows, ""]))
        begun = time.process_time()
        assert len(read_trace(tmp_path / "jobs.csv").table) == jobs
        return time.process_time() - begun

    seconds(1_000)
    assert seconds(40_000) < 12 * seconds(10_000)


HELD = "Resource_List.ncpus=8 Resource_List.nodect=2 Resource_List.select=2:ncpus=4 exec_host=n1/0*4+n2/0*4"
KEPT = "Resource_List.ncpus=4 Resource_List.nodect=1 Resource_List.select=1:ncpus=4 exec_host=n1/0*4"
RAN = "user=eve queue=q ctime=1795325400 etime=1795325400 Resource_List.walltime=02:00:00 start=1795325409"


@pytest.mark.parametrize("first", ["S", "u"], ids=["whole", "begins while it runs"])
@pytest.mark.parametrize("at_the_end", [HELD, KEPT])
def test_a_job_that_released_nodes_counts_with_what_it_held(tmp_path: Path, first: str, at_the_end: str) -> None:
    end = "end=1795326009 Exit_status=0 resources_used.walltime=00:10:00"
    records = [
        f"11/22/2026 05:30:09;S;7.head;{RAN} {HELD}",
        f"11/22/2026 05:33:00;u;7.head;{RAN} {HELD} resources_used.walltime=00:02:51",
        f"11/22/2026 05:33:00;c;7.head;{RAN} {KEPT}",
        f"11/22/2026 05:36:00;u;7.head;{RAN} {KEPT} resources_used.walltime=00:05:51",
        f"11/22/2026 05:36:00;c;7.head;{RAN} {KEPT}",
        f"11/22/2026 05:40:09;e;7.head;{RAN} {KEPT} {end}",
        f"11/22/2026 05:40:09;E;7.head;{RAN} {at_the_end} {end}",
        f"11/22/2026 05:41:00;E;8.head;{RAN} {KEPT} {end}",
    ]
    trace = read(tmp_path / "20261122", "\n".join(records[first == "u" :]) + "\n")
    assert facts(trace, "wait", "run", "size", "limit", "nodes") == [(9, 600, 8, 7200, 2), (9, 600, 4, 7200, 1)]
    assert [note for note in trace.notes if "released" in note] == [
        "1 job released nodes while they ran, and count with all that they held at first; first job 7.head"
    ]


def test_a_rerun_holds_again_what_was_asked_for(tmp_path: Path) -> None:
    records = [
        f"11/22/2026 05:30:09;S;7.head;{RAN} {HELD}",
        f"11/22/2026 05:33:00;u;7.head;{RAN} {HELD}",
        f"11/22/2026 05:33:00;c;7.head;{RAN} {KEPT}",
        f"11/22/2026 05:34:00;R;7.head;{RAN} {KEPT}",
        f"11/22/2026 05:35:00;S;7.head;{RAN} {HELD}",
        f"11/22/2026 05:45:00;E;7.head;{RAN} {HELD} end=1795326300 Exit_status=0",
    ]
    trace = read(tmp_path / "20261122", "\n".join(records) + "\n")
    assert [size for (size,) in facts(trace, "size")] == [8, 8]
