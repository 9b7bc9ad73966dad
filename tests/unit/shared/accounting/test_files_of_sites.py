"""Files as sites keep them: parts of a log in a folder, appended dumps, older fields, notations of other programs."""

import gzip
import io
import json
import pickle
import re
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from shadowtime.replayer.logs.formats import read_trace
from shadowtime.replayer.logs.trace import Trace
from shadowtime.replayer.logs.workload import prepare
from shadowtime.shared.accounting import parse_columns, preset_columns
from shadowtime.shared.accounting.reading import Reading
from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.errors import TraceError
from tests.unit.shared.accounting.reading import JOB

SACCT = "JobID|State|Submit|Start|End|Timelimit|AllocCPUS\n"
TABLE = "job,submit,start,end,cores,limit\n"
COLUMNS = "job_number=job,processors=cores"


def written(folder: Path, text: str | bytes, name: str = "log.txt") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def trace_of(folder: Path, text: str | bytes, columns: str = "", **reading: object) -> Trace:
    mapping = parse_columns([columns] if columns else [])
    return read_trace(written(folder, text), Reading(mapping, **reading))  # type: ignore[arg-type]


def facts(trace: Trace, *names: str) -> list[tuple[int, ...]]:
    """Return columns of the jobs, -1 if unknown: number, wait, run time, processors and limit, unless named."""
    names = names or ("job_number", "wait_time", "run_time", "processors", "requested_time")
    jobs = prepare(trace, recorded=True)
    return [tuple(-1 if (value := getattr(job, name)) is None else value for name in names) for job in jobs]


def sacct_row(job: object = 1, state: str = "COMPLETED", begun: int = 10, end: str = "09:10", more: str = "") -> str:
    day = "2026-03-02T"
    return f"{job}|{state}|{day}08:00:00|{day}08:{begun}:00|{day}{end}:00|02:00:00|4{more}\n"


RAN = (600, 3600, 4, 7200)
"""Wait, run time, processors and limit of `sacct_row`."""


def test_a_folder_is_the_log_of_its_files_in_order(tmp_path: Path) -> None:
    day = "01/27/2026"
    asked = (
        "user=ann group=g jobname=a queue=b ctime=1769468400 qtime=1769468400 etime=1769468400 start=1769470200 "
        "owner=ann@l exec_host=c1/0-3 Resource_List.nodes=1:ppn=4 Resource_List.walltime=02:00:00"
    )
    written(tmp_path, f"{day} 23:30:00;S;300.h;{asked}", "acct/20260126")
    ended = f"{day} 00:30:00;E;300.h;{asked} end=1769473800 Exit_status=0\n"
    written(tmp_path, gzip.compress(ended.encode()), "acct/20260127.gz")
    written(tmp_path, "not a part of it", "acct/.20260127.swp")
    trace = read_trace(tmp_path / "acct")
    assert (facts(trace), trace.name, trace.left_out) == ([(300, 1800, 3600, 4, 7200)], "acct", {})


def test_months_of_sacct_in_a_folder_share_jobs(tmp_path: Path) -> None:
    running = "2|RUNNING|2026-03-31T23:00:00|2026-03-31T23:10:00|Unknown|02:00:00|4"
    ended = "2|COMPLETED|2026-03-31T23:00:00|2026-03-31T23:10:00|2026-04-01T00:10:00|02:00:00|4\n"
    written(tmp_path, SACCT + sacct_row() + running, "2026/03.txt")
    written(tmp_path, SACCT + ended, "2026/04.txt")
    assert facts(read_trace(tmp_path / "2026")) == [(1, *RAN), (2, *RAN)]


def test_parts_of_a_table_in_a_folder(tmp_path: Path) -> None:
    values = zip(TABLE.strip().split(","), (1, 0, 5, 65, 4, 60), strict=True)
    table = pyarrow.table({name: [value] for name, value in values})
    (tmp_path / "parts").mkdir()
    parquet.write_table(table, tmp_path / "parts" / "0.parquet")
    parquet.write_table(table.set_column(0, "job", [[2]]), tmp_path / "parts" / "1.parquet")
    trace = read_trace(tmp_path / "parts", Reading(parse_columns([COLUMNS])))
    assert facts(trace) == [(1, 5, 60, 4, 60), (2, 5, 60, 4, 60)]


def test_a_folder_without_files_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="a folder without files"):
        read_trace(tmp_path)


def test_a_further_header_applies_to_the_rows_behind_it(tmp_path: Path) -> None:
    other = "JobID|User|State|Submit|Start|End|Timelimit|AllocCPUS|NNodes\n"
    row = sacct_row(2).replace("2|", "2|eve|", 1).replace("\n", "|3\n")
    trace = trace_of(tmp_path, SACCT + sacct_row() + SACCT + other + row + SACCT + sacct_row(3))
    assert facts(trace, "job_number", "processors", "nodes") == [(1, 4, -1), (2, 4, 3), (3, 4, -1)]
    assert (trace.left_out, sorted(job.user_id or 0 for job in prepare(trace))) == ({}, [0, 0, 1])


def test_a_header_and_its_ruler_may_recur(tmp_path: Path) -> None:
    lines = [SACCT, "|".join(["-" * 20] * 7) + "\n", sacct_row()]
    month = "".join("".join(f"{field:>20} " for field in line.strip().split("|")) + "\n" for line in lines)
    trace = trace_of(tmp_path, month + month.replace(" 1 ", " 2 ", 1))
    assert (facts(trace), trace.left_out) == ([(1, *RAN), (2, *RAN)], {})


ROW_BY_COLUMN = {"submit": 10, "start": 12, "end": 20, "processors": 4, "limit": 60}


def test_files_of_a_folder_may_have_their_columns_in_any_order(tmp_path: Path) -> None:
    first, columns = [*ROW_BY_COLUMN], [*ROW_BY_COLUMN, "user"]
    for at, names in enumerate((first, first[::-1], [*columns[3:], *columns[:3]], first)):
        values = ROW_BY_COLUMN | {"user": "eve"}
        rows = "".join(",".join(str(values[name]) for name in names) + "\n" for _ in range(2))
        (tmp_path / f"{at}.csv").write_text(f"{','.join(names)}\n{rows}")
    trace = read_trace(tmp_path)
    expected = [(10, 2, 8, 4, 60)] * 8
    assert facts(trace, "submit_time", "wait_time", "run_time", "processors", "requested_time") == expected
    assert not trace.left_out
    (tmp_path / "4.csv").write_text("submit,start,end,cores,limit\n10,12,20,4,60\n")
    with pytest.raises(TraceError, match="line 13: another head, without the column 'processors', which the first"):
        read_trace(tmp_path)


def test_files_of_parquet_may_have_their_columns_in_any_order(tmp_path: Path) -> None:
    for at, names in enumerate(([*ROW_BY_COLUMN], [*ROW_BY_COLUMN][::-1])):
        parquet.write_table(pyarrow.table({name: [ROW_BY_COLUMN[name]] for name in names}), tmp_path / f"{at}.parquet")
    assert facts(read_trace(tmp_path), "submit_time", "run_time", "requested_time") == [(10, 8, 60)] * 2
    parquet.write_table(pyarrow.table({name: [1] for name in [*ROW_BY_COLUMN][:4]}), tmp_path / "2.parquet")
    with pytest.raises(TraceError, match="a later file has no column 'limit', which the first one has"):
        read_trace(tmp_path)


def test_columns_without_a_name_or_of_the_same_name_harm_nothing_if_they_are_not_read(tmp_path: Path) -> None:
    text = "submit,start,end,processors,limit,note,note,,\n10,12,20,4,60,a,b,,\n"
    assert facts(trace_of(tmp_path, text), "submit_time", "requested_time") == [(10, 60)]
    with pytest.raises(TraceError, match="several columns are called 'note'; rename them"):
        trace_of(tmp_path, text, "user=note")


@pytest.mark.parametrize("delimiter", [" ", ",", "\t"])
def test_the_names_of_rows_that_r_writes_have_no_column(tmp_path: Path, delimiter: str) -> None:
    head = delimiter.join(f'"{name}"' for name in ROW_BY_COLUMN)
    rows = "".join(delimiter.join((f'"{number}"', *map(str, ROW_BY_COLUMN.values()))) + "\n" for number in (1, 2, 3))
    trace = trace_of(tmp_path, f"{head}\n{rows}", delimiter=delimiter)
    assert facts(trace, "submit_time", "run_time", "requested_time") == [(10, 8, 60)] * 3


def test_the_head_of_an_appended_table_is_no_row(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, TABLE + "1,0,5,65,4,60\n" + TABLE + "2,0,5,65,4,60\n", COLUMNS)
    assert (facts(trace), trace.left_out) == ([(1, 5, 60, 4, 60), (2, 5, 60, 4, 60)], {})


@pytest.mark.parametrize(
    ("head", "tail"),
    [
        ("# exported by eve\n# of c1, all queues\n", ""),
        ("#", ""),
        ("sep=,\n", ""),
        ("Jobs of c1, all queues\n\n", ""),
        ("", ", 7"),
    ],
)
def test_what_may_precede_the_names_of_columns(tmp_path: Path, head: str, tail: str) -> None:
    row = "1, 0, 5, 65, 4, 60" if tail else "1,0,5,65,4,60"
    assert facts(trace_of(tmp_path, f"{head}{TABLE}{row}\n", COLUMNS)) == [(1, 5, 60, 4, 60)]


def test_values_in_place_of_names_are_recognised(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"if its first line has values in place of names, .* --fields A,B"):
        trace_of(tmp_path, "1,0,5,65,4,60\n2,0,5,65,4,60\n")
    fields = ("job_number", "submit", "start", "end", "processors", "limit")
    assert len(facts(trace_of(tmp_path, "1,0,5,65,4,60\n2,0,5,65,4,60\n", fields=fields))) == 2


def test_blanks_may_separate_columns(tmp_path: Path) -> None:
    text = "job  submit   start end cores limit\n1    0        5     65  4     60\n"
    assert facts(trace_of(tmp_path, text, COLUMNS, delimiter=" ")) == [(1, 5, 60, 4, 60)]


def test_numbers_that_pandas_writes_with_a_fraction(tmp_path: Path) -> None:
    text = (
        ",JobID,State,Submit,Start,End,TimelimitRaw,AllocCPUS,ElapsedRaw\n"
        "0,1.0,COMPLETED,2026-03-02 08:00:00,2026-03-02 08:10:00,2026-03-02 09:10:00,120.0,4.0,3600.0\n"
        "1,2.0,CANCELLED,2026-03-02 08:00:00,NaT,2026-03-02 09:10:00,120.0,,0.0\n"
    )
    assert (
        facts(trace_of(tmp_path, text)) == [(1, *RAN), (2, -1, -1, -1, 7200)]
        or len(facts(trace_of(tmp_path, text))) == 1
    )


@pytest.mark.parametrize(
    ("state", "status"), [("CD", 1), ("F", 0), ("TO", 100), ("CA", 5), ("OOM", 0), ("completed", 1), ("CANCELED", 5)]
)
def test_short_codes_of_states(tmp_path: Path, state: str, status: int) -> None:
    assert facts(trace_of(tmp_path, SACCT + sacct_row(state=state)), "status") == [(status,)]


@pytest.mark.parametrize(
    ("state", "status"),
    [
        ("Pass", 1),
        ("Killed", 5),
        ("Failed", 0),
        ("DONE", 1),
        ("EXIT", 0),
        ("COMPLETED_WALLTIME_REACHED", 100),
        ("Node Fail", 101),
        ("out of memory", 0),
        ("timed-out", 100),
        ("CANCELLED by 7", 5),
        ("F", -1),
    ],
)
def test_states_of_other_systems_in_a_table(tmp_path: Path, state: str, status: int) -> None:
    text = TABLE.replace("limit", "limit,state") + f"1,0,5,65,4,60,{state}\n"
    assert facts(trace_of(tmp_path, text, COLUMNS), "status") == [(status,)]


def test_quotes_with_a_backslash_as_spark_and_mysql_write_them(tmp_path: Path) -> None:
    names = (r'"a \"b\", c"', r'"5\" disk"', r'"C:\"', '"a ""b"""', "plain")
    rows = "".join(f"{at},{at},{at + 9},4,60,{name}\n" for at, name in enumerate(names))
    trace = trace_of(tmp_path, f"submit,start,end,processors,limit,job_name\n{rows}")
    assert (len(trace.table), trace.left_out) == (len(names), {})


def test_fractions_of_gpus_name_the_option_that_ignores_them(tmp_path: Path) -> None:
    text = "submit,start,end,processors,limit,gpus\n" + "".join(f"{i},{i},{i + 9},4,60,{i / 2}\n" for i in range(4))
    with pytest.raises(TraceError, match=r"gpus is '0\.5', which is not a whole number \(--columns gpus= ignores the"):
        trace_of(tmp_path, text)
    assert len(trace_of(tmp_path, text, "gpus=").table) == 4


def test_exit_codes_are_no_status(tmp_path: Path) -> None:
    text = "submit,start,end,processors,limit,status\n" + "".join(
        f"{i},{i},{i + 9},4,60,{i % 2 * 137}\n" for i in range(4)
    )
    trace = trace_of(tmp_path, text)
    assert facts(trace, "status") == [(-1,)] * 4
    assert "column 'status' has '137', which is no status" in trace.notes[0]
    assert facts(trace_of(tmp_path, text.replace("137", "1")), "status") == [(0,), (1,), (0,), (1,)]


@pytest.mark.parametrize(("number", "status"), [(3, 1), (4, 5), (5, 0), (6, 100), (11, 0), (1024, 101)])
def test_states_by_the_numbers_of_the_database(tmp_path: Path, number: int, status: int) -> None:
    text = (
        "id_job,state,time_submit,time_eligible,time_start,time_end,time_suspended,timelimit,cpus_req,nodes_alloc,"
        f"id_user,partition\n1,{number},1795325000,1795325000,1795325010,1795328610,0,120,4,1,7,batch\n"
    )
    trace = read_trace(written(tmp_path, text), Reading(preset_columns("slurm-database")))
    assert facts(trace, "status", "requested_time") == [(status, 7200)]


@pytest.mark.parametrize(
    ("asked", "memory"), [("4Gn", 8192), ("2000Mc", 8000), ("16G", 16_384), ("0n", -1), ("", -1), ("1.50Gn", 3072)]
)
def test_memory_of_older_sacct(tmp_path: Path, asked: str, memory: int) -> None:
    text = SACCT.strip() + "|NNodes|ReqMem\n" + sacct_row(more=f"|2|{asked}")
    assert facts(trace_of(tmp_path, text), "memory") == [(memory,)]
    listed = text.replace("NNodes", "NNodes|ReqTRES").replace(f"|2|{asked}", f"|2|cpu=4,mem=7M|{asked}")
    assert facts(trace_of(tmp_path, listed), "memory") == [(7,)]


def test_gpus_of_older_sacct_are_those_of_each_node(tmp_path: Path) -> None:
    text = SACCT.strip() + "|NNodes|ReqGRES\n" + sacct_row(more="|2|gpu:tesla:2")
    assert facts(trace_of(tmp_path, text), "gpus") == [(4,)]


OF_XDMOD = (
    "7_{}|7|c1|batch|acc|g|1|u1|2|2026-03-02T08:00:00|2026-03-02T08:00:00|2026-03-02T08:10:00|2026-03-02T09:10:00|"
    "01:00:00|0:0|COMPLETED|2|4|4|3000Mc|gpu:1|{}02:00:00|n01|run\n"
)


@pytest.mark.parametrize("tres", ["|", "||"])
def test_orders_of_xdmod_with_requested_devices(tmp_path: Path, tres: str) -> None:
    text = "".join(OF_XDMOD.format(task, tres) for task in range(3))
    kinds = ("wait_time", "run_time", "processors", "requested_time", "memory", "gpus")
    assert facts(trace_of(tmp_path, text), *kinds) == [(*RAN, 12_000, 2)] * 3


def test_an_order_with_more_fields_than_the_known_ones_is_not_guessed(tmp_path: Path) -> None:
    text = "".join(OF_XDMOD.format(task, "|x|y|") for task in range(3))
    with pytest.raises(TraceError, match="--fields"):
        trace_of(tmp_path, text)


def test_columns_may_be_named_as_the_file_spells_them(tmp_path: Path) -> None:
    text = "jobid|user|state|submit|start|end|max_minutes|reqcpus\n1|eve|COMPLETED|0|600|4200|120|4\n"
    trace = trace_of(tmp_path, text, "limit=max_minutes,processors=reqcpus")
    assert facts(trace) == [(1, *RAN)]
    assert trace.notes[0].startswith("limit is read in minutes, as the name of column 'max_minutes' says")


def test_a_unit_of_limits_in_doubt_is_refused_in_sacct_too(tmp_path: Path) -> None:
    text = "JobID|State|Submit|Start|End|mine|AllocCPUS\n1|COMPLETED|0|600|4200|120|4\n"
    with pytest.raises(TraceError, match=r"--columns limit=mine:min"):
        prepare(trace_of(tmp_path, text, "limit=mine"))
    assert facts(trace_of(tmp_path, text, "limit=mine:min")) == [(1, *RAN)]


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        (['1,"0","5","3,665","1,024","7,200"'], COLUMNS),
        (["1;0;5;3665;1.024;2,0"], COLUMNS + ",limit=limit:h"),
        (["1;0;5;3665;1024;2,0"], COLUMNS + ",limit=limit:h"),
    ],
)
def test_separators_of_thousands_and_decimal_commas(tmp_path: Path, rows: Sequence[str], columns: str) -> None:
    head = TABLE if rows[0].startswith("1,") else TABLE.replace(",", ";")
    assert facts(trace_of(tmp_path, head + "\n".join(rows) + "\n", columns)) == [(1, 5, 3660, 1024, 7200)]


def test_a_point_that_may_separate_thousands_is_not_cut_off(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"'1.024', which is not a whole number"):
        trace_of(tmp_path, TABLE + "1,0,5,3665,1.024,7200\n", COLUMNS)


@pytest.mark.parametrize(
    "text", ["Sun Nov 22 05:23:20 2026", f"Sun Nov 22 05:23:20 UTC {2026}", "22-Nov-2026 05:23:20"]
)
def test_dates_with_the_name_of_a_month(tmp_path: Path, text: str) -> None:
    rows = TABLE + f"1,{text},{text},{text.replace('05:', '06:')},4,7200\n"
    assert facts(trace_of(tmp_path, rows, COLUMNS)) == [(1, 0, 3600, 4, 7200)]


def test_missing_values_of_mysql(tmp_path: Path) -> None:
    rows = TABLE + "1,2026-11-22 05:23:20,\\N,0000-00-00 00:00:00,4,7200\n2,2026-11-22,2026-11-22,2026-11-23,4,\\N\n"
    trace = trace_of(tmp_path, rows, COLUMNS)
    assert facts(trace) == [(2, 0, 86_400, 4, MAX_DURATION)]
    assert list(trace.left_out) == ["still waiting"]


@pytest.mark.parametrize(("text", "seconds"), [("1.5 hours", 5400), ("0.5h", 1800), ("1:02:00:00", 93_600)])
def test_durations_with_fractions_and_days(tmp_path: Path, text: str, seconds: int) -> None:
    assert facts(trace_of(tmp_path, TABLE + f"1,0,5,65,4,{text}\n", COLUMNS), "requested_time") == [(seconds,)]


def test_requests_of_torque_and_moab_in_other_places(tmp_path: Path) -> None:
    asked = "04/27/2026 23:59:13;E;{};user=u ctime=1777324000 start=1777325000 end=1777330000 exec_host=n7/0-27 {}\n"
    forms = (
        "Resource_List.nodect=1:ppn=28:gpu=4 Resource_List.walltime=1:02:00:00",
        "Resource_List.nodes=1:ppn=28 Resource_List.gpu=2 Resource_List.walltime=02:00:00",
    )
    text = "".join(asked.format(job, form) for job, form in enumerate(forms, 1))
    kinds = ("processors", "nodes", "gpus", "requested_time")
    assert facts(trace_of(tmp_path, text), *kinds) == [(28, 1, 4, 93_600), (28, 1, 2, 7200)]


def test_the_chunks_that_a_job_of_pbs_selects(tmp_path: Path) -> None:
    text = (
        "01/27/2026 00:30:00;E;300.h;user=u ctime=1769468400 start=1769470200 end=1769473800 "
        "Resource_List.select=2:ncpus=16:ngpus=4+1:ncpus=4 Resource_List.walltime=02:00:00\n"
    )
    kinds = ("processors", "nodes", "gpus", "requested_time")
    assert facts(trace_of(tmp_path, text), *kinds) == [(36, 3, 8, 7200)]


def test_unknown_states_are_odd_rows(tmp_path: Path) -> None:
    rows = "".join(sacct_row(job) for job in range(9))
    odd = sacct_row(9, "PONDERING")
    assert trace_of(tmp_path, SACCT + rows + odd).left_out == {
        "unreadable": (1, "line 11: unknown State 'PONDERING'; expected a state of Slurm such as COMPLETED")
    }
    with pytest.raises(TraceError, match="2 of 11 rows cannot be read, more than a tenth: line 11: unknown State 'PON"):
        trace_of(tmp_path, SACCT + rows + odd + odd)


def test_names_of_columns_in_capital_letters(tmp_path: Path) -> None:
    text = "JOB_NUMBER,SUBMIT,START,END,PROCESSORS,LIMIT\n1,0,5,65,4,60\n"
    assert facts(trace_of(tmp_path, text)) == [(1, 5, 60, 4, 60)]


def test_a_table_of_the_standard_format(tmp_path: Path) -> None:
    text = (
        "job_number,submit_time,wait_time,run_time,allocated_processors,requested_processors,requested_time,status\n"
        "1,0,5,60,4,4,60,1\n"
    )
    assert facts(trace_of(tmp_path, text)) == [(1, 5, 60, 4, 60)]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({f"a{n}": {"submit": 0, "start": 5, "end": 65, "processors": 4, "limit": 60} for n in range(2)}),
        '{"submit": {"a1": 0, "a2": 9, "a3": 9, "a4": 9, "a5": 9, "a6": 9}, "start": {"a1": 5}, "end": {"a1": 65}, '
        '"processors": {"a1": 4}, "limit": {"a1": 60}}',
    ],
)
def test_objects_by_job_or_by_column(tmp_path: Path, text: str) -> None:
    assert facts(trace_of(tmp_path, text))[0][1:] == (5, 60, 4, 60)


def tar(text: bytes = b"") -> bytes:
    packed, member = io.BytesIO(), tarfile.TarInfo("acct/20260127")
    member.size = len(text)
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.addfile(member, io.BytesIO(text))
    return gzip.compress(packed.getvalue(), mtime=0)  # workers of pytest must name the test alike


def workbook() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in ("[Content_Types].xml", "xl/workbook.xml"):
            archive.writestr(zipfile.ZipInfo(name), "<x/>")  # with a fixed date: workers of pytest name the test alike
    return packed.getvalue()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("---\njobs:\n- account: phys\n", "YAML; sacct can print JSON"),
        ("=====\nqname        all.q\nhostname     n1\n", "output of qacct -j; use Grid Engine's file"),
        ("Accounting information about jobs that are:\n  - submitted by all users.\n", "output of bacct; use LSF's"),
        ("Job: 300.h\n\n01/27/2026 00:30:00  S    enqueuing into batch\n", "output of tracejob; use the folder"),
        ("Job Id: 300.h\n    Job_Name = a\n", "output of qstat -f; use the folder"),
        (
            "             JOBID PARTITION     NAME     USER ST\n",
            "a list of waiting and running jobs; use the accounting",
        ),
        (" ID     OWNER          SUBMITTED   RUN_TIME ST\n", "print condor_history -json"),
        ("JobId=4 JobName=a, b\n   UserId=eve(1001)\n", "output of scontrol show job; print the accounting"),
        ("NodeName=n01 Partitions=a,b\n", "output of scontrol show node, which is for --pools"),
        ("-- MySQL dump 10.19, for Linux\n", "a dump of a MySQL database; export the table"),
        (
            '{"jobs": [{"job_id": 1, "job_resources": {"nodes": "n1"}, "job_state": ["RUNNING"]}]}',
            "a list of waiting and running jobs of Slurm; print the accounting of ended jobs with sacct --json",
        ),
        (tar(), "a tar archive; unpack it"),
        (tar("".join("|".join(JOB.values()) + "\n" for _ in range(2)).encode()), "a tar archive; unpack it"),
        ("Job_Id: 1\n    job_name = x\n", "in no known format; it begins with 'Job_Id: 1'; known formats are Batsim, "),
        ("", "this is an empty file"),
        (gzip.compress(gzip.compress(b"1 2", mtime=0), mtime=0), "packed twice; unpack it first"),
        (b"\x1f\x9d\x90\x41,\x42", "packed by compress; unpack it with gunzip"),
        (b"\x04\x22\x4d\x18\x64,\x40\xa7", "packed by lz4; unpack it with unlz4"),
        (pickle.dumps({"submit": [1]}, protocol=4), "a pickle of Python; write the table with to_parquet"),
        (gzip.compress(b"RDX3\nX\n\0\0", mtime=0), "data of R; write the table of jobs with write.csv"),
        (workbook(), "an Excel table; export the table of jobs as CSV"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:ab\n", "fetch it with git lfs pull"),
        ("INSERT INTO `c_job_table` VALUES (1,2,'',NULL);\n", "SQL; export the table of jobs as CSV"),
        ('{"timestamp": 1, "Jobs": {"300.h": {"queue": "workq"}}, "n": 3}', "it is an object with 'timestamp', 'Jobs'"),
    ],
)
def test_other_output_is_named_with_the_way_out(tmp_path: Path, text: str | bytes, what: str) -> None:
    with pytest.raises(TraceError, match="(?s).*" + what.replace("(", r"\(")):
        trace_of(tmp_path, text)


def test_numbers_of_the_database_for_no_limit_and_for_no_value(tmp_path: Path) -> None:
    limits = [4_294_967_295, 4_294_967_294, 60]
    text = TABLE + "".join(f"{job},0,5,65,4,{limit}\n" for job, limit in enumerate(limits, 1))
    table = pyarrow.table({name: [0, 0, 0] for name in TABLE.strip().split(",")} | {"job": [1, 2, 3], "limit": limits})
    table = table.set_column(2, "start", [[5] * 3]).set_column(3, "end", [[65] * 3]).set_column(4, "cores", [[4] * 3])
    parquet.write_table(table, tmp_path / "jobs.parquet")
    right = [(1, 5, 60, 4, MAX_DURATION), (2, 5, 60, 4, MAX_DURATION), (3, 5, 60, 4, 60)]
    assert facts(trace_of(tmp_path, text, COLUMNS)) == right
    assert facts(read_trace(tmp_path / "jobs.parquet", Reading(parse_columns([COLUMNS])))) == right


DATED = [
    f'"{number}","run, {number}","2026-{month:02}-25T0{number % 4}:59:{number % 60:02}",'
    f'{"Unknown" if number % 9 == 0 else f"2026-{month:02}-25 05:00:00"},"2026-{month:02}-25T06:00:00",4,7200'
    for number in range(1, 99)
    for month in [1 + number % 12]
]


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize(
    "rows",
    [
        DATED,
        [*DATED, '100,"a ""b"" c",2026-10-25T02:30:00,2026-10-25T05:00:00,2026-10-25T06:00:00,4,7200'],
        [*DATED, '100,x",2026-10-25T02:30:00,2026-10-25T05:00:00,2026-10-25T06:00:00,4,"7200'],
    ],
)
def test_columns_at_once_and_rows_one_by_one_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: Sequence[str], zone: str | None
) -> None:
    text = "\n".join(["job_number,job_name,submit,start,end,processors,limit", *rows, ""])
    at_once = trace_of(tmp_path, text, time_zone=zone)
    monkeypatch.setattr("shadowtime.shared.accounting.tables.files.columns_of_text", lambda *_: None)
    one_by_one = trace_of(tmp_path, text, time_zone=zone)
    assert (at_once.table == one_by_one.table).all()
    assert (at_once.notes, at_once.left_out) == (one_by_one.notes, one_by_one.left_out)


SECONDS = "job_number,submit,start,end,processors,limit,user\n"
BOM = "\ufeff"


def in_seconds(job: int, submit: object = 1795325473, user: str = "ann") -> str:
    return f"{job},{submit},1795326073,1795329673,4,7200,{user}\n"


@pytest.mark.parametrize(
    ("text", "jobs"),
    [
        (BOM + SECONDS + in_seconds(1) + BOM + SECONDS + in_seconds(2), 2),
        (BOM + SACCT.replace("JobID", "JobIDRaw") + sacct_row(1) + BOM + SACCT.replace("JobID", "JobIDRaw"), 1),
        (f"{BOM}; MaxProcs: 8\n1{' 1' * 17}\n{BOM}2{' 1' * 17}", 2),
    ],
)
def test_files_with_byte_order_marks_may_be_appended(tmp_path: Path, text: str, jobs: int) -> None:
    trace = trace_of(tmp_path, text)
    assert (len(trace.table), trace.left_out) == (jobs, {})


def test_json_has_nan_and_several_documents(tmp_path: Path) -> None:
    """`json.dump` and pandas write `NaN`. A folder is one log, so each of its files is a document."""
    row = {"job_number": 1, "submit": 1795325473, "start": 1795326073, "end": 1795329673, "processors": 4}
    rows = [row | {"limit": float("nan")}, row | {"job_number": 2, "limit": 7200}, row | {"job_number": 3, "limit": 60}]
    right = [(1, 600, 3600, 4, MAX_DURATION), (2, 600, 3600, 4, 7200), (3, 600, 3600, 4, 60)]
    one, *others = rows
    for text in (
        json.dumps(rows),
        "".join(json.dumps(entry) + "\n" for entry in rows),
        "\n".join(json.dumps(entry, indent=1) for entry in rows),
        f"{BOM}{json.dumps([one])}\n{BOM}{json.dumps(others)}",
        f"{json.dumps({'jobs': [one]}, indent=1)}\n{json.dumps({'jobs': others}, indent=1)}",
    ):
        assert facts(trace_of(tmp_path, text)) == right
    with pytest.raises(TraceError, match="cannot be read as JSON: Expecting"):
        trace_of(tmp_path, json.dumps(rows)[:-1])


YEAR = 2026


@pytest.mark.parametrize(
    ("date", "zone", "order", "right"),
    [
        ("2026-10-25 02:30:00 CEST", "Europe/Berlin", None, 1792888200),
        ("2026-10-25 02:30:00 CET", "Europe/Berlin", "%Y-%m-%d %H:%M:%S %Z", 1792891800),
        (f"Sun Oct 25 02:30:00 CET {YEAR}", "Europe/Berlin", None, 1792891800),
        (f"Sun Oct 25 02:30:00 CET {YEAR}", "Europe/Berlin", "%a %b %d %H:%M:%S %Z %Y", 1792891800),
        ("10/25/2026 1:30 AM UTC", "Europe/Berlin", None, 1792891800),
        ("2026-10-25 01:30:00 UTC", "Europe/Berlin", "%Y-%m-%d %H:%M:%S %Z", 1792891800),
        ("2026-10-25 02:30:00 +0100 CET", None, None, 1792891800),
        ("2026-10-24 22:30:00 -03", None, None, 1792891800),
    ],
)
def test_a_date_may_abbreviate_its_time_zone(
    tmp_path: Path, date: str, zone: str | None, order: str | None, right: int
) -> None:
    """A format with `%Z` had read each abbreviation as the zone of `--time-zone`, or as UTC."""
    table = f"job_number,submit,wait,run_time,processors\n1,{date},60,60,4\n"
    trace = trace_of(tmp_path, table, time_zone=zone, date_format=order)
    assert (trace.unix_start_time, [note for note in trace.notes if "zone" in note]) == (right, [])


@pytest.mark.parametrize("order", [None, "%Y-%m-%d %H:%M:%S %Z"])
def test_another_abbreviation_is_no_time(tmp_path: Path, order: str | None) -> None:
    table = "job_number,submit,wait,run_time,processors\n1,2026-10-25 02:30:00 PST,60,60,4\n"
    with pytest.raises(TraceError, match=r"not a time.*--time-zone the zone of abbreviations such as CET"):
        trace_of(tmp_path, table, date_format=order)


def test_unix_time_zero_in_america_is_no_time(tmp_path: Path) -> None:
    table = "job_number,submit,start,end,processors,limit\n"
    for job in range(1, 5):
        table += f"{job},2026-03-02 08:00:00,1969-12-31 19:00:00,2026-03-02 09:00:00,4,7200\n"
    trace = trace_of(tmp_path, table + "5,2026-03-02 08:00:00,2026-03-02 08:10:00,2026-03-02 09:10:00,4,7200\n")
    assert (len(trace.table), trace.left_out, facts(trace, "job_number", "left_time")[3]) == (5, {}, (4, 3600))


@pytest.mark.parametrize("rounded", [lambda time: f"{time:.5E}", lambda time: str(time // 128 * 128)])
def test_rounded_unix_times_are_reported(tmp_path: Path, rounded: Callable[[int], str]) -> None:
    """Spreadsheets show and export 1.79533E+09; pandas stores 32 bits if asked to downcast."""
    times = [1795325473 + 7919 * job for job in range(30)]
    table = "job_number,submit,wait,run_time,processors\n"
    right = trace_of(tmp_path, table + "".join(f"{job},{time},5,99,4\n" for job, time in enumerate(times)))
    wrong = trace_of(tmp_path, table + "".join(f"{job},{rounded(time)},5,99,4\n" for job, time in enumerate(times)))
    assert not any("rounded" in note for note in right.notes)
    (note,) = (note for note in wrong.notes if "rounded" in note)
    assert re.match(r"all times of submit are multiples of (10,000|128) s: if they were rounded", note)


def test_names_have_no_blanks_around_them(tmp_path: Path) -> None:
    """psql pads the cells of each of its outputs to another width."""
    text = SECONDS.replace(",", " | ") + in_seconds(1).replace(",", " | ")
    trace = trace_of(tmp_path, text + in_seconds(2, user="ann  ").replace(",", " | "))
    assert facts(trace, "user_id") == [(1,), (1,)]


def test_parquet_may_have_texts_as_bytes(tmp_path: Path) -> None:
    """Hive, Impala and older writers do not say that their bytes are texts."""
    columns = {
        "job_number": [b"7", b"8_1"],
        "submit": [b"2026-03-02 08:00:00"] * 2,
        "wait": [600] * 2,
        "run_time": [3600] * 2,
        "processors": [4] * 2,
        "limit": [7200] * 2,
        "user": [b"m\xc3\xbcller", None],
    }
    path = tmp_path / "jobs.parquet"
    parquet.write_table(pyarrow.table(columns), path)
    names = tmp_path / "names.json"
    trace = read_trace(path, Reading(names=names))
    assert facts(trace, "job_number", "wait_time") == [(7, 600), (200000008, 600)]
    assert (json.loads(names.read_text())["user"], dict(trace.job_ids)) == ({"müller": 1}, {200000008: "8_1"})
    packed = written(tmp_path, gzip.compress(path.read_bytes()), "jobs.parquet.gz")
    with pytest.raises(TraceError, match=r"jobs.parquet.gz: this is a packed Parquet file; unpack it first"):
        read_trace(packed)


def test_a_format_of_dates_is_for_texts(tmp_path: Path) -> None:
    """With --date-format, dates of Parquet were unreadable, and then their columns were said to be missing."""
    start = datetime(2026, 3, 2, 8, 10)
    columns = {"submit": ["2/3/2026 08:00"], "start": [start], "end": [start + timedelta(hours=1)]}
    parquet.write_table(
        pyarrow.table(columns | {"job_number": [1], "processors": [4], "limit": [7200]}), tmp_path / "jobs.parquet"
    )
    trace = read_trace(tmp_path / "jobs.parquet", Reading(date_format="%d/%m/%Y %H:%M"))
    assert facts(trace) == [(1, *RAN)]


def test_a_column_that_cannot_be_read_is_named_where_it_is_needed(tmp_path: Path) -> None:
    table = "job_number,submit,wait,end,processors\n1,2026-03-02 08:00:00,5,soon,4\n"
    with pytest.raises(
        TraceError, match=r"no column for end or run_time, .*; column 'end' has 'soon', which is not a time"
    ):
        trace_of(tmp_path, table)


def test_zstd_files_may_begin_with_a_frame_to_skip(tmp_path: Path) -> None:
    """`pzstd` writes the size of each frame in front of it."""
    sink = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(sink, "zstd") as stream:
        stream.write((SACCT + sacct_row()).encode())
    skipped = b"\x50\x2a\x4d\x18\x04\0\0\0\x01\0\0\0"
    assert facts(trace_of(tmp_path, skipped + sink.getvalue().to_pybytes())) == [(1, *RAN)]


@pytest.mark.parametrize(
    ("beginning", "what"),
    [
        (b"FEA1\0\0", "a Feather file"),
        (b"\xff\xff\xff\xff\x10\x01", "an Arrow file"),
        (b"\x5d\0\0\x80\0", "packed by lzma"),
        ("Summary of time in seconds spent in various states:\nJOBID   USER\n", "output of bhist"),
        ("\nJob <12>, User <eve>, Project <a>, Command <b>\n", "output of bhist"),
        ("VERSION 230\n1 0 1 eve users 3600 Completed\n", "a file of statistics of Maui"),
        ("000 (001.000.000) 2026-11-22 05:31:13 Job submitted from host: <h>\n...\n", "HTCondor's log of events"),
        ("[2026-11-22T05:31:13.123] sched: Allocate JobId=101, NodeList=n1\n", "a log of Slurm's daemons"),
        ('[[pool]]\nname = "a"\n', "a file of pools"),
    ],
)
def test_further_kinds_of_files_are_named(tmp_path: Path, beginning: str | bytes, what: str) -> None:
    with pytest.raises(TraceError, match=f"this is {what}"):
        trace_of(tmp_path, beginning)


def test_a_workbook_of_libreoffice_is_named(tmp_path: Path) -> None:
    path = tmp_path / "jobs.ods"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("content.xml", "<x/>")
    with pytest.raises(TraceError, match="this is a LibreOffice table"):
        read_trace(path)


POOLS = """[[pool]]
name = "cpu"
processors = 64
partitions = ["batch"]
[[pool]]
name = "gpu"
processors = 64
node_names = ["g[01-03,07]", "h1"]
"""


@pytest.mark.parametrize(("node", "pool"), [("g02", 1), ("g[07-08]", 1), ("h1", 1), ("g04", 0)])
def test_node_names_of_a_pool_may_be_lists(tmp_path: Path, node: str, pool: int) -> None:
    """A list was a name that no node has, so jobs counted in the pool of their partition."""
    head = SACCT.replace("AllocCPUS", "AllocCPUS|Partition|NodeList")
    pools = written(tmp_path, BOM + POOLS, "pools.toml")
    trace = trace_of(tmp_path, head + sacct_row(more=f"|batch|{node}"), pools=pools)
    assert facts(trace, "pool") == [(pool,)]


def test_a_list_without_nodes_is_refused(tmp_path: Path) -> None:
    pools = written(tmp_path, POOLS.replace("g[01-03,07]", "g[a-c]"), "pools.toml")
    with pytest.raises(TraceError, match=r"node_names: 'g\[a-c\]' is no name of a node, and no list such as"):
        trace_of(tmp_path, SACCT + sacct_row(), pools=pools)


def test_pools_may_be_packed_or_in_utf_16(tmp_path: Path) -> None:
    nodes = "NodeName=n1 CPUTot=4 RealMemory=4000 Gres=(null)\n   Partitions=batch\n"
    for content in (gzip.compress(nodes.encode()), nodes.encode("utf-16")):
        log = SACCT.replace("AllocCPUS", "AllocCPUS|NodeList") + sacct_row(more="|n1")
        trace = trace_of(tmp_path, log, pools=written(tmp_path, content, "nodes.txt"))
        assert trace.pools is not None
        assert trace.pools[0].processors == 4


@pytest.mark.parametrize("delimiter", ["|", "\t"])
def test_a_row_with_too_few_fields_does_not_take_in_the_next(tmp_path: Path, delimiter: str) -> None:
    """If the last field was cut away with its delimiter, every second job vanished into the name of the first."""
    head = SACCT.replace("AllocCPUS", "AllocCPUS|User|JobName")
    whole = [sacct_row(job, more="|eve|a") for job in range(40)]
    short = [sacct_row(job, more="|eve") for job in (40, 41)]
    trace = trace_of(tmp_path, (head + "".join(whole + short + whole[-1:])).replace("|", delimiter))
    assert (len(trace.table), trace.left_out["unreadable"][0]) == (40, 2)
    with pytest.raises(TraceError, match="39 of 40 rows cannot be read"):  # the last one counts as cut off
        trace_of(tmp_path, (head + "".join(sacct_row(job, more="|eve") for job in range(40))).replace("|", delimiter))


def test_another_text_behind_the_rows_is_not_the_rest_of_a_name(tmp_path: Path) -> None:
    log = SACCT.replace("AllocCPUS", "AllocCPUS|JobName") + sacct_row(1, more="|a\nb\nc") + sacct_row(2, more="|d")
    trace = trace_of(tmp_path, log)
    assert trace.left_out == {"rest of a job name of several lines": (2, "line 3")}
    with pytest.raises(TraceError, match="59 of 64 rows cannot be read"):
        trace_of(tmp_path, log + "".join(f"this is line {line}\n" for line in range(60)))


def test_constraints_have_the_delimiter_between_alternatives(tmp_path: Path) -> None:
    head = "JobID|User|Constraints|State|Submit|Start|End|Timelimit|AllocCPUS|JobName\n"
    rows = [
        f"{job}|ann|{asked}|{sacct_row().partition('|')[2]}".rstrip() + "|a\n"
        for job, asked in enumerate(("a100", "[a100|h100]", "intel|amd|arm", ""))
    ]
    trace = trace_of(tmp_path, head + "".join(rows))
    assert (facts(trace), trace.left_out) == ([(job, *RAN) for job in range(4)], {})


def test_a_field_in_quotes_may_have_many_lines(tmp_path: Path) -> None:
    """A table with job scripts was refused beyond 50 lines, or for a line with more commas than the head."""
    script = "#!/bin/bash\n" + "\n".join(f'echo ""{line},1,2,3,4,5,6,7,8""' for line in range(200))
    head = "job_number,submit,start,script,end,processors,limit\n"
    rows = [f'{job},1795325473,1795326073,"{script}",1795329673,4,7200\n' for job in range(20)]
    assert facts(trace_of(tmp_path, head + "".join(rows))) == [(job, *RAN) for job in range(20)]
    cut = trace_of(tmp_path, head + "".join(rows)[:-900])
    assert (len(cut.table), cut.left_out["unreadable"][0]) == (19, 1)
    lone = '20,1795325473,1795326073,"sbatch,1795329673,4,7200\n'
    damaged = trace_of(tmp_path, head + "".join([*rows[:10], lone, *rows[10:]]).replace(script, "sbatch"))
    assert len(damaged.table) == 21


OWN = "JobID,User,Submit,start,end,processors,limit,memory,gpus,nodes\n"


def own_row(job: int, processors: object = 4, nodes: object = 2) -> str:
    return f"{job},ann,1795325473,1795326073,1795329673,{processors},7200,2G,3,{nodes}\n"


@pytest.mark.parametrize("delimiter", [",", "|"])
def test_a_file_with_fields_of_sacct_may_have_columns_with_our_names(tmp_path: Path, delimiter: str) -> None:
    """They were taken for what is needed, and then not read: no job had processors or a limit."""
    trace = trace_of(tmp_path, (OWN + own_row(1) + own_row(2)).replace(",", delimiter))
    assert facts(trace) == [(1, *RAN), (2, *RAN)]
    assert facts(trace, "memory", "gpus", "nodes") == [(2048, 3, 2)] * 2
    noted = trace_of(tmp_path, (OWN + own_row(1, nodes="n1") + own_row(2, nodes="n2")).replace(",", delimiter))
    assert facts(noted, "processors", "nodes") == [(4, -1)] * 2
    assert "column 'nodes' has 'n1', which cannot be read; it is not read as nodes" in noted.notes
    with pytest.raises(TraceError, match=r"no field AllocCPUS; .*column 'processors' has 'many', which cannot be read"):
        trace_of(tmp_path, (OWN + own_row(1, "many")).replace(",", delimiter))


def test_fields_of_sacct_are_spelled_in_any_case_in_each_kind_of_table(tmp_path: Path) -> None:
    """Databases and pandas have names in small letters. In JSON and Parquet, they were no fields of sacct."""
    names, cells = (SACCT.strip().replace("AllocCPUS", "NCPUS").lower().split("|"), sacct_row().strip().split("|"))
    row = dict(zip(names, cells, strict=True))
    assert facts(trace_of(tmp_path, json.dumps([row]))) == [(1, *RAN)]
    assert facts(trace_of(tmp_path, ",".join(names) + "\n" + ",".join(cells))) == [(1, *RAN)]
    parquet.write_table(pyarrow.table({name: [cell] for name, cell in row.items()}), tmp_path / "log.parquet")
    assert facts(read_trace(tmp_path / "log.parquet")) == [(1, *RAN)]


@pytest.mark.parametrize("field", ["Start", "End"])
def test_a_mapped_run_time_gives_the_missing_end_or_start(tmp_path: Path, field: str) -> None:
    at = {"Start": "2026-03-02T08:10:00", "End": "2026-03-02T09:10:00"}[field]
    log = f"JobID|Submit|{field}|took|Timelimit|AllocCPUS\n1|2026-03-02T08:00:00|{at}|60|02:00:00|4\n"
    assert facts(trace_of(tmp_path, log, "run_time=took:min")) == [(1, *RAN)]
