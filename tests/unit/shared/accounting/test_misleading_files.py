"""Values that look like something else: each is read with the right meaning, or refused with what to do."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from shadowtime.replayer.logs.formats import read_trace
from shadowtime.replayer.logs.swf import FIELDS
from shadowtime.replayer.logs.trace import Trace
from shadowtime.replayer.logs.workload import prepare
from shadowtime.shared.accounting import parse_columns
from shadowtime.shared.accounting.reading import Reading
from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.errors import TraceError

BEGIN = 1_772_438_400
"""2 March 2026, 08:00:00 UTC."""

JOBS = [(number, BEGIN + 60 * number, 60 * (1 + number % 3), 600 * number) for number in range(1, 11)]
"""Number, submission, wait and run time of each job."""


def trace_of(folder: Path, text: str, columns: str = "", name: str = "log.txt", **reading: object) -> Trace:
    path = folder / name
    path.write_text(text)
    return read_trace(path, Reading(parse_columns([columns] if columns else []), **reading))  # type: ignore[arg-type]


def times(trace: Trace) -> list[tuple[int, int, int]]:
    """Return the Unix times of submission, start and end of all jobs that a replay uses."""
    zero = int(trace.header.get("UnixStartTime", 0))
    jobs = prepare(trace, recorded=True, requests="actual")
    waits = [(zero + job.submit_time, job.wait_time or 0, job.run_time or 0) for job in jobs]
    return [(submit, submit + wait, submit + wait + ran) for submit, wait, ran in waits]


RIGHT = [(submit, submit + wait, submit + wait + ran) for _, submit, wait, ran in JOBS]


def table(time: Callable[[int], object] = int, ran: Callable[[int], object] | None = None, delimiter: str = ",") -> str:
    """Return a table of the jobs, with run times only if a notation for them is given."""
    lines: list[list[object]] = [["job_number", "submit", "start", "end", "processors", *(["run_time"] if ran else [])]]
    lines += [
        [number, time(submit), time(submit + wait), time(submit + wait + run), 4, *([ran(run)] if ran else [])]
        for number, submit, wait, run in JOBS
    ]
    return "\n".join(delimiter.join(map(str, row)) for row in lines) + "\n"


def dated(order: str) -> Callable[[int], str]:
    return lambda time: datetime.fromtimestamp(time, UTC).strftime(order)


@pytest.mark.parametrize("order", ["%Y%m%d%H%M%S", "%Y%m%d%H%M"])
@pytest.mark.parametrize("stated", [True, False])
def test_dates_without_separators_are_no_milliseconds(tmp_path: Path, order: str, stated: bool) -> None:
    date_format = order if stated else None
    assert times(trace_of(tmp_path, table(dated(order)), date_format=date_format)) == RIGHT
    sacct = "JobID|State|Submit|Start|End|AllocCPUS\n" + "".join(
        f"{number}|COMPLETED|{'|'.join(map(dated(order), right))}|4\n"
        for (number, *_), right in zip(JOBS, RIGHT, strict=True)
    )
    assert times(trace_of(tmp_path, sacct, date_format=date_format)) == RIGHT


@pytest.mark.parametrize("decimal", [".", ","])
def test_days_as_spreadsheets_count_them_are_refused(tmp_path: Path, decimal: str) -> None:
    def days(time: int) -> str:
        return f"{25_569 + time / 86_400:.8f}".replace(".", decimal)

    with pytest.raises(TraceError, match=r"dates such as '46083.33.* are days as spreadsheets count them; format"):
        trace_of(tmp_path, table(days, delimiter=";"))
    sacct = "JobID;State;Submit;Start;End;AllocCPUS\n" + "".join(
        f"1;COMPLETED;{days(BEGIN)};{days(BEGIN)};{days(BEGIN + run)};4\n" for _, _, _, run in JOBS
    )
    with pytest.raises(TraceError, match="are days as spreadsheets count them"):
        trace_of(tmp_path, sacct)


@pytest.mark.parametrize("order", ["%y%m%d%H%M%S", "%d%m%Y%H%M%S"])
def test_numbers_that_would_be_of_another_century_are_no_times(tmp_path: Path, order: str) -> None:
    def time(instant: int) -> str:
        return dated(order)(instant + 20 * 86_400)

    with pytest.raises(TraceError, match="which is no Unix time in any unit"):
        trace_of(tmp_path, table(time))
    assert len(times(trace_of(tmp_path, table(time), date_format=order))) == 10


@pytest.mark.parametrize("separator", ["-", "/"])
def test_dates_with_the_year_first_may_have_numbers_of_one_digit(tmp_path: Path, separator: str) -> None:
    order = f"%Y{separator}%-m{separator}%-d %-H:%M:%S"
    assert times(trace_of(tmp_path, table(dated(order)))) == RIGHT


@pytest.mark.parametrize("time", [lambda time: 25_569 + time // 86_400, dated("%Y-%m-%d")])
def test_times_without_a_time_of_day_are_refused(tmp_path: Path, time: Callable[[int], object]) -> None:
    with pytest.raises(TraceError, match=r"of 10 jobs end in the second of their start; .* --columns end=COLUMN:"):
        trace_of(tmp_path, table(time))
    stated = trace_of(tmp_path, table(time), "start=start:s,end=end:s,submit=submit:s")
    assert len(times(stated)) == 10


def test_submissions_without_a_time_of_day_are_noted(tmp_path: Path) -> None:
    """A job waits for hours if only the date of its submission is known."""
    starts = [BEGIN + 7 * number for number in range(20)]
    rows = [[number, dated("%Y-%m-%d")(start), start, start + 60, 4] for number, start in enumerate(starts)]
    text = "job_number,submit,start,end,processors\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)
    assert [
        note for note in trace_of(tmp_path, text).notes if note.startswith("all 20 jobs that ran were submitted at")
    ]
    text = text.replace(",2026-03-02,", f",{BEGIN - 7},", 1)
    assert not [note for note in trace_of(tmp_path, text).notes if "half hour" in note]


@pytest.mark.parametrize(
    ("ran", "unit"),
    [
        (lambda ran: ran // 60, "min"),
        (lambda ran: f"{ran / 3600}", "h"),
        (lambda ran: f"{ran // 3600}:{ran // 60 % 60:02}", "h"),
        (lambda ran: ran * 1000, "ms"),
    ],
)
def test_run_times_that_contradict_start_and_end_are_refused(
    tmp_path: Path, ran: Callable[[int], object], unit: str
) -> None:
    with pytest.raises(TraceError, match="of 10 jobs have a run time that is not the time between their start and end"):
        trace_of(tmp_path, table(ran=ran))
    assert times(trace_of(tmp_path, table(ran=ran), f"run_time=run_time:{unit}")) == RIGHT
    assert times(trace_of(tmp_path, table(ran=ran), "run_time=")) == RIGHT


@pytest.mark.parametrize(
    ("heading", "row", "text"),
    [
        ("submit,start,end", lambda _, begin, wait, ran: (20_260_302, begin + wait, begin + wait + ran), "submit"),
        (
            "submit,start,end",
            lambda _, submit, wait, ran: (submit - BEGIN, submit + wait, submit + wait + ran),
            "submit",
        ),
        ("submit,wait,run_time", lambda _, submit, wait, ran: (submit, wait * 10**9, ran), "wait"),
        ("submit,wait,run_time", lambda _, submit, wait, ran: (submit, wait, ran * 10**9), "run_time"),
    ],
)
def test_years_of_waiting_or_running_are_refused_until_confirmed(
    tmp_path: Path, heading: str, row: Callable[..., tuple[int, ...]], text: str
) -> None:
    rows = "\n".join(",".join(map(str, (*row(*job), 4))) for job in JOBS)
    table = f"{heading},processors\n{rows}\n"
    with pytest.raises(TraceError, match=rf"10 of 10 jobs \w+ for more than a year.*--columns {text}=COLUMN:min"):
        trace_of(tmp_path, table)
    assert trace_of(tmp_path, table, f"{text}={text}:s").table[:, FIELDS.index("job_number")].tolist() == [
        *range(1, 11)
    ]


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_limits_of_years_are_refused_until_their_unit_is_stated(tmp_path: Path, unit: str) -> None:
    limit = 86_400 * {"ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    text = "submit,start,end,processors,limit\n" + "".join(
        f"{submit},{submit + wait},{submit + wait + ran},4,{limit}\n" for _, submit, wait, ran in JOBS
    )
    with pytest.raises(TraceError, match=r"most of 10 limits are longer than a year, .*--columns limit=limit:min"):
        prepare(trace_of(tmp_path, text))
    assert {job.requested_time for job in prepare(trace_of(tmp_path, text, f"limit=limit:{unit}"))} == {86_400}
    for no_limit in (2**31 - 1, 2**32 - 1, "UNLIMITED"):
        prepare(trace_of(tmp_path, text.replace(f",4,{limit}", f",4,{no_limit}")))


def test_limits_of_hours_and_minutes_are_refused_until_they_are_stated(tmp_path: Path) -> None:
    text = "job_number,submit,start,end,processors,limit\n1,0,5,3605,4,2:00\n2,0,5,7205,4,2:00\n"
    with pytest.raises(TraceError, match=r"state the unit .* :h reads 2:30 as hours and minutes"):
        prepare(trace_of(tmp_path, text))
    stated = prepare(trace_of(tmp_path, text, "limit=limit:h"))
    assert [job.requested_time for job in stated] == [7200, 7200]


def test_times_whose_unit_their_size_cannot_tell_are_refused(tmp_path: Path) -> None:
    trace = [(600_000_000 + 9_000_000_000 * job * job, 5_000_000, 300_000_000) for job in range(12)]
    text = "submit,start,end,processors\n" + "".join(
        f"{submit},{submit + wait},{submit + wait + ran},4\n" for submit, wait, ran in trace
    )
    with pytest.raises(TraceError, match="submit is '144600000000', which is no Unix time in any unit; state its unit"):
        trace_of(tmp_path, text)
    with pytest.raises(TraceError, match=r"its jobs were submitted over [0-9,]+ years, if their times are in seconds"):
        trace_of(tmp_path, "".join(text.splitlines(keepends=True)[:4]))
    stated = trace_of(tmp_path, text, "submit=submit:us,start=start:us,end=end:us")
    assert times(stated)[:2] == [(600, 605, 905), (9600, 9605, 9905)]


def test_a_log_of_years_keeps_its_first_days(tmp_path: Path) -> None:
    text = "submit,start,end,processors\n" + "".join(
        f"{at},{at},{at + 60},4\n" for at in (0, 3600, 5 * 10**6, 2 * 10**8)
    )
    assert [submit for submit, _, _ in times(trace_of(tmp_path, text))] == [0, 3600, 5 * 10**6, 2 * 10**8]


@pytest.mark.parametrize(
    "missing", ["0001-01-01T00:00:00Z", "1900-01-01 00:00:00", "9999-12-31 23:59:59", "4294967295"]
)
def test_dates_that_stand_for_no_date(tmp_path: Path, missing: str) -> None:
    row = "2026-03-02,2026-03-02,{},4,60\n"
    text = "submit,start,end,processors,limit\n" + row.format(missing) + row.format("2026-03-03")
    assert trace_of(tmp_path, text).left_out == {"still running": (1, "job 1, line 2")}


def test_starts_before_submissions_are_refused(tmp_path: Path) -> None:
    text = "submit,start,end,processors\n" + "".join(
        f"{dated('%FT%TZ')(begin)},{dated('%FT%T')(start - 18_000)},{dated('%FT%T')(end - 18_000)},4\n"
        for begin, start, end in RIGHT
    )
    with pytest.raises(TraceError, match=r"10 of 10 jobs started before they were submitted, .* with --time-zone"):
        trace_of(tmp_path, text)
    assert times(trace_of(tmp_path, text, time_zone="America/New_York")) == RIGHT


@pytest.mark.parametrize("other", [int, dated("%Y-%m-%d %H:%M:%SZ"), dated("%Y-%m-%dT%H:%M:%S.500+00:00")])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_dates_without_a_zone_beside_times_that_need_none_are_noted(
    tmp_path: Path, other: Callable[[int], object], zone: str | None
) -> None:
    local, submit, wait, ran = dated("%Y-%m-%d %H:%M:%S"), *JOBS[0][1:]
    row = f"{other(submit)},{local(submit + wait)},{local(submit + wait + ran)},4\n"
    notes = trace_of(tmp_path, f"submit,start,end,processors\n{row}", time_zone=zone).notes
    assert any("unlike its other times: read as UTC; if they are local" in note for note in notes) == (zone is None)
    notes = trace_of(tmp_path, table(local)).notes
    assert "its dates state no time zone: read as UTC; see --time-zone" in notes


def test_fractions_of_hours_are_rounded_to_seconds(tmp_path: Path) -> None:
    text = f"submit,start,end,processors,limit_hours\n0,0,500,4,{600 / 3600}\n"
    assert [job.requested_time for job in prepare(trace_of(tmp_path, text, "limit=limit_hours"))] == [600]


@pytest.mark.parametrize("memory", [2**34, f"{2**34}.0"])
def test_memory_in_bytes_is_no_memory_in_mebibytes(tmp_path: Path, memory: object) -> None:
    trace = trace_of(tmp_path, f"submit,start,end,processors,limit,memory\n0,0,60,4,60,{memory}\n")
    assert "memory" not in trace.more
    assert f"column 'memory' has '{memory}', which is not an amount of memory in MiB" in trace.notes[0]


@pytest.mark.parametrize(
    ("column", "cell", "stated", "memory"),
    [
        ("memory_gb", "16", "", 16_384),
        ("mem (KiB)", "4096", "", 4),
        ("memGB", "1.5", "", 1536),
        ("memory_gb", "16", ":M", 16),
        ("mem", str(2**34), ":B", 16_384),
        ("mem", "512M", ":G", 512),
    ],
)
def test_memory_in_the_unit_of_its_column(tmp_path: Path, column: str, cell: str, stated: str, memory: int) -> None:
    text = f"submit,start,end,processors,limit,{column}\n0,0,60,4,60,{cell}\n"
    trace = trace_of(tmp_path, text, f"memory={column}{stated}")
    assert trace.more["memory"].tolist() == [memory]
    noted = [note for note in trace.notes if "memory is read in" in note]
    assert len(noted) == (not stated)


def test_the_minutes_of_sacct_are_minutes_also_in_a_mapping(tmp_path: Path) -> None:
    text = "JobID|State|Submit|Start|End|TimelimitRaw|NCPUS\n7|COMPLETED|1795325000|1795325010|1795325070|120|4\n"
    table = "job_number=JobID,submit=Submit,start=Start,end=End,processors=NCPUS,limit=TimelimitRaw"
    for columns in ("", "limit=TimelimitRaw", table):
        assert [job.requested_time for job in prepare(trace_of(tmp_path, text, columns))] == [7200]


def test_limits_without_a_unit_in_a_field_that_sacct_prints_with_colons(tmp_path: Path) -> None:
    text = "JobID|State|Submit|Start|End|Timelimit|NCPUS\n7|COMPLETED|1795325000|1795325010|1795328610|{}|4\n"
    trace = trace_of(tmp_path, text.format(7200))
    assert [job.requested_time for job in prepare(trace)] == [432_000]
    assert any("such as '7200', which are read in minutes; --columns limit=Timelimit:s" in note for note in trace.notes)
    assert [job.requested_time for job in prepare(trace_of(tmp_path, text.format(7200), "limit=Timelimit:s"))] == [7200]
    with pytest.raises(TraceError, match="which are read in min from column 'Timelimit'; state the unit"):
        prepare(trace_of(tmp_path, text.format(24)))
    for whole in ("02:00:00", "UNLIMITED", "4294967295"):
        assert not [note for note in trace_of(tmp_path, text.format(whole)).notes if "without a unit" in note]


def test_points_that_separate_thousands_of_seconds(tmp_path: Path) -> None:
    head = "submit;start;run_time;processors\n"
    rows = "0;0;{};4\n1000;2000;{};4\n"
    assert times(trace_of(tmp_path, head + rows.format("3.600", "45"))) == [(0, 0, 3600), (1000, 2000, 2045)]
    assert times(trace_of(tmp_path, head + rows.format("3.600", "45.5"))) == [(0, 0, 3), (1000, 2000, 2045)]
    with pytest.raises(TraceError, match=r"'3\.600', which may be a decimal or have thousands"):
        trace_of(tmp_path, head + rows.format("3.600", "1.045"))


def test_points_that_separate_thousands_of_mebibytes(tmp_path: Path) -> None:
    text = "submit;start;end;processors;limit;memory\n0;5;65;4;60;{}\n0;5;65;4;60;{}\n"
    assert trace_of(tmp_path, text.format("16.384", "512")).more["memory"].tolist() == [16_384, 512]
    assert trace_of(tmp_path, text.format("16.384", "1.5")).more["memory"].tolist() == [16, 1]
    trace = trace_of(tmp_path, text.format("16.384", "1.024"))
    assert "memory" not in trace.more
    assert "column 'memory' has '16.384', which may be a decimal or have thousands" in trace.notes[0]
    with pytest.raises(TraceError, match=r"memory: 'memory' has '16\.384', which may be a decimal"):
        trace_of(tmp_path, text.format("16.384", "1.024"), "memory=memory")


def test_ids_that_a_spreadsheet_has_rounded_are_no_ids(tmp_path: Path) -> None:
    text = "job_number,submit,start,end,processors,limit\n" + "".join(
        f"4.1E+11,{submit},{submit + wait},{submit + wait + ran},4,7200\n" for _, submit, wait, ran in JOBS
    )
    trace = trace_of(tmp_path, text)
    assert times(trace) == RIGHT
    assert "'4.1E+11', a rounded number" in trace.notes[0]

    sacct = "JobID,State,Submit,Start,End,AllocCPUS\n" + "4.1E+11,COMPLETED,0,5,65,4\n"
    with pytest.raises(TraceError, match=r"JobID '4.1E\+11' is a rounded number; format its column as text"):
        trace_of(tmp_path, sacct)


def test_jobs_of_one_number_that_run_at_the_same_time_are_several_jobs(tmp_path: Path) -> None:
    text = "job_number,submit,start,end,processors,limit\n7,0,5,600,4,600\n7,100,200,300,4,600\n7,250,700,800,4,600\n"
    trace = trace_of(tmp_path, text)
    assert times(trace) == [(0, 5, 600), (100, 200, 300), (250, 700, 800)]
    assert "1 jobs started while another job of the same number ran" in trace.notes[0]


def test_a_column_that_only_has_our_name_does_not_break_rows_of_several_lines(tmp_path: Path) -> None:
    text = 'submit,start,end,processors,limit,Status,comment\n0,5,65,4,60,fine,"a, ""b""\nnext, line"\n'
    assert times(trace_of(tmp_path, text)) == [(0, 5, 65)]


WIDTHS = {"JobID": 12, "State": 10, "Submit": 19, "Start": 19, "End": 19, "Elapsed": 10, "Timelimit": 10, "NCPUS": 10}
FIXED = "".join(
    " ".join(cells) + "\n"
    for cells in ([f"{name:>{width}}" for name, width in WIDTHS.items()], ["-" * width for width in WIDTHS.values()])
)


def fixed(job: str, elapsed: str = "00:50:00", end: str = "2026-03-02T09:00:00", limit: str = "02:00:00") -> str:
    begun = "2026-03-02T08:00:00 2026-03-02T08:10:00"
    return f"{job:<12} {'COMPLETED':>10} {begun} {end} {elapsed:>10} {limit:>10} {4:>10}\n"


def test_ids_of_tasks_that_a_column_cuts_off_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"JobID '12345678_10\+' is cut off; run sacct with -P"):
        trace_of(tmp_path, FIXED + fixed("12345678_10+") * 2)


def test_long_durations_that_a_column_cuts_off(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, FIXED + fixed("1", "10-00:00:+", "2026-03-12T08:10:05", "14-00:00:+"))
    assert times(trace) == [(BEGIN, BEGIN + 600, BEGIN + 600 + 864_005)]
    assert [job.requested_time for job in prepare(trace)] == [14 * 86_400]


@pytest.mark.parametrize("last", ["NodeList,User,JobName", "AllocTRES,User,JobName"])
def test_lists_with_the_delimiter_shift_no_fields(tmp_path: Path, last: str) -> None:
    listing = "n[01,03]" if last.startswith("NodeList") else "cpu=4,mem=4G"
    text = f"JobID,State,Submit,Start,End,AllocCPUS,{last}\n1,COMPLETED,0,600,4200,4,{listing},eve,sim\n"
    with pytest.raises(TraceError, match=r"line 2: 10 fields, but 9 in the head \(if a field contains ','"):
        trace_of(tmp_path, text)
    quoted = text.replace(listing, f'"{listing}"')
    assert times(trace_of(tmp_path, quoted)) == [(0, 600, 4200)]


def test_the_limit_of_a_partition_that_a_column_cuts_off(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, FIXED + fixed("1", limit="Partition+"))
    assert trace.table[0, FIELDS.index("requested_time")] == MAX_DURATION


def test_names_and_resources_that_a_column_cuts_off_are_noted(tmp_path: Path) -> None:
    heads = (f"{'User':>9} {'AllocTRES':>10} ", f"{'-' * 9} {'-' * 10} ")
    text = "\n".join(map("".join, zip(heads, FIXED.splitlines(), strict=True)))
    rows = "".join(
        f"\n{user:>9} {tres:>10} {fixed('1')}" for user, tres in (("eve", "cpu=4"), ("student_+", "billing=4+"))
    )
    notes = [note for note in trace_of(tmp_path, text + rows).notes if "cut off" in note]
    assert len(notes) == 1
    assert "User 'student_+', AllocTRES 'billing=4+': cut-off names that begin alike count as one" in notes[0]
    assert not [note for note in trace_of(tmp_path, FIXED + fixed("1")).notes if "cut off" in note]


def test_names_whose_width_sacct_counts_in_bytes_stay_names(tmp_path: Path) -> None:
    users = ["Müller", "Jürgens+"]
    cells = [b" " * (9 - len(user.encode())) + user.encode() for user in users]
    lines = [b"     User ", b"-" * 9 + b" ", *(cell + b" " for cell in cells)]
    rest = [*FIXED.splitlines(), fixed("1"), fixed("2")]
    path = tmp_path / "log.txt"
    path.write_bytes(b"\n".join(line + row.encode() for line, row in zip(lines, rest, strict=True)) + b"\n")
    trace = read_trace(path, Reading(names=tmp_path / "names.json"))
    assert list(json.loads((tmp_path / "names.json").read_text())["user"]) == users
    assert any("its columns cut off values, such as User 'Jürgens+'" in note for note in trace.notes)


def test_limits_that_sacct_never_prints(tmp_path: Path) -> None:
    head = "JobID|State|Submit|Start|End|Timelimit|AllocCPUS\n"
    with pytest.raises(TraceError, match=r"Timelimit '0.0833' is neither a duration nor UNLIMITED"):
        trace_of(tmp_path, head + "1|COMPLETED|0|600|4200|0.0833|4\n")
    text = head + "1|COMPLETED|0|600|4200|4294967295|4\n"
    assert trace_of(tmp_path, text).table[0, FIELDS.index("requested_time")] == MAX_DURATION


def test_a_list_of_jobs_within_an_object(tmp_path: Path) -> None:
    jobs = [{"submit": 0, "start": 5, "end": 65, "processors": 4}]
    assert times(trace_of(tmp_path, json.dumps({"jobs": jobs, "count": 1}))) == [(0, 5, 65)]


def test_numbers_of_nodes_in_units_of_sacct(tmp_path: Path) -> None:
    text = "JobID|State|Submit|Start|End|NNodes|AllocCPUS\n1|COMPLETED|0|600|4200|2K|4096\n"
    assert trace_of(tmp_path, text).more["nodes"].tolist() == [2048]


def test_elapsed_decides_at_the_beginning_of_summer_time(tmp_path: Path) -> None:
    text = (
        "JobID|State|Submit|Start|End|Elapsed|AllocCPUS\n"
        "1|COMPLETED|2026-03-29T01:00:00|2026-03-29T01:30:00|2026-03-29T03:30:00|01:00:00|4\n"
    )
    trace = trace_of(tmp_path, text)
    assert [(start - submit, end - start) for submit, start, end in times(trace)] == [(1800, 3600)]
    assert "suspended" not in trace.more


def test_jobs_of_several_servers_of_pbs_are_not_lives_of_one_job(tmp_path: Path) -> None:
    text = "".join(
        f"03/02/2026 08:00:00;E;{job}.{server};user=u queue=q ctime={submit} etime={submit} start={submit + 10} "
        f"end={submit + 60} exec_host=n1/0*4 Resource_List.walltime=01:00:00 Exit_status=0\n"
        for job, server, submit in (
            (7, "a", BEGIN),
            (7, "b", BEGIN + 30),
            (7, "a.example.org", BEGIN + 200),
            (7, "b", BEGIN + 100),
            (8, "b", BEGIN + 300),
        )
    )
    trace = trace_of(tmp_path, text)
    assert [submit for submit, _, _ in times(trace)] == [BEGIN, BEGIN + 30, BEGIN + 100, BEGIN + 200, BEGIN + 300]
    assert "its jobs are of 2 servers: a (2), b (3); 2 jobs get a new number" in trace.notes[0]
    assert {7, 8} <= {*trace.table[:, FIELDS.index("job_number")].tolist()}
    assert sorted(trace.job_ids.values()) == ["7@b", "7@b"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("15463 1 16 alice users 7200 Completed [batch:1] 1772438400\n", "in no known format; it begins with"),
        ("4101 alice 1772438400 1772438430\n", "in no known format"),
        ("ClusterId Owner QDate\n4101 alice 1772438400\n", "in no known format"),
        ("JobId=4101 JobName=run\n   UserId=alice(1001)\n", "output of scontrol show job; .* sacct -P"),
        ("================== Job l1.9.0 ==================\n", "output of LoadLeveler"),
        ("\0".join("job,submit"), "text in UTF-16 or UTF-32 without a byte order mark"),
    ],
)
def test_files_that_begin_with_numbers_are_not_called_the_standard_format(tmp_path: Path, text: str, what: str) -> None:
    for columns in ("", "submit=t"):
        with pytest.raises(TraceError, match=what):
            trace_of(tmp_path, text, columns)
