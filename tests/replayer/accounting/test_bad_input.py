"""Whatever may be wrong with an accounting file is named, or counted among what is left out."""

from pathlib import Path

import pytest

from shadowtime.replayer.accounting.reading import Reading
from shadowtime.replayer.accounting.sacct import FIELDS
from shadowtime.replayer.log_formats import read_trace
from shadowtime.replayer.recorded import Recorded
from shadowtime.replayer.swf import Trace
from shadowtime.replayer.workload import prepare
from shadowtime.shared.errors import SettingsError, TraceError
from shadowtime.shared.message import MAX_DURATION

JOB = {
    "JobIDRaw": "1",
    "JobID": "1",
    "State": "COMPLETED",
    "Submit": "1795325473",
    "Eligible": "1795325473",
    "Start": "1795325480",
    "End": "1795325540",
    "ElapsedRaw": "60",
    "Suspended": "00:00:00",
    "TimelimitRaw": "2",
    "ReqCPUS": "4",
    "AllocCPUS": "4",
    "NNodes": "1",
    "ReqTRES": "cpu=4,mem=1G,node=1",
    "AllocTRES": "cpu=4,mem=1G,node=1",
    "NodeList": "n01",
    "User": "eve",
    "Account": "physics",
    "Partition": "batch",
    "QOS": "normal",
    "JobName": "sim",
}

POOLS = """[[pool]]
name = "cpu"
processors = 8
partitions = ["batch"]
node_names = ["n01"]
"""


def written(folder: Path, *jobs: dict[str, str], fields: tuple[str, ...] = FIELDS, end: str = "\n") -> Path:
    path = folder / "sacct.txt"
    lines = ["|".join(fields), *("|".join({**JOB, **job}[name] for name in fields) for job in jobs)]
    path.write_bytes("\n".join(lines).encode(errors="surrogateescape") + end.encode())
    return path


def read(folder: Path, *jobs: dict[str, str], **reading: object) -> Trace:
    return read_trace(written(folder, *jobs), Reading(**reading))  # type: ignore[arg-type]


def refused(folder: Path, *jobs: dict[str, str], **reading: object) -> str:
    with pytest.raises(TraceError) as caught:
        read(folder, *jobs, **reading)
    return str(caught.value)


def test_fields_may_be_in_any_order(tmp_path: Path) -> None:
    other = read_trace(written(tmp_path, {}, fields=tuple(reversed(FIELDS))))
    assert (other.table == read(tmp_path, {}).table).all()


def test_missing_fields_are_named_and_how_to_get_them(tmp_path: Path) -> None:
    path = written(tmp_path, {}, fields=("JobIDRaw", "Submit", "Start", "JobName"))
    with pytest.raises(
        TraceError, match=r"no field State, End, TimelimitRaw, ReqCPUS, AllocCPUS; this prints .*sacct -aPXD"
    ):
        read_trace(path)


def test_a_delimiter_in_a_job_name_is_part_of_it(tmp_path: Path) -> None:
    names = tmp_path / "names.json"
    for fields in (FIELDS, ("JobName", *FIELDS[:-1])):
        path = written(tmp_path, {"JobName": "a|b||c"}, fields=fields)
        assert (read_trace(path, Reading(names=names)).table == read(tmp_path, {}).table).all()
        assert '"a|b||c": 1' in names.read_text()


def test_where_it_may_be_in_two_fields_the_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "sacct.txt"
    names = (*FIELDS, "Comment")
    path.write_text("|".join(names) + "\n" + "|".join([*JOB.values(), "x|y"]) + "\n")
    with pytest.raises(TraceError, match="line 2: 23 fields, 22 in the head: a delimiter is part of one"):
        read_trace(path)


def test_a_date_of_a_locale_is_named(tmp_path: Path) -> None:
    told = refused(tmp_path, {}, {"JobIDRaw": "2", "Submit": "22.11.2026 05:31:13"})
    assert "line 3: Submit '22.11.2026 05:31:13' is no time that is understood" in told
    assert "SLURM_TIME_FORMAT=%s" in told


SUMMER = {
    "Submit": "2026-10-25T02:30:00",
    "Eligible": "2026-10-25T02:30:00",
    "Start": "2026-10-25T02:50:00",
    "End": "2026-10-25T02:10:00",
    "ElapsedRaw": "1200",
}
"""In Berlin, clocks go from 3 back to 2 while it runs."""


def test_the_end_of_summer_time_makes_no_job_end_before_it_starts(tmp_path: Path) -> None:
    workload = prepare(read(tmp_path, SUMMER, time_zone="Europe/Berlin"))
    assert (workload[0].wait_time, workload[0].run_time) == (1200, 1200)


def test_dates_without_a_zone_are_told_to_be_taken_for_utc(tmp_path: Path) -> None:
    (note, *_) = read(tmp_path, {**SUMMER, "End": "2026-10-25T03:10:00"}).notes
    assert "tell no time zone" in note


def test_an_unknown_zone_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="time zone 'Mars/Olympus' is not known"):
        read(tmp_path, {}, time_zone="Mars/Olympus")


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        ({"End": "1795325479"}, "ended before it started"),
        ({"State": "RUNNING", "End": "Unknown"}, "still running"),
        ({"State": "PENDING", "Start": "Unknown", "End": "Unknown"}, "still waiting"),
        ({"Submit": "Unknown"}, "without a time of submission"),
        ({"JobIDRaw": "1"}, "told twice"),
        ({"State": "CANCELLED by 7", "Eligible": "Unknown", "Start": "None"}, "cancelled before it was eligible"),
        ({"JobIDRaw": "1.batch"}, "step of a job"),
    ],
)
def test_what_cannot_be_used_is_counted_with_its_line(tmp_path: Path, job: dict[str, str], reason: str) -> None:
    trace = read(tmp_path, {}, {"JobIDRaw": "2", **job})
    assert len(trace.table) == 1
    assert trace.left_out[reason][0] == 1
    assert "line 3" in trace.left_out[reason][1]
    assert prepare(trace).skipped[reason] == 1


def test_a_job_without_a_limit_is_planned_as_one(tmp_path: Path) -> None:
    workload = prepare(read(tmp_path, {"TimelimitRaw": "UNLIMITED"}))
    assert workload[0].requested_time == MAX_DURATION
    assert workload[0].limit is None
    events = Recorded(workload).next_instant()
    assert "requested_time=None" in repr(events[0])


def test_output_that_is_cut_off_is_told(tmp_path: Path) -> None:
    path = written(tmp_path, {}, {"JobIDRaw": "2"}, end="")
    path.write_bytes(path.read_bytes()[:-60])
    trace = read_trace(path)
    assert trace.left_out["line cut off"] == (1, "line 3, the last one")
    assert "the last line is cut off: the file may not be whole" in trace.notes


def test_a_line_that_is_cut_in_the_middle_of_the_file_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, {}, {"JobIDRaw": "2"})
    first, second, third = path.read_text().splitlines()
    path.write_text(f"{first}\n{second[:50]}\n{third}\n")
    with pytest.raises(TraceError, match="line 2: 7 fields, 21 in the head"):
        read_trace(path)


def test_a_file_of_no_job_says_so(tmp_path: Path) -> None:
    assert refused(tmp_path).endswith("no job in it that can be replayed")
    assert "left out: 1 still running" in refused(tmp_path, {"State": "RUNNING", "End": "Unknown"})


def test_user_names_of_any_characters_become_numbers(tmp_path: Path) -> None:
    names = tmp_path / "names.json"
    read(tmp_path, {"User": "eve\x1b[2J\t\x00\udcff"}, names=names)
    assert "\\u001b[2J\\t\\u0000" in names.read_text()


def test_a_partition_or_a_node_of_no_pool_is_counted(tmp_path: Path) -> None:
    pools = tmp_path / "pools.toml"
    pools.write_text(POOLS)
    never = {"State": "CANCELLED by 7", "NodeList": "None assigned", "Start": "None", "AllocCPUS": "0"}
    jobs = {"NodeList": "n09", "JobIDRaw": "2"}, {**never, "Partition": "secret", "JobIDRaw": "3"}
    trace = read(tmp_path, {}, *jobs, {**never, "JobIDRaw": "4"}, pools=pools)
    assert trace.left_out["on a node or in a partition of no pool"] == (2, "job 2, line 3")
    assert trace.more["pool"].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("pool = 3", "neither pools nor output"),
        ('[[pool]]\nname = "a"\n', "processors"),
        ('[[pool]]\nname = "a"\nprocessors = 0\n', "processors"),
        ("", "0 pools"),
        (POOLS + POOLS.replace("cpu", "other"), "'batch' is in two pools"),
    ],
)
def test_a_file_of_no_pools_is_named(tmp_path: Path, text: str, told: str) -> None:
    pools = tmp_path / "pools.toml"
    pools.write_text(text)
    assert told in refused(tmp_path, {}, pools=pools)


def test_an_unknown_state_is_named(tmp_path: Path) -> None:
    assert "line 2: State 'PONDERING' is not known" in refused(tmp_path, {"State": "PONDERING"})


def test_the_standard_format_needs_none_of_this(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_text("; MaxProcs: 4\n1 0 0 9 1 -1 -1 1 9 -1 1 1 1 1 1 1 -1 -1\n")
    with pytest.raises(SettingsError, match="for accounting files and tables"):
        read_trace(path, Reading(time_zone="UTC"))


def test_a_job_that_changed_its_number_of_lives_is_numbered_by_them(tmp_path: Path) -> None:
    again = {"Submit": "1795325600", "Eligible": "1795325700", "Start": "1795325800", "End": "1795325860"}
    workload = prepare(read(tmp_path, {"State": "REQUEUED"}, again))
    assert [job.job_number for job in workload] == [1, 1_000_000_001]
    assert [(job.submit_time, job.handed_in, job.wait_time) for job in workload] == [(0, None, 7), (227, 127, 100)]


def test_hashes_stand_for_names_where_a_key_is_given(tmp_path: Path) -> None:
    names, key = tmp_path / "names.json", tmp_path / "key"
    key.write_text("0123456789abcdef\n")
    read(tmp_path, {}, names=names, names_key=key)
    assert "eve" not in names.read_text()
    first = names.read_text()
    read(tmp_path, {"User": "bob", "JobIDRaw": "2"}, {}, names=names, names_key=key)  # eve keeps her number
    assert first.split('"user": {')[1].split(",")[0].strip().rstrip("}").strip() in names.read_text()
    key.write_text("short")
    assert "a key has at least 16 bytes" in refused(tmp_path, {}, names_key=key)
    names.write_text('{"user": {"eve": 7}}')
    assert "no mapping of names" in refused(tmp_path, {}, names=names)
