"""Reading, writing and filtering logs in the Standard Workload Format."""

import gzip
import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from shadowtime.replayer.swf import (
    BUNDLED,
    FIELDS,
    Job,
    Oversized,
    Requests,
    Trace,
    Workload,
    prepare,
    read_swf,
    write_swf,
)
from shadowtime.shared.bounds import MAX_TIME
from shadowtime.shared.errors import OutputError, SettingsError, TraceError
from shadowtime.shared.paths import ROOT

ARCHIVE = ROOT.parent / "shared" / "traces"

HEADER = "; Version: 2.2\n; MaxProcs: 128\n"


def line(job_number: int, submit_time: int = 0, *, wait: int = 5, run: int = 60) -> str:
    return f"{job_number} {submit_time} {wait} {run} 8 59.50 -1 16 600 -1 1 7 2 -1 3 1 -1 -1\n"


ZIPPED = gzip.compress(line(1).encode(), mtime=0)


def save(folder: Path, text: str | bytes, name: str = "log.swf") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def trace_of(*rows: dict[str, int], header: dict[str, str] | None = None) -> Trace:
    """Return a trace on 10 processors; each row overrides the fields of an ordinary job."""
    usual = dict.fromkeys(FIELDS, -1) | {"run_time": 60, "requested_time": 600, "requested_processors": 4}
    numbered = [usual | {"job_number": i, "submit_time": i} | row for i, row in enumerate(rows, 1)]
    table = np.array([[row[field] for field in FIELDS] for row in numbered], dtype=np.int64)
    return Trace("made", {"MaxProcs": "10"} if header is None else header, table)


def numbers(workload: Workload) -> list[int]:
    return [job.job_number for job in workload]


# Reading


def test_job_has_every_field_and_none_for_unknown(tmp_path: Path) -> None:
    trace = read_swf(save(tmp_path, HEADER + line(1, 40)))
    assert prepare(trace)[0] == Job(
        job_number=1,
        submit_time=40,
        wait_time=5,
        run_time=60,
        requested_time=600,
        processors=16,
        user_id=7,
        group_id=2,
        executable_number=None,
        queue_number=3,
        partition_number=1,
        status=1,
    )


@pytest.mark.parametrize("name", ["KTH.swf", "KTH.swf.gz", "KTH", "KTH.gz"])
@pytest.mark.parametrize("compressed", [False, True])
def test_compression_shows_in_the_contents_and_the_name_is_the_stem(
    tmp_path: Path, name: str, compressed: bool
) -> None:
    text = (HEADER + line(1)).encode()
    trace = read_swf(save(tmp_path, gzip.compress(text) if compressed else text, name))
    assert (trace.name, len(trace.table)) == ("KTH", 1)


def test_name_is_a_string_too(tmp_path: Path) -> None:
    assert read_swf(str(save(tmp_path, line(1)))).name == "log"


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n\n", "\n \t\n", "\n;\n", "  \n   "])
def test_line_ends_blank_lines_and_spaces(tmp_path: Path, end: str) -> None:
    text = (HEADER + line(1, 3) + line(2, 4)).replace("\n", end)
    trace = read_swf(save(tmp_path, text))
    assert trace.table[:, :2].tolist() == [[1, 3], [2, 4]]
    assert trace.header == {"Version": "2.2", "MaxProcs": "128"}


def test_last_line_without_end_and_byte_order_mark(tmp_path: Path) -> None:
    text = b"\xef\xbb\xbf" + (HEADER + line(1)).rstrip().encode()
    assert read_swf(save(tmp_path, text)).header["Version"] == "2.2"


def test_header_may_be_missing_or_in_the_middle_and_its_first_value_counts(tmp_path: Path) -> None:
    assert read_swf(save(tmp_path, line(1))).header == {}
    text = line(1) + "; MaxProcs: 64\n; MaxProcs: 32\n;  Note:\n;      http://example.org\n" + line(2)
    assert read_swf(save(tmp_path, text)).header == {"MaxProcs": "64", "Note": ""}


def test_undecodable_bytes_in_comments(tmp_path: Path) -> None:
    trace = read_swf(save(tmp_path, b"; Acknowledge: \xc5ke Sandgren\n" + line(1).encode()))
    assert trace.header == {"Acknowledge": "\N{REPLACEMENT CHARACTER}ke Sandgren"}


def test_fractions_are_cut_off(tmp_path: Path) -> None:
    text = "1 10.9 0.5 142.00 -1.0 .5 -1 16 600. -1 +1 7 2 -1 3 1 -1 -1"
    row = [1, 10, 0, 142, -1, 0, -1, 16, 600, -1, 1, 7, 2, -1, 3, 1, -1, -1]
    assert read_swf(save(tmp_path, text)).table.tolist() == [row]


def test_jobs_are_sorted_and_the_notes_say_so(tmp_path: Path) -> None:
    trace = read_swf(save(tmp_path, line(9, 5) + line(4, 7) + line(3, 5) + line(2, 5)))
    assert trace.table[:, :2].tolist() == [[2, 5], [3, 5], [9, 5], [4, 7]]
    assert trace.notes == ("1 lines were not in order of submit time",)
    assert read_swf(save(tmp_path, line(1) + line(2))).notes == ()


def test_further_fields_are_ignored_with_a_note(tmp_path: Path) -> None:
    trace = read_swf(save(tmp_path, line(1).rstrip() + " 3.5 -1\n" + line(2)))
    assert trace.table[:, 0].tolist() == [1, 2]
    assert trace.notes == ("1 lines had more than 18 fields; the rest of them is ignored",)


@pytest.mark.parametrize(
    ("header", "processors"),
    [
        ({}, None),
        ({"MaxProcs": "128"}, 128),
        ({"MaxProcs": "338 (batch partition; 512 total)", "MaxNodes": "512"}, 338),
        ({"MaxNodes": "240"}, 240),
        ({"MaxProcs": "-1", "MaxNodes": "240"}, 240),
        ({"MaxProcs": "0"}, None),
        ({"MaxProcs": "unknown"}, None),
    ],
)
def test_processors_of_the_header(header: dict[str, str], processors: int | None) -> None:
    assert trace_of({}, header=header).processors == processors


# Files that are no logs


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "hello, world\n",
            "line 1: field 1 is 'hello,', not a number; is this a Standard Workload Format file?",
        ),
        (b"\x89PNG\r\n\x1a\n\0\0", "line 1: field 1 is '\N{REPLACEMENT CHARACTER}PNG', not a number"),
        (HEADER + line(1) + line(2).replace("600", "6oo"), "line 4: field 9 is '6oo', not a number"),
        (HEADER + "\n" + line(1) + "\n;\n" + line(2).replace("600", "nan"), "line 7: field 9 is 'nan'"),
        (line(1).replace("600", "-inf"), "line 1: field 9 is '-inf', not a number"),
        (line(1).replace("600", "1-2"), "line 1: field 9 is '1-2', not a number"),
        (line(1).replace("600", "1.2.3"), "line 1: field 9 is '1.2.3', not a number"),
        (line(1).replace("600", "--"), "line 1: field 9 is '--', not a number"),
        (line(1).replace("600", "."), "line 1: field 9 is '.', not a number"),
        (line(1).replace("600", "0x10"), "line 1: field 9 is '0x10', not a number"),
        (line(1).replace("600", "9" * 20), f"line 1: field 9 is {'9' * 20}, beyond {2**53}"),
        (line(1).replace("600", "\N{ARABIC-INDIC DIGIT ONE}"), "line 1: field 9 is "),
        (line(1) + line(2).replace(" -1 -1\n", "\n"), "line 2: 16 fields; a job line has 18"),
        (
            line(1).replace(" -1 -1\n", "\n") + line(2).rstrip() + " 1 1\n",
            "line 1: 16 fields; a job line has 18",
        ),
        (line(1) + line(2)[:12], "line 2: 6 fields; a job line has 18"),
        (line(5) + HEADER + line(6) + line(5, 99), "job number 5 on line 1 and again on line 5"),
        (line(1) + line(-1), "line 2: job number -1 is negative"),
        ("", "no job line in it"),
        (HEADER, "no job line in it"),
        (gzip.compress(b"", mtime=0), "no job line in it"),
        (ZIPPED[:-12], "truncated or damaged gzip file"),
        (ZIPPED[:-2], "truncated or damaged gzip file"),
        (ZIPPED[:5], "truncated or damaged gzip file"),
        (ZIPPED + b"more", "truncated or damaged gzip file"),
        (ZIPPED[:12] + b"\xff" * 20, "truncated or damaged gzip file"),
    ],
)
def test_error_names_file_line_and_what_is_wrong(tmp_path: Path, text: str | bytes, complaint: str) -> None:
    path = save(tmp_path, text)
    with pytest.raises(TraceError) as raised:
        read_swf(path)
    assert str(raised.value).startswith(str(path))
    assert complaint in str(raised.value)


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"none\.swf: cannot be read: No such file or directory"):
        read_swf(tmp_path / "none.swf")
    with pytest.raises(TraceError, match="cannot be read: Is a directory"):
        read_swf(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_file_without_permission(tmp_path: Path) -> None:
    path = save(tmp_path, line(1))
    path.chmod(0)
    with pytest.raises(TraceError, match="cannot be read: Permission denied"):
        read_swf(path)


# The jobs of a replay


def test_filter_counts_each_job_once_under_its_first_reason() -> None:
    trace = trace_of(
        {},
        {"submit_time": -1, "run_time": 0},
        {"requested_processors": -1},
        {"requested_processors": 0, "allocated_processors": 0, "requested_time": -1},
        {"run_time": 0},
        {"run_time": -1},
        {"requested_time": -1},
        {"requested_processors": 11},
        {"requested_processors": -1, "allocated_processors": 3},
    )
    workload = prepare(trace)
    assert numbers(workload) == [1, 9]
    assert [job.processors for job in workload] == [4, 3]
    assert workload.skipped == {
        "submit time negative": 1,
        "no processors": 2,
        "run time not positive": 2,
        "no request": 1,
        "larger than the machine": 1,
    }


def test_a_machine_of_another_size() -> None:
    trace = trace_of({"requested_processors": 12}, {"requested_processors": 10}, {})
    assert numbers(prepare(trace)) == [2, 3]
    assert numbers(prepare(trace, 12)) == [1, 2, 3]
    assert numbers(prepare(trace, 4)) == [3]


def test_align_cuts_larger_jobs_to_the_machine() -> None:
    trace = trace_of({"requested_processors": 12}, {"requested_processors": 12, "run_time": 0}, {})
    workload = prepare(trace, oversized="align")
    assert [job.processors for job in workload] == [10, 4]
    assert (workload.aligned, workload.skipped) == (1, {"run time not positive": 1})
    assert prepare(trace).aligned == 0


@pytest.mark.parametrize(
    ("requests", "times"),
    [
        ("as-logged", [(60, 600), (900, 600)]),
        ("actual", [(60, 60), (900, 600)]),
        ("doubled", [(60, 1200), (600, 1200)]),
    ],
)
def test_requests(requests: Requests, times: list[tuple[int, int]]) -> None:
    trace = trace_of({}, {"run_time": 900})
    before = trace.table.copy()
    workload = prepare(trace, requests=requests)
    assert [(job.run_time, job.requested_time) for job in workload] == times
    assert np.array_equal(trace.table, before)


def test_limit_counts_the_jobs_that_are_kept() -> None:
    trace = trace_of({}, {"run_time": 0}, {}, {})
    assert numbers(prepare(trace, limit=2)) == [1, 3]
    assert numbers(prepare(trace, limit=99)) == [1, 3, 4]


def test_workload_is_a_sequence_of_jobs_that_nobody_can_write_to() -> None:
    workload = prepare(trace_of(*[{}] * 5000))  # more than one block of the iteration
    assert len(workload) == 5000
    assert [workload[i] for i in range(5000)] == list(workload)
    assert workload[-1].job_number == 5000
    with pytest.raises(IndexError):
        workload[5000]
    with pytest.raises(ValueError, match="read-only"):
        workload.columns["run_time"][0] = 1


def test_a_negative_wait_is_kept_as_logged() -> None:
    waits = [job.wait_time for job in prepare(trace_of({"wait_time": -7}, {"wait_time": -1}, {"wait_time": 0}))]
    assert waits == [-7, None, 0]


def test_no_job_left() -> None:
    trace = trace_of({"run_time": 0}, {"requested_processors": 12})
    message = (
        "^made: no job left to replay on 10 processors; skipped: 1 run time not positive, 1 larger than the machine$"
    )
    with pytest.raises(TraceError, match=message):
        prepare(trace)


def test_machine_of_unknown_size() -> None:
    trace = trace_of({}, header={})
    with pytest.raises(TraceError, match=r"^made: its header has neither .*; give --processors$"):
        prepare(trace)
    assert prepare(trace, 8).processors == 8


@pytest.mark.parametrize("number", [0, -3])
def test_options_out_of_range(number: int) -> None:
    with pytest.raises(SettingsError, match=f"processors {number}: a machine has at least 1"):
        prepare(trace_of({}), number)
    with pytest.raises(SettingsError, match=f"jobs {number}: a replay needs at least 1"):
        prepare(trace_of({}), limit=number)


def test_unknown_options() -> None:
    oversized: Oversized = "cut"  # type: ignore[assignment]
    with pytest.raises(SettingsError, match="oversized 'cut': not one of drop, align"):
        prepare(trace_of({}), oversized=oversized)
    requests: Requests = "halved"  # type: ignore[assignment]
    with pytest.raises(SettingsError, match="requests 'halved': not one of as-logged, actual, doubled"):
        prepare(trace_of({}), requests=requests)


# Writing

tables = st.lists(st.lists(st.integers(-1, MAX_TIME), min_size=17, max_size=17), min_size=1, max_size=20).map(
    lambda rows: np.array([[number, *row] for number, row in enumerate(rows)], dtype=np.int64)
)
values = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]))
headers = st.dictionaries(st.from_regex(r"[A-Z][A-Za-z0-9_]*", fullmatch=True), values)


@given(table=tables, header=headers, name=st.sampled_from(["log.swf", "log.swf.gz"]))
def test_what_is_written_is_read_again(table: NDArray[np.int64], header: dict[str, str], name: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        write_swf(path, header, table)
        trace = read_swf(path)
        assert path.read_bytes().startswith(b"\x1f\x8b") == (name == "log.swf.gz")
        assert [left.name for left in Path(folder).iterdir()] == [name]
    assert trace.header == header
    assert trace.table.tolist() == sorted(table.tolist(), key=lambda row: (row[1], row[0]))


def test_compressed_file_holds_no_time_stamp(tmp_path: Path) -> None:
    for name in ("one.swf.gz", "two.swf.gz"):
        write_swf(tmp_path / name, {"MaxProcs": "10"}, trace_of({}).table)
    contents = (tmp_path / "one.swf.gz").read_bytes()
    assert contents == (tmp_path / "two.swf.gz").read_bytes()
    assert contents[4:8] == bytes(4)


def test_line_breaks_in_a_header_value_cannot_make_jobs(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    write_swf(path, {"Note": "one\ntwo"}, trace_of({}).table)
    assert read_swf(path).header == {"Note": "one two"}


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    table = trace_of({}).table
    with pytest.raises(OutputError, match=r"none/log\.swf: cannot be written: No such file or directory"):
        write_swf(tmp_path / "none" / "log.swf", {}, table)
    (tmp_path / "folder.swf").mkdir()
    with pytest.raises(OutputError, match="cannot be written: Is a directory"):
        write_swf(tmp_path / "folder.swf", {}, table)
    assert [left.name for left in tmp_path.iterdir()] == ["folder.swf"]


@pytest.mark.parametrize("shape", [(18,), (2, 17)])
def test_a_table_of_another_shape_is_refused(tmp_path: Path, shape: Sequence[int]) -> None:
    with pytest.raises(ValueError, match="a trace has"):
        write_swf(tmp_path / "log.swf", {}, np.zeros(shape, dtype=np.int64))


# Real logs


@pytest.mark.parametrize(
    ("name", "processors", "logged", "kept", "skipped"),
    [
        ("KTH-SP2-1996-2", 100, 28_489, 28_481, {"run time not positive": 8}),
        ("CTC-SP2-1996-3.1-cln", 338, 77_222, 77_199, {"run time not positive": 17, "no request": 6}),
        ("SDSC-SP2-1998-4.2-cln", 128, 59_715, 53_999, {"run time not positive": 5681, "no request": 35}),
        ("HPC2N-2002-2.2-cln", 240, 202_871, 202_871, {}),
    ],
)
def test_archived_logs(name: str, processors: int, logged: int, kept: int, skipped: dict[str, int]) -> None:
    path = ARCHIVE / f"{name}.swf.gz"
    if not path.exists():
        pytest.skip(f"no log at {path}")
    trace = read_swf(path)
    workload = prepare(trace)
    assert (trace.name, trace.processors, len(trace.table)) == (name, processors, logged)
    assert (len(workload), workload.skipped, trace.notes) == (kept, skipped, ())
    assert sum(column.nbytes for column in workload.columns.values()) <= 100 * kept


def test_bundled_log_is_replayed_whole() -> None:
    workload = prepare(read_swf(BUNDLED))
    assert (workload.name, len(workload), workload.skipped, workload.aligned) == ("bundled", 5000, {}, 0)


def test_a_request_of_zero_is_none_and_requested_processors_of_zero_mean_those_allocated() -> None:
    row = dict.fromkeys(FIELDS, -1) | {"submit_time": 0, "run_time": 60, "requested_time": 90}
    rows = [
        row | {"job_number": 1, "requested_processors": 2, "requested_time": 0},
        row | {"job_number": 2, "requested_processors": 0, "allocated_processors": 3},
    ]
    workload = prepare(Trace("zeros", {"MaxProcs": "4"}, np.array([list(each.values()) for each in rows])))
    assert [(job.job_number, job.processors) for job in workload] == [(2, 3)]
    assert workload.skipped == {"no request": 1}


def test_times_beyond_all_measure_are_left_out() -> None:
    row = dict.fromkeys(FIELDS, -1) | {"submit_time": 0, "requested_processors": 1, "requested_time": 90}
    rows = [row | {"job_number": 1, "run_time": 60}, row | {"job_number": 2, "run_time": 2**50}]
    workload = prepare(Trace("long", {"MaxProcs": "4"}, np.array([list(each.values()) for each in rows])))
    assert [job.job_number for job in workload] == [1]
    assert sum(workload.skipped.values()) == 1
