"""Files as sites have them: each kind is read with the right values, or refused with what to do."""

import bz2
import errno
import gzip
import json
import lzma
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from shadowtime.replayer.logs.formats import read_trace
from shadowtime.replayer.logs.trace import Trace
from shadowtime.replayer.logs.workload import Workload, prepare
from shadowtime.shared.accounting.mapping import parse_columns
from shadowtime.shared.accounting.reading import Reading
from shadowtime.shared.accounting.text_file import contents_of
from shadowtime.shared.bounds import MAX_DURATION, MAX_STREAMS
from shadowtime.shared.errors import SettingsError, TraceError

GOOD = """\
JobIDRaw|JobID|State|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|ReqCPUS|AllocCPUS|NNodes|User|Account|Partition|JobName
101|101|COMPLETED|1795325473|1795325473|1795325480|1795325540|60|2|4|4|1|u1|acc|batch|a
102|102|TIMEOUT|1795325500|1795325500|1795325540|1795325665|125|2|8|8|1|u2|acc|batch|b
103|103|CANCELLED by 7|1795325510|1795325510|None|1795325530|0|60|8|0|1|u2|acc|batch|c
"""
HEAD, *ROWS = GOOD.splitlines()
MINUTES = {"2": "00:02:00", "60": "01:00:00"}


def changed(*, without: tuple[str, ...] = (), renamed: dict[str, str] | None = None) -> str:
    """Return the good file without some fields, and with Timelimit as sacct prints it if it is renamed."""
    names = HEAD.split("|")
    kept = [at for at, name in enumerate(names) if name not in without]
    lines = [[names[at] for at in kept]]
    for row in ROWS:
        fields = row.split("|")
        if renamed and "TimelimitRaw" in renamed:
            fields[8] = MINUTES[fields[8]]
        if renamed and "ElapsedRaw" in renamed:
            fields[7] = f"00:{int(fields[7]) // 60:02}:{int(fields[7]) % 60:02}"
        lines.append([fields[at] for at in kept])
    lines[0] = [(renamed or {}).get(name, name) for name in lines[0]]
    return "\n".join(map("|".join, lines)) + "\n"


def small_with_tres() -> str:
    """Return the good file with names in small letters, and with processors as trackable resources (TRES)."""
    rows = [row.split("|") for row in ROWS]
    for row in rows:
        row[9:11] = [f"billing=1,cpu={row[9]}", f"cpu={row[10]}" if row[10] != "0" else ""]
    head = HEAD.lower().replace("reqcpus|alloccpus", "reqtres|alloctres")
    return "\n".join([head, *map("|".join, rows)]) + "\n"


def fixed_width(text: str, width: int = 14) -> str:
    """Return the file as sacct prints it without -P."""
    head, *rows = [line.split("|") for line in text.splitlines()]
    lines = [head, ["-" * width] * len(head), *rows]
    return "".join("".join(f"{field:>{width}} " for field in line) + "\n" for line in lines)


def trace_of(folder: Path, text: str | bytes, name: str = "log.txt", **reading: object) -> Trace:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    if isinstance(columns := reading.get("columns"), str):
        reading["columns"] = parse_columns([columns] if columns else [])
    return read_trace(path, Reading(**reading))  # type: ignore[arg-type]


def same(first: Trace, second: Trace) -> bool:
    ours, theirs = prepare(first, 64, recorded=True), prepare(second, 64, recorded=True)
    assert ours.skipped == theirs.skipped
    return ours.columns.keys() == theirs.columns.keys() and all(
        (column == theirs.columns[name]).all() for name, column in ours.columns.items()
    )


NO_HEADER = "\n".join(ROWS) + "\n"

FORMS: dict[str, tuple[str | bytes, dict[str, Any]]] = {
    "Timelimit": (changed(renamed={"TimelimitRaw": "Timelimit"}), {}),
    "Elapsed": (changed(renamed={"ElapsedRaw": "Elapsed"}), {}),
    "JobID only": (changed(without=("JobIDRaw",)), {}),
    "NCPUS": (changed(renamed={"AllocCPUS": "NCPUS"}), {}),
    "no header": (NO_HEADER, {}),
    "no header, named": (NO_HEADER, {"fields": tuple(HEAD.lower().split("|"))}),
    "small letters and TRES": (small_with_tres(), {}),
    "no header, blanks": (
        NO_HEADER.replace(" by 7", "").replace("|", "   "),
        {"fields": tuple(HEAD.split("|"))},
    ),
    "semicolons": (GOOD.replace("|", ";"), {}),
    "tabs": (GOOD.replace("|", "\t"), {}),
    "commas": (GOOD.replace("|", ","), {}),
    "two characters": (GOOD.replace("|", "@@"), {}),
    "letters": (GOOD.replace("|", "XX"), {"delimiter": "XX"}),
    "trailing delimiter": (GOOD.replace("\n", "|\n"), {}),
    "fixed width": (fixed_width(GOOD), {}),
    "warning first": ("sacct: error: slurmdbd: Munge warning, or so\n" + GOOD, {}),
    "prompt first": ("[eve@login ~]$ sacct -aPX | tee x\n\n" + GOOD, {}),
    "UTF-16": (GOOD.encode("utf-16"), {}),
    "CRLF": (GOOD.replace("\n", "\r\n"), {}),
    "byte order mark": (GOOD.encode("utf-8-sig"), {}),
    "gzip": (gzip.compress(GOOD.encode()), {}),
    "xz": (lzma.compress(GOOD.encode()), {}),
    "bzip2": (bz2.compress(GOOD.encode()[:300]) + bz2.compress(GOOD.encode()[300:]), {}),
    "zstd": (pyarrow.compress(GOOD.encode(), "zstd", asbytes=True), {}),
    "renamed by the user": (changed(renamed={"TimelimitRaw": "mine"}), {"columns": "limit=mine"}),
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_sacct_is_the_same_workload(tmp_path: Path, form: str) -> None:
    text, reading = FORMS[form]
    assert same(trace_of(tmp_path, text, **reading), trace_of(tmp_path, GOOD, "good.txt"))


def test_an_archive_of_one_file_is_read_and_one_of_two_is_not(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "log.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("folder/log.txt", GOOD)
    assert same(read_trace(tmp_path / "log.zip"), trace_of(tmp_path, GOOD))
    with zipfile.ZipFile(tmp_path / "log.zip", "a") as archive:
        archive.writestr("other.txt", GOOD)
    with pytest.raises(TraceError, match="expected a zip archive with one file, found 2"):
        read_trace(tmp_path / "log.zip")


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress])
def test_a_cut_compressed_file_is_named(tmp_path: Path, pack: object) -> None:
    whole = pack((GOOD * 400).encode())  # type: ignore[operator]
    with pytest.raises(TraceError, match=r"truncated or damaged (gzip|xz|bzip2) file"):
        trace_of(tmp_path, whole[: len(whole) // 2])


XDMOD = (
    "101|101|c1|batch|normal|acc|g|1|u1|2|2026-11-22T05:31:13|2026-11-22T05:31:13|2026-11-22T05:31:20|"
    "2026-11-22T05:32:20|00:01:00|0:0|COMPLETED|1|4|4|4G|cpu=4,mem=4G,node=1|cpu=4,mem=4G,node=1|1-00:02:00|n01|a|b\n"
)


def test_the_order_of_xdmod_is_recognised(tmp_path: Path) -> None:
    job = prepare(trace_of(tmp_path, XDMOD), 64)[0]
    assert (job.wait_time, job.run_time, job.requested_time, job.processors) == (7, 60, 86_520, 4)


@pytest.mark.parametrize(("text", "limit"), [("1-12:00:00", 129_600), ("UNLIMITED", None), ("Partition_Limit", None)])
def test_limits_as_sacct_prints_them(tmp_path: Path, text: str, limit: int | None) -> None:
    row = changed(renamed={"TimelimitRaw": "Timelimit"}).replace("00:02:00", text)
    assert prepare(trace_of(tmp_path, row), 64)[0].limit == limit


def test_a_delimiter_and_a_line_end_in_free_text_harm_nothing(tmp_path: Path) -> None:
    head = "JobIDRaw|JobName|State|Submit|SubmitLine|Eligible|Start|End|ElapsedRaw|TimelimitRaw|AllocCPUS|WorkDir\n"
    rest = "|1795325473|1795325480|1795325540|60|2|4|/home/u1\n"
    rows = [
        f"{number}|a|COMPLETED|1795325473|{line}{rest}" for number, line in enumerate(("x | y", "x\ny|z\n\nw", "v"), 1)
    ]
    trace = trace_of(tmp_path, head + "".join(rows))
    assert (trace.table[:, 0].tolist(), trace.left_out) == ([1, 2, 3], {})


def test_a_list_of_tasks_that_sacct_cuts_off_is_reported(tmp_path: Path) -> None:
    row = "700|700_[1,3,5,...]|CANCELLED by 5|1795325473|1795325473|None|1795325540|0|10|4|0|1|u1|acc|batch|arr\n"
    trace = trace_of(tmp_path, GOOD + row)
    assert len(trace.table) == 6
    assert "cut off 1 lists of array tasks" in trace.notes[0]
    assert "SLURM_BITSTR_LEN=0" in trace.notes[0]
    assert trace.job_ids[number := 700 + 2 * 10**8] == "700_1", number


CLUSTERS = GOOD.replace("JobIDRaw|", "Cluster|JobIDRaw|").replace("\n101", "\nalpha|101").replace("\n10", "\nbeta|10")


def test_several_clusters_are_named_and_one_can_be_chosen(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="jobs of 2 clusters: 'alpha', 'beta'; choose one with --cluster NAME"):
        trace_of(tmp_path, CLUSTERS)
    with pytest.raises(TraceError, match="no cluster 'gamma'; it names 'alpha', 'beta'"):
        trace_of(tmp_path, CLUSTERS, cluster="gamma")
    trace = trace_of(tmp_path, CLUSTERS, cluster="beta")
    assert (trace.table[:, 0].tolist(), trace.left_out["of another cluster"][0]) == ([102, 103], 1)


TWO_CLUSTERS = """\
job_number,submit,start,end,processors,cluster
1,0,5,65,4,alpha
2,0,5,65,4,beta
"""


def test_several_clusters_of_a_table(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"jobs of 2 clusters: 'alpha', 'beta'; .*--columns cluster= takes them"):
        trace_of(tmp_path, TWO_CLUSTERS, "jobs.csv")
    assert trace_of(tmp_path, TWO_CLUSTERS, "jobs.csv", cluster="beta").table[:, 0].tolist() == [2]
    for columns in ("cluster=", "partition=cluster"):
        assert len(trace_of(tmp_path, TWO_CLUSTERS, "jobs.csv", columns=parse_columns([columns])).table) == 2


SUMMER = """\
JobIDRaw|JobID|State|Submit|Eligible|Start|End|Elapsed|TimelimitRaw|ReqCPUS|AllocCPUS
101|101|COMPLETED|2026-10-25T01:50:00|2026-10-25T01:50:00|2026-10-25T02:10:00|2026-10-25T02:50:00|01:40:00|180|4|4
102|102|COMPLETED|2026-10-25T01:50:00|2026-10-25T01:50:00|2026-10-25T01:55:00|2026-10-25T03:05:00|02:10:00|180|4|4
"""


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_elapsed_decides_at_the_end_of_summer_time(tmp_path: Path, zone: str | None) -> None:
    assert prepare(trace_of(tmp_path, SUMMER, time_zone=zone), 64).columns["run_time"].tolist() == [6_000, 7_800]


def test_the_time_of_eligibility_is_told_where_it_is_the_submission(tmp_path: Path) -> None:
    from shadowtime.replayer.logs.quality import columns_of, lacks_of

    trace = trace_of(tmp_path, GOOD)
    assert "when jobs became eligible" not in {lack.what for lack in lacks_of(columns_of(trace), trace.stated_columns)}


# Tables.

TABLE = "job,submit,start,end,cores,limit\n"
MAPPED = "job_number=job,processors=cores"
ONE = [(1, 0, 10, 3600, 7200, 4)]


def jobs_of(workload: Workload) -> list[tuple[int, ...]]:
    names = ("job_number", "submit_time", "wait_time", "run_time", "requested_time", "processors")
    return list(zip(*(workload.columns[name].tolist() for name in names), strict=True))


@pytest.mark.parametrize(
    "row",
    [
        "1,1795325000,1795325010,1795328610,4,7200",
        "1,1795325000000,1795325010000,1795328610000,4,7200",
        "1,1795325000000000,1795325010000000,1795328610000000,4,7200",
        "1,1795325000000000000,1795325010000000000,1795328610000000000,4,7200",
        "1,1.795325e9,1795325010.0,1795328610.25,4.0,7200.0",
        "1,2026-11-22 05:23:20,2026-11-22 05:23:30,2026-11-22 06:23:30,4,0 days 02:00:00",
        "1,2026-11-22 05:23:20 UTC,2026-11-22 05:23:30+00:00,2026-11-22T06:23:30.5Z,4,2h",
        "1,11/22/2026 05:23:20,11/22/2026 05:23:30,11/22/2026 06:23:30,4,2:00:00",
        "1,22.11.2026 05:23:20,22.11.2026 05:23:30,22.11.2026 06:23:30,4,P0DT2H0M0S",
        '1,"11/22/2026, 5:23:20 AM","11/22/2026, 5:23:30 AM","11/22/2026, 6:23:30 AM",4,120 min',
    ],
)
def test_a_row_in_each_notation_is_the_same_job(tmp_path: Path, row: str) -> None:
    assert jobs_of(prepare(trace_of(tmp_path, f"{TABLE}{row}\n", "log.csv", columns=MAPPED), 64)) == ONE


@pytest.mark.parametrize(
    "missing", ["NaT", "nan", "", "None", "-1", "-1.0", "0", "1970-01-01 00:00:00", "<NA>", "null"]
)
def test_a_missing_start_is_no_start(tmp_path: Path, missing: str) -> None:
    rows = f"1,1795325000,1795325010,1795328610,4,7200\n2,1795325000,{missing},1795325100,4,7200\n"
    trace = trace_of(tmp_path, TABLE + rows, "log.csv", columns=MAPPED)
    assert (jobs_of(prepare(trace, 64)), trace.more["left_time"].tolist()) == (ONE, [-1, 100])


LIMITS = "1,1795325000,1795325010,1795328610,4,120\n2,1795325000,1795325010,1795332210,4,120\n"


def test_limits_in_minutes_are_refused_until_their_unit_is_stated(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, TABLE + LIMITS, "log.csv", columns=MAPPED)
    with pytest.raises(TraceError, match=r"2 of 2 jobs ran longer than their limits, .* --columns limit=limit:min"):
        prepare(trace, 64)
    for unit, limit in (("min", 7200), ("s", 120), ("h", 432_000)):
        stated = trace_of(tmp_path, TABLE + LIMITS, "log.csv", columns=f"{MAPPED},limit=limit:{unit}")
        assert prepare(stated, 64).columns["requested_time"].tolist() == [limit, limit]
    named = TABLE.replace("limit", "timelimit_minutes")
    trace = trace_of(tmp_path, named + LIMITS, "log.csv", columns=f"{MAPPED},limit=timelimit_minutes")
    assert prepare(trace, 64).columns["requested_time"].tolist() == [7200, 7200]
    assert "limit is read in minutes" in trace.notes[0]


def test_a_unit_that_does_not_fit_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="expected a unit of time, one of ns, us, ms, s, min, h, d"):
        trace_of(tmp_path, TABLE + LIMITS, "log.csv", columns="processors=cores:h")


def test_a_steps_dot_and_a_jobs_dot(tmp_path: Path) -> None:
    row = "{},1795325000,1795325010,1795328610,4,7200\n"
    ids = ("900", "900.0", "900.1", "17.0", "17.1", "17_3", "dlctk69")
    trace = trace_of(tmp_path, TABLE + "".join(map(row.format, ids)), "log.csv", columns=MAPPED)
    assert trace.left_out == {"step of a job": (2, "job 900.0, line 3")}
    assert sorted(trace.job_ids.values()) == ["17.0", "17.1", "17_3", "dlctk69"]
    assert len(trace.table) == 5


def test_a_table_of_sacct_fields_has_steps_too(tmp_path: Path) -> None:
    head = "JobID,State,Submit,Start,End,Timelimit,NCPUS,User\n"
    row = "{},COMPLETED,2026-11-22T05:00:00,2026-11-22T05:10:00,2026-11-22T06:10:00,{},8,u1\n"
    text = head + row.format("900", "02:00:00") + row.format("900.0", "") + row.format("901", "02:00:00")
    trace = trace_of(tmp_path, text, "log.csv")
    assert (trace.table[:, 0].tolist(), trace.left_out["step of a job"][0]) == ([900, 901], 1)
    table = pyarrow.table(
        {
            name: [line.split(",")[at] for line in text.splitlines()[1:]]
            for at, name in enumerate(head.strip().split(","))
        }
    )
    parquet.write_table(table, tmp_path / "log.parquet")
    assert (read_trace(tmp_path / "log.parquet").table == trace.table).all()


def test_days_and_months_in_either_order_are_asked_for(tmp_path: Path) -> None:
    text = TABLE + "1,03/04/2026 05:23:20,03/04/2026 05:23:30,03/04/2026 06:23:30,4,7200\n"
    with pytest.raises(TraceError, match="are ambiguous: day and month may be in either order; state their format"):
        trace_of(tmp_path, text, "log.csv", columns=MAPPED)
    trace = trace_of(tmp_path, text, "log.csv", columns=MAPPED, date_format="%d/%m/%Y %H:%M:%S")
    assert (jobs_of(prepare(trace, 64)), trace.unix_start_time) == (ONE, 1_775_193_800)


def test_a_column_that_does_not_fit_is_skipped_and_one_can_be_left_out(tmp_path: Path) -> None:
    text = "submit,start,end,processors,limit,gpus\n100,110,170,4,60,a100\n105,110,180,4,70,none\n"
    trace = trace_of(tmp_path, text, "log.csv")
    assert "column 'gpus' has 'a100', which is not a whole number; it is not read as gpus" in trace.notes[0]
    with pytest.raises(TraceError, match=r"gpus: 'gpus' has 'a100', .* leave one out with NAME=; it has submit '100'"):
        trace_of(tmp_path, text, "log.csv", columns="gpus=gpus")
    assert trace_of(tmp_path, text, "log.csv", columns="gpus=").notes == ()


def test_all_faults_are_named_at_once_with_the_columns(tmp_path: Path) -> None:
    text = "t,submit,start,end,processors,limit\n1,soon,110,170,many,60\n"
    with pytest.raises(TraceError) as caught:
        trace_of(tmp_path, text, "log.csv")
    for part in ("submit: 'submit' has 'soon'", "processors: 'processors' has 'many'", "it has t '1', submit 'soon'"):
        assert part in str(caught.value)


def test_without_requests_the_options_are_named(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, "submit,start,end,processors\n100,110,170,4\n", "log.csv")
    with pytest.raises(TraceError, match=r"--requests actual takes the run time .* --requests queue-maximum"):
        prepare(trace)
    assert prepare(trace, requests="actual").columns["requested_time"].tolist() == [60]


@pytest.mark.parametrize(
    "text",
    [
        '[{"submit": 100, "start": 110, "end": 170, "processors": 4, "limit": "1m"}]',
        '{"submit": 100, "start": 110, "end": 170, "processors": 4, "limit": 60}\n' * 2,
        '{"submit":{"0":100},"start":{"0":110},"end":{"0":170},"processors":{"0":4},"limit":{"0":60}}',
        '{"columns":["submit","start","end","processors","limit"],"index":[0],"data":[[100,110,170,4,60]]}',
        '{"schema":{},"data":[{"submit": 100, "start": 110, "end": 170, "processors": 4, "limit": 60}]}',
    ],
)
def test_tables_in_json(tmp_path: Path, text: str) -> None:
    job = prepare(trace_of(tmp_path, text, "log.json"), 64)[0]
    assert (job.wait_time, job.run_time, job.requested_time) == (10, 60, 60)


def test_memory_with_a_unit(tmp_path: Path) -> None:
    text = "submit,start,end,processors,limit,memory\n100,110,170,4,60,16G\n"
    assert trace_of(tmp_path, text, "log.csv").more["memory"].tolist() == [16_384]


def test_an_odd_row_is_left_out_and_a_tenth_of_them_refuses_the_file(tmp_path: Path) -> None:
    rows = "".join(f"{at},{at + 1},{at + 60},4,60\n" for at in range(20))
    text = "submit,start,end,processors,limit\n" + rows + "soon,1,2,3,4\n"
    trace = trace_of(tmp_path, text, "log.csv")
    assert trace.notes[0] == (
        "1 of 21 rows cannot be read and is left out: line 22: submit is 'soon', which is not a time: neither a Unix "
        "time nor a date"
    )
    assert prepare(trace).skipped == {"unreadable": 1}
    odd = text + "1,2,3\n\n4,5,6\n"
    with pytest.raises(TraceError, match=r"3 of 23 rows cannot be read, more than a tenth: .*--lenient"):
        trace_of(tmp_path, odd, "log.csv")
    assert len(trace_of(tmp_path, odd, "log.csv", lenient=True).table) == 20


def test_an_unknown_unit_is_no_column(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="--columns 'when=x': expected NAME=COLUMN, NAME=COLUMN:UNIT or NAME="):
        parse_columns(["when=x"])


# Any damaged row: never a traceback, no other row lost, and counted.

SACCT_ROW = "{0}|{0}|COMPLETED|1795325473|1795325473|1795325480|1795325540|60|2|4|4|1|u1|acc|batch|a"
CSV_ROW = "{0},1795325000,1795325010,1795328610,4,7200"
JSON_ROW = '{{"job_number": {0}, "submit": 100, "start": 110, "end": 170, "processors": 4, "limit": 60}}'
KINDS = {
    "sacct": ("log.txt", HEAD, SACCT_ROW, ""),
    "sacct with commas": ("log.txt", HEAD.replace("|", ","), SACCT_ROW.replace("|", ","), ""),
    "csv": ("log.csv", TABLE.strip(), CSV_ROW, MAPPED),
    "json": ("log.json", JSON_ROW.format(1000), JSON_ROW, ""),
}
DAMAGE = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=60)


@pytest.mark.parametrize("kind", KINDS)
@given(damage=DAMAGE, at=st.integers(0, 29), cut=st.integers(0, 40))
def test_a_damaged_row_harms_no_other(
    tmp_path_factory: pytest.TempPathFactory, kind: str, damage: str, at: int, cut: int
) -> None:
    name, head, row, columns = KINDS[kind]
    rows = [row.format(number) for number in range(2000, 2030)]
    intact = {number for number in range(2000, 2030) if number != 2000 + at}
    rows[at] = rows[at][:cut] + damage + rows[at][cut + 5 :]
    folder = tmp_path_factory.mktemp("damaged")
    trace = trace_of(folder, "\n".join([head, *rows, ""]), name, columns=columns)
    found = trace.table[:, 0].tolist()
    assert intact <= {*found} | {number % 10**8 for number in found}
    extra = (kind == "json") + 30
    left = sum(count for count, _ in trace.left_out.values())
    assert len(found) + left >= extra or not rows[at].strip()


def assert_one_lost(trace: Trace, numbers: list[int], at: int) -> None:
    """Assert that every job but one is in a trace, and that this one is there or counted."""
    read = trace.table[:, 0].tolist()
    assert {*numbers[:at], *numbers[at + 1 :]} <= {*read}
    assert len(read) + sum(count for count, _ in trace.left_out.values()) >= len(numbers)


NUMBERS = list(range(2000, 2030))


@given(damage=DAMAGE, at=st.integers(0, 29), cut=st.integers(0, 200))
def test_a_damaged_line_of_fixed_width_harms_no_other(
    tmp_path_factory: pytest.TempPathFactory, damage: str, at: int, cut: int
) -> None:
    text = "\n".join([HEAD, *(SACCT_ROW.format(number) for number in NUMBERS)])
    head, dashes, *rows = fixed_width(text).splitlines()
    rows[at] = rows[at][:cut] + damage + rows[at][cut + 5 :]
    trace = trace_of(tmp_path_factory.mktemp("damaged"), "\n".join([head, dashes, *rows, ""]))
    if rows[at].strip():
        assert_one_lost(trace, NUMBERS, at)
    else:
        assert_one_lost(trace, NUMBERS[:at] + NUMBERS[at + 1 :], 0)


def answered(number: int) -> dict[str, Any]:
    """Return a job as `sacct --json` prints it."""
    return {
        "job_id": number,
        "state": {"current": ["COMPLETED"]},
        "time": {"submission": 1795325473, "eligible": 1795325473, "start": 1795325480, "end": 1795325540}
        | {"elapsed": 60, "limit": {"set": True, "infinite": False, "number": 2}},
        "tres": {name: [{"type": "cpu", "name": "", "count": 4}] for name in ("requested", "allocated")},
        "user": "u1",
        "array": {"job_id": 0, "task_id": {"set": False, "number": 0}, "task": ""},
    }


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(
    value=VALUES, path=st.sampled_from(["job_id", "state", "time", "tres", "user", "array", "time.start", "time.limit"])
)
def test_a_damaged_job_of_sacct_json_harms_no_other(
    tmp_path_factory: pytest.TempPathFactory, value: object, path: str
) -> None:
    jobs = [answered(number) for number in NUMBERS]
    outer, _, inner = path.partition(".")
    if inner:
        jobs[7][outer][inner] = value
    else:
        jobs[7][outer] = value
    trace = trace_of(tmp_path_factory.mktemp("damaged"), json.dumps({"jobs": jobs}), "log.json")
    assert_one_lost(trace, NUMBERS, 7)


def test_outputs_of_several_calls_of_sacct_json_are_one_log(tmp_path: Path) -> None:
    outputs = [json.dumps({"jobs": [answered(number)], "meta": {}}, indent=1) for number in (1, 2)]
    (tmp_path / "months").mkdir()
    for at, output in enumerate(outputs):
        (tmp_path / "months" / f"{at}.json").write_text(output)
    taken = "".join(json.dumps(answered(number)) + "\n" for number in (1, 2))  # jq -c '.jobs[]'
    texts = ("\n".join(outputs), taken)
    for trace in (read_trace(tmp_path / "months"), *(trace_of(tmp_path, text, "log.json") for text in texts)):
        assert trace.table[:, 0].tolist() == [1, 2]


def test_a_limit_that_is_not_set_is_that_of_the_partition(tmp_path: Path) -> None:
    job = answered(1)
    job["time"] |= {"limit": {"set": False, "infinite": False, "number": 0}}
    assert prepare(trace_of(tmp_path, json.dumps({"jobs": [job]}), "log.json"))[0].requested_time == MAX_DURATION


@given(value=st.none() | st.text(max_size=20), column=st.sampled_from(TABLE.strip().split(",")), at=st.integers(0, 29))
def test_a_damaged_cell_of_parquet_harms_no_other(
    tmp_path_factory: pytest.TempPathFactory, value: str | None, column: str, at: int
) -> None:
    names, rows = TABLE.strip().split(","), [CSV_ROW.format(number).split(",") for number in NUMBERS]
    cells: dict[str, list[str | None]] = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    cells[column][at] = value
    path = tmp_path_factory.mktemp("damaged") / "log.parquet"
    parquet.write_table(pyarrow.table(cells), path)
    assert_one_lost(read_trace(path, Reading(columns=parse_columns([MAPPED]))), NUMBERS, at)


@pytest.mark.parametrize("kind", ["sacct", "sacct with commas", "csv"])
def test_rows_at_once_and_one_by_one_are_the_same(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, head, row, columns = KINDS[kind]
    odd = row.format(7).replace("1795325", "x", 1)
    text = "\n".join([head, *(row.format(number) for number in range(100)), odd, row.format("17_3"), ""])
    traces = []
    for module in ("slurm.sacct", "tables.files"):
        monkeypatch.setattr(f"shadowtime.shared.accounting.{module}.columns_of_text", lambda *_: None)
    traces.append(trace_of(tmp_path, text, name, columns=columns))
    monkeypatch.undo()
    traces.append(trace_of(tmp_path, text, name, columns=columns))
    assert (traces[0].table == traces[1].table).all()
    assert (traces[0].left_out, traces[0].notes) == (traces[1].left_out, traces[1].notes)
    assert traces[0].left_out["unreadable"][0] == 1


def test_a_table_without_needed_columns_and_with_odd_lines_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no column for submit, processors"):
        trace_of(tmp_path, "a,b\n1\n1,2,3\n", "log.csv")


def test_numbers_that_pandas_wrote_with_a_fraction(tmp_path: Path) -> None:
    row = "{},1795325000,1795325010,1795328610,4,7200\n"
    trace = trace_of(tmp_path, TABLE + row.format("17.0") + row.format("18.0"), "log.csv", columns=MAPPED)
    assert trace.table[:, 0].tolist() == [17, 18]


def test_a_table_with_names_of_sacct_may_have_ids_of_any_text(tmp_path: Path) -> None:
    text = "JobID;Submit;Start;End;Cores;Limit\nalpha-7;22.11.2026 05:00;22.11.2026 05:10;22.11.2026 06:10;8;2:00:00\n"
    columns = "job_number=JobID,submit=Submit,start=Start,end=End,processors=Cores,limit=Limit"
    trace = trace_of(tmp_path, text, "log.csv", columns=columns)
    assert (jobs_of(prepare(trace, 64)), dict(trace.job_ids)) == ([(1, 0, 600, 3600, 7200, 8)], {1: "alpha-7"})


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress])
def test_empty_streams_cost_little_and_are_limited(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """140,000 empty streams of bzip2, 2 MB, took 24 s: each was followed by a copy of up to a megabyte."""
    (path := tmp_path / "log").write_bytes(pack(b"1 2\n") + pack(b"") * (MAX_STREAMS - 2) + b"\0" * 99_999 + pack(b"3"))
    began = process_time()
    assert b"".join(contents_of(path)) == b"1 2\n3"
    assert process_time() - began < 10
    with path.open("ab") as file:
        file.write(pack(b"4"))
    with pytest.raises(TraceError, match="log: a packed log has at most 65,536 streams; unpack it first"):
        list(contents_of(path))


def test_a_path_that_the_system_refuses_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = tmp_path / ("a" * 300)
    for reading in (Reading(), Reading(time_zone="UTC")):
        with pytest.raises(TraceError, match="a: cannot be read: File name too long"):
            read_trace(long, reading)
    closed = tmp_path / "days" / "closed"
    closed.mkdir(parents=True)
    (tmp_path / "days" / "1.swf").write_text("1 0 0 9 4 -1 -1 4 9 -1 1 1 1 1 1 1 -1 -1\n")

    def scandir(path: str) -> Any:
        if os.fspath(path) == str(closed):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(closed))
        return listed(path)

    listed = os.scandir
    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(TraceError, match="closed: cannot be read: Permission denied"):
        read_trace(tmp_path / "days")
