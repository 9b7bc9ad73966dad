"""Reading and writing logs in the Standard Workload Format."""

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

from shadowtime.replayer.logs.chunked_workload import read_in_pieces
from shadowtime.replayer.logs.formats import read_trace
from shadowtime.replayer.logs.swf import read_swf, write_swf
from shadowtime.replayer.logs.trace import Trace
from shadowtime.replayer.logs.workload import prepare
from shadowtime.shared.bounds import MAX_TIME
from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.cluster.job import Job
from shadowtime.shared.errors import OutputError, TraceError
from tests.support.small_logs import job, trace_of

ARCHIVE = ROOT.parent / "shared" / "traces"

HEADER = "; Version: 2.2\n; MaxProcs: 128\n"


def line(job_number: int, submit_time: int = 0, *, wait: int = 5, run: int = 60) -> str:
    return f"{job_number} {submit_time} {wait} {run} 8 59.50 -1 16 600 -1 1 7 2 -1 3 1 -1 -1\n"


ZIPPED = gzip.compress(line(1).encode(), mtime=0)


def save(folder: Path, text: str | bytes, name: str = "log.swf") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


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
    assert read_swf(save(tmp_path, ";MaxProcs:64\n" + line(1))).header == {"MaxProcs": "64"}


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
    assert trace.notes == ("1 lines had more than 18 fields; further fields are ignored",)


@pytest.mark.parametrize(
    ("header", "processors"),
    [
        ({}, None),
        ({"MaxProcs": "128"}, 128),
        ({"MaxProcs": "338 (batch partition; 512 total)", "MaxNodes": "512"}, 338),
        ({"MaxNodes": "240"}, 240),
        ({"MaxProcs": "-1", "MaxNodes": "240"}, 240),
        ({"MaxProcs": "0"}, None),
        ({"MaxProcs": "1,024", "MaxNodes": "64"}, None),
        ({"MaxProcs": "1e3"}, None),
        ({"MaxProcs": "0x80"}, None),
        ({"MaxProcs": "12.5"}, None),
        ({"MaxProcs": "1234567890123456"}, None),
        ({"MaxProcs": "128, of which 4 for tests."}, 128),
        ({"MaxProcs": "unknown"}, None),
    ],
)
def test_processors_of_the_header(header: dict[str, str], processors: int | None) -> None:
    assert Trace("made", header, trace_of(job(1)).table).processors == processors


def executions(*rows: tuple[int, int, int, int, int]) -> str:
    """Return lines of job number, submit time, wait, run time and status."""
    return "".join(
        f"{number} {at} {wait} {run} 4 -1 -1 4 600 -1 {code} 1 1 1 1 1 -1 -1\n" for number, at, wait, run, code in rows
    )


@pytest.mark.parametrize(
    ("rows", "joined"),
    [
        (
            ((1, 0, 10, 300, 1), (1, 0, 10, 100, 2), (1, -1, 50, 200, 3), (2, 5, 0, 60, 1)),
            [(1, 0, 10, 300, 1), (2, 5, 0, 60, 1)],
        ),
        (((1, 0, 10, 100, 2), (2, 5, 0, 60, 1), (1, -1, 50, 200, 3)), [(1, 0, 10, 300, 1), (2, 5, 0, 60, 1)]),
        (((1, 0, 10, 100, 2), (1, -1, 50, 200, 4)), [(1, 0, 10, 300, 0)]),
        (((1, 0, 10, 100, 2), (1, -1, 50, 200, 2)), [(1, 0, 10, 300, -1)]),
        (((1, 0, 10, 100, 2), (1, -1, 50, 200, 4), (1, 0, 10, 300, 0)), [(1, 0, 10, 300, 0)]),  # the summary last
        (((1, 0, 10, -1, 1), (1, 0, 10, 100, 2), (1, -1, 50, 200, 3)), [(1, 0, 10, 300, 1)]),
        (((1, 0, 10, 100, 3), (2, 5, 0, 60, 4)), [(1, 0, 10, 100, 1), (2, 5, 0, 60, 0)]),
    ],
)
def test_partial_executions_are_one_job(
    tmp_path: Path, rows: tuple[tuple[int, int, int, int, int], ...], joined: list[tuple[int, int, int, int, int]]
) -> None:
    trace = read_swf(save(tmp_path, HEADER + executions(*rows)))
    assert trace.table[:, [0, 1, 2, 3, 10]].tolist() == [list(row) for row in joined]
    assert trace.table[:, 4].tolist() == [4] * len(joined)
    left = len(rows) - len(joined)
    assert trace.notes == ((f"{left} lines of partial executions count with their jobs",) if left else ())


def test_a_summary_twice_is_a_repeated_job(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"1 of 2 rows .* job number 1 on line 3 and again on line 5"):
        read_swf(save(tmp_path, HEADER + executions((1, 0, 9, 9, 1), (1, 0, 9, 9, 3), (1, 0, 9, 9, 1))))


@pytest.mark.parametrize("delimiter", [";", " ; ", "\t"])
def test_other_delimiters(tmp_path: Path, delimiter: str) -> None:
    plain = read_swf(save(tmp_path, HEADER + line(1) + line(2))).table.tolist()
    rows = (line(1) + line(2)).replace(" ", delimiter)
    assert read_trace(save(tmp_path, HEADER + rows)).table.tolist() == plain
    assert read_trace(save(tmp_path, rows)).table.tolist() == plain  # no header shows the format
    assert read_trace(save(tmp_path, rows.replace("-1", ""))).table.tolist() == plain if delimiter == ";" else True


def test_comments_after_a_job(tmp_path: Path) -> None:
    text = HEADER + line(1).rstrip() + " ; checkpointed\n" + line(2)
    trace = read_swf(save(tmp_path, text))
    assert (trace.table[:, 0].tolist(), trace.notes) == ([1, 2], ())


@pytest.mark.parametrize(
    ("header", "submitted", "start", "notes"),
    [
        ("", 843_480_031, 0, 0),
        ("; UnixStartTime: 843480031\n", 843_480_031, 0, 1),
        ("; UnixStartTime: 843480031\n", 700_000_000, 843_480_031, 0),  # an excerpt of a long log
        ("; UnixStartTime: 843480031\n", 0, 843_480_031, 0),
        ("; UnixStartTime: 0\n", 0, None, 0),
    ],
)
def test_unix_times_in_place_of_seconds_of_the_log(
    tmp_path: Path, header: str, submitted: int, start: int | None, notes: int
) -> None:
    """The start time of the header is not added to submissions that are Unix times."""
    path = save(tmp_path, header + line(1, submitted))
    trace = read_swf(path)
    assert (trace.unix_start_time, sum("UnixStartTime" in note for note in trace.notes)) == (start, notes)
    assert read_in_pieces(path, 16)[0].unix_start_time == start


def test_a_machine_that_nobody_states_is_what_its_jobs_filled(tmp_path: Path) -> None:
    rows = "1 0 65 600 1 -1 -1 -1 900 -1 0 1 -1 -1 2 9 -1 -1\n2 5 0 61 4 -1 -1 -1 900 -1 0 1 -1 -1 2 9 -1 -1\n"
    for header in ("", "; MaxProcs: -1\n", "; MaxProcs: 0\n; MaxNodes:\n"):
        trace = read_trace(save(tmp_path, header + rows))
        assert trace.processors == 5
        assert trace.most_held == 5
    stated = read_trace(save(tmp_path, "; MaxNodes: 9\n" + rows))
    assert (stated.processors, stated.most_held) == (9, None)
    assert read_trace(save(tmp_path, "; MaxProcs: 1,024\n" + rows)).processors is None  # ambiguous: do not guess


def test_jobs_without_sizes_are_serial(tmp_path: Path) -> None:
    rows = "".join(f"{number} 0 0 600 -1 -1 -1 -1 900 -1 1 1 1 1 1 1 -1 -1\n" for number in (1, 2, 3))
    trace = read_trace(save(tmp_path, rows))
    assert [job.processors for job in prepare(trace)] == [1, 1, 1]
    assert (trace.processors, trace.notes[0]) == (3, "it states the processors of no job, so each job counts as serial")


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
        (line(1).replace("600", "-" + "9" * 20), f"line 1: field 9 is -{'9' * 20}, beyond {2**53}"),
        (line(1).replace("600", "\N{ARABIC-INDIC DIGIT ONE}"), "line 1: field 9 is "),
        (line(1) + line(2).replace(" -1 -1\n", "\n"), "line 2: 16 fields; a job line has 18"),
        (
            line(1).replace(" -1 -1\n", "\n") + line(2).rstrip() + " 1 1\n",
            "line 1: 16 fields; a job line has 18",
        ),
        (line(1) + line(2)[:12], "line 2: 6 fields; a job line has 18"),
        (line(5) + HEADER + line(6) + line(5, 99), "job number 5 on line 1 and again on line 5"),
        (line(1) + line(-1), "line 2: job number -1 is negative"),
        ("", "it has no job line"),
        (HEADER, "it has no job line"),
        (gzip.compress(b"", mtime=0), "it has no job line"),
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


def test_a_few_odd_lines_are_left_out_and_counted(tmp_path: Path) -> None:
    lines = [line(number) for number in range(1, 41)]
    lines[3], lines[20], lines[30] = lines[3].replace("600", "6oo"), "ended early\n", lines[29]
    trace = read_swf(save(tmp_path, HEADER + "".join(lines)))
    assert trace.table[:, 0].tolist() == [number for number in range(1, 41) if number not in (4, 21, 31)]
    assert trace.left_out["unreadable"][0] == 3
    assert trace.notes[0].startswith("3 of 40 rows cannot be read and are left out: line 6: field 9 is '6oo'")
    assert prepare(trace).skipped == {"unreadable": 3}
    broken = "".join(lines[:20])
    with pytest.raises(TraceError, match="more than a tenth"):
        read_swf(save(tmp_path, HEADER + broken.replace("600", "6oo", 5)))
    assert len(read_swf(save(tmp_path, HEADER + broken.replace("600", "6oo", 5)), lenient=True).table) == 14


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"none\.swf: cannot be read: No such file or directory"):
        read_swf(tmp_path / "none.swf")
    with pytest.raises(TraceError, match="a folder without files; expected a log, or a folder with its parts"):
        read_swf(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_file_without_permission(tmp_path: Path) -> None:
    path = save(tmp_path, line(1))
    path.chmod(0)
    with pytest.raises(TraceError, match="cannot be read: Permission denied"):
        read_swf(path)


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
        write_swf(tmp_path / name, {"MaxProcs": "10"}, trace_of(job(1)).table)
    contents = (tmp_path / "one.swf.gz").read_bytes()
    assert contents == (tmp_path / "two.swf.gz").read_bytes()
    assert contents[4:8] == bytes(4)


def test_line_breaks_in_a_header_value_cannot_make_jobs(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    write_swf(path, {"Note": "one\ntwo"}, trace_of(job(1)).table)
    assert read_swf(path).header == {"Note": "one two"}


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    table = trace_of(job(1)).table
    with pytest.raises(OutputError, match=r"none/log\.swf: cannot be written: No such file or directory"):
        write_swf(tmp_path / "none" / "log.swf", {}, table)
    (tmp_path / "folder.swf").mkdir()
    with pytest.raises(OutputError, match="cannot be written: Is a directory"):
        write_swf(tmp_path / "folder.swf", {}, table)
    assert [left.name for left in tmp_path.iterdir()] == ["folder.swf"]


@pytest.mark.parametrize("shape", [(18,), (2, 17)])
def test_a_table_of_another_shape_is_refused(tmp_path: Path, shape: Sequence[int]) -> None:
    with pytest.raises(ValueError, match="expected a table of shape"):
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
