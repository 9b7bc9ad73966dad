"""Whatever may be wrong with an accounting file is named, or counted among what is left out."""

from pathlib import Path

import numpy as np
import pytest

from shadowtime.replayer.logs.formats import read_trace
from shadowtime.replayer.logs.workload import prepare
from shadowtime.replayer.simulation.machine import Machine
from shadowtime.replayer.simulation.recorded import Recorded
from shadowtime.shared.accounting.reading import Reading
from shadowtime.shared.accounting.slurm.head import FIELDS
from shadowtime.shared.errors import SettingsError, TraceError
from shadowtime.shared.messages.base import MAX_DURATION
from tests.unit.shared.accounting.reading import JOB, read, written

B = int(JOB["Submit"])

POOLS = """[[pool]]
name = "cpu"
processors = 8
partitions = ["batch"]
node_names = ["n01"]
"""


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
        TraceError, match=r"no field End, AllocCPUS; it has JobIDRaw '1', .*print all needed fields: .*sacct -aPXD"
    ):
        read_trace(path)


def test_a_delimiter_in_a_job_name_is_part_of_it(tmp_path: Path) -> None:
    names = tmp_path / "names.json"
    for fields in (FIELDS, ("JobName", *FIELDS[:-1])):
        path = written(tmp_path, {"JobName": "a|b||c"}, fields=fields)
        assert (read_trace(path, Reading(names=names)).table == read(tmp_path, {}).table).all()
        assert '"a|b||c": 1' in names.read_text()


def test_in_fields_of_free_text_the_delimiter_goes_where_all_values_fit(tmp_path: Path) -> None:
    path = tmp_path / "sacct.txt"
    names = ("SubmitLine", *FIELDS, "Comment")
    path.write_text("|".join(names) + "\n" + "|".join(["sbatch a|b", *JOB.values(), "x|y"]) + "\n")
    assert (read_trace(path).table == read(tmp_path, {}).table).all()


def test_a_date_of_a_locale_is_named(tmp_path: Path) -> None:
    told = refused(tmp_path, {}, {"JobIDRaw": "2", "Submit": "So Nov 22 05:31:13 2026"})
    assert "line 3: Submit 'So Nov 22 05:31:13 2026' is not a time" in told
    assert "SLURM_TIME_FORMAT=%s" in told
    read(tmp_path, {"Submit": "Sun Nov 22 05:31:13 2026"})
    read(tmp_path, {"Submit": "Sun, Nov 22 05:31:13 2026"}, date_format="%a, %b %d %H:%M:%S %Y")


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
    assert "state no time zone" in note


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
        ({"JobIDRaw": "1"}, "listed twice"),
        ({"State": "CANCELLED by 7", "Eligible": "Unknown", "Start": "None"}, "cancelled before it was eligible"),
        ({"JobIDRaw": "1.batch"}, "step of a job"),
        ({"AllocCPUS": "99999999999"}, "larger than any machine"),
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
    with pytest.raises(TraceError, match="line 2: 7 fields, but 21 in the head"):
        read_trace(path)


def test_a_file_of_no_job_says_so(tmp_path: Path) -> None:
    assert refused(tmp_path).endswith("it has no job that can be replayed")
    assert "left out: 1 still running" in refused(tmp_path, {"State": "RUNNING", "End": "Unknown"})


def test_user_names_of_any_characters_become_numbers(tmp_path: Path) -> None:
    names = tmp_path / "names.json"
    read(tmp_path, {"User": "eve\x1b[2J\t\x00\udcff"}, names=names)
    assert "\\u001b[2J\\t\\u0000" in names.read_text()


def test_a_partition_or_a_node_of_no_pool_is_counted(tmp_path: Path) -> None:
    pools = tmp_path / "pools.toml"
    pools.write_text(POOLS)
    never = {"State": "CANCELLED by 7", "NodeList": "None assigned", "Start": "None", "AllocCPUS": "0"}
    jobs = {"NodeList": "n09", "Partition": "old", "JobIDRaw": "2"}, {**never, "Partition": "secret", "JobIDRaw": "3"}
    trace = read(tmp_path, {}, *jobs, {**never, "JobIDRaw": "4"}, pools=pools)
    assert trace.left_out["on a node and in a partition of no pool"] == (2, "job 2, line 3")
    assert trace.more["pool"].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("pool = 3", "expected [[pool]] tables (TOML) or output of scontrol show node: pool: expected a list"),
        ('[[pool]]\nname = "a"\n', "scontrol show node: pool.0.processors: it is missing"),
        ('[[pool]]\nname = "a"\nprocessors = 0\n', "processors"),
        ("", "0 pools"),
        (POOLS + POOLS.replace("cpu", "other"), "'batch' is in two pools"),
    ],
)
def test_a_file_of_no_pools_is_named(tmp_path: Path, text: str, told: str) -> None:
    pools = tmp_path / "pools.toml"
    pools.write_text(text)
    assert told in refused(tmp_path, {}, pools=pools)


def test_a_job_that_goes_on_from_one_window_into_the_next_is_told_once(tmp_path: Path) -> None:
    running = {"State": "RUNNING", "End": "Unknown", "ElapsedRaw": "9"}
    pending = {"State": "PENDING", "Start": "Unknown", "End": "Unknown", "ElapsedRaw": "0", "AllocCPUS": "0"}
    trace = read(tmp_path, pending, running, {}, running)
    assert (len(trace.table), trace.left_out["listed twice"][0]) == (1, 3)


def test_the_heads_of_later_windows_are_passed_over(tmp_path: Path) -> None:
    path = written(tmp_path, {}, {"JobIDRaw": "2"})
    first, second, third = path.read_text().splitlines()
    path.write_text("\n".join((first, second, first, third, "")))
    assert len(read_trace(path).table) == 2


def test_sizes_that_change_in_one_second_end_with_the_last(tmp_path: Path) -> None:
    def resized(submit: int, end: int, size: int, state: str = "RESIZING") -> dict[str, str]:
        return {"State": state, "Submit": str(B + submit), "Eligible": str(B + submit), "End": str(B + end),
                "Start": str(B), "ElapsedRaw": str(end), "AllocCPUS": str(size)}  # fmt: skip

    rows = resized(0, 10, 8), resized(10, 10, 6), resized(10, 30, 4, "COMPLETED")
    trace = read(tmp_path, *rows, *rows)
    assert np.array(trace.resized).tolist() == [[1, 1], [10, 10], [6, 4]]
    assert (len(trace.table), trace.left_out["listed twice"][0]) == (1, 3)
    unended = {**resized(0, 10, 8), "End": "Unknown"}
    assert len(read(tmp_path, unended, {"JobIDRaw": "2"}).table) == 1


def test_a_start_in_the_hour_that_comes_twice_is_the_one_that_fits(tmp_path: Path) -> None:
    times = {"Submit": "2026-10-25T01:50:00", "Eligible": "2026-10-25T01:50:00", "Start": "2026-10-25T02:40:00"}
    job = {**times, "End": "2026-10-25T03:10:00", "ElapsedRaw": "1800"}
    workload = prepare(read(tmp_path, job, time_zone="Europe/Berlin"))
    assert (workload[0].wait_time, workload[0].run_time, workload[0].suspended) == (6600, 1800, None)


@pytest.mark.parametrize("partitions", ["batch", "batch,debug", "(null)"])
def test_pools_of_partitions_that_share_no_node(tmp_path: Path, partitions: str) -> None:
    pools = tmp_path / "nodes.txt"
    node = "NodeName={} CPUTot=4 RealMemory=4000 Gres={} State=IDLE Partitions={}\n"
    pools.write_text(node.format("n01", "(null)", partitions) + node.format("g01", "gpu:2080ti:2(S:0-1)", "gpu"))
    found = read(tmp_path, {"NodeList": "g01"}, pools=pools).pools or ()
    assert [(pool.processors, pool.gpus) for pool in found][-1] == (4, 2)
    assert len(found) == (1 if partitions == "(null)" else 2)


def test_what_no_machine_has_never_gets_further(tmp_path: Path) -> None:
    for size in ("99999999999999999999P", "9" * 400 + "P", "1e9"):
        trace = read(tmp_path, {"AllocTRES": f"mem={size},gres/gpu=99999999999999999999"})
        assert trace.more.keys().isdisjoint({"memory", "gpus"})
    assert "Submit" in refused(tmp_path, {"Submit": "9" * 5000})
    assert "Suspended" in refused(tmp_path, {"Suspended": "9" * 25})


def test_a_job_that_asks_for_more_than_its_pool_has_is_left_out(tmp_path: Path) -> None:
    pools = tmp_path / "pools.toml"
    pools.write_text(POOLS.replace("processors = 8", "processors = 8\nmemory = 2000"))
    trace = read(tmp_path, {}, {"JobIDRaw": "2", "AllocTRES": "mem=3000M"}, pools=pools)
    for oversized in ("drop", "align"):
        workload = prepare(trace, oversized=oversized)
        assert workload.skipped == {"more memory than its pool has": 1}
    with pytest.raises(SettingsError, match="give its processors already"):
        prepare(trace, 8)


def test_what_was_read_for_a_recorded_replay_is_no_closed_one(tmp_path: Path) -> None:
    never = {"State": "CANCELLED by 7", "NodeList": "None assigned", "Start": "None", "AllocCPUS": "0", "JobIDRaw": "2"}
    workload = prepare(read(tmp_path, {}, never), recorded=True)
    assert len(Recorded(workload).next_instant()) > 0
    with pytest.raises(TraceError, match="read the log for a closed replay"):
        Machine(workload)


def test_the_standard_format_needs_none_of_this(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_text("; MaxProcs: 4\n1 0 0 9 1 -1 -1 1 9 -1 1 1 1 1 1 1 -1 -1\n")
    with pytest.raises(SettingsError, match="are only for accounting files and tables; leave them out"):
        read_trace(path, Reading(time_zone="UTC"))


def test_a_job_that_changed_its_number_of_lives_is_numbered_by_them(tmp_path: Path) -> None:
    again = {"Submit": "1795325600", "Eligible": "1795325700", "Start": "1795325800", "End": "1795325860"}
    workload = prepare(read(tmp_path, {"State": "REQUEUED"}, again))
    assert [job.job_number for job in workload] == [1, 100_000_001]
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
    assert "a key has at least 16 bytes" in refused(tmp_path, {}, names=names, names_key=key)
    key.write_text("fedcba9876543210\n")
    assert "was written with another key" in refused(tmp_path, {}, names=names, names_key=key)
    assert "was written with a key" in refused(tmp_path, {}, names=names)
    names.write_text('{"user": {"eve": 7}}')
    assert "not a mapping of names" in refused(tmp_path, {}, names=names)
    assert refused(tmp_path, {}, names=tmp_path).endswith(f"{tmp_path}: cannot be read: Is a directory")


def test_jobs_that_sacct_cuts_off_at_its_window_are_noted(tmp_path: Path) -> None:
    """As `sacct -T` prints a job, in two windows, one that runs, and one that waits."""
    trace = read(
        tmp_path,
        {"End": "1795325500", "ElapsedRaw": "20"},
        {"Start": "1795325500", "ElapsedRaw": "40"},
        {"JobIDRaw": "2", "JobID": "2", "State": "RUNNING"},
        {"JobIDRaw": "3", "JobID": "3", "State": "PENDING", "Start": "1795325540", "AllocCPUS": "0"},
    )
    assert trace.left_out["still running"] == (1, "job 2, line 4")
    assert trace.left_out["still waiting"] == (1, "job 3, line 5")
    cut = [note.partition(":")[0] for note in trace.notes if "run it without -T" in note]
    assert cut == [
        "2 jobs that wait or run have an end, which is ignored; perhaps it is from -T",
        "1 rows start when another row of their submission ends, and count as further lives",
    ]


def test_no_machine_of_0_processors_is_assumed(tmp_path: Path) -> None:
    assert read(tmp_path, {"ReqCPUS": "0", "AllocCPUS": "0"}).most_held is None
    assert read(tmp_path, {"ReqCPUS": "2"}).most_held == 4


@pytest.mark.parametrize("without", [("NodeList", "AllocTRES"), ("NodeList",), ("NodeList", "AllocTRES", "ElapsedRaw")])
def test_a_job_that_was_cancelled_while_it_waited_never_started(tmp_path: Path, without: tuple[str, ...]) -> None:
    """As Slurm 22.05 prints it: the cancellation is its start and its end, and AllocCPUS is what it requests."""
    never = {"State": "CANCELLED by 1004", "End": "1795325480", "ElapsedRaw": "0", "AllocTRES": ""}
    fields = tuple(name for name in FIELDS if name not in without)
    trace = read_trace(written(tmp_path, never, {"JobIDRaw": "2", "JobID": "2"}, fields=fields))
    assert trace.table[:, 2].tolist() == [-1, 7]  # waits
    assert trace.more["left_time"].tolist() == [7, -1]
