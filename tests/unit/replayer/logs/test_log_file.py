"""Logs that were made to take all memory or all day, and logs whose numbers lead nowhere: one line each."""

import gzip
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import shadowtime.replayer.commands.replay as replayer_main
from shadowtime.replayer.logs import swf
from shadowtime.replayer.logs.swf import read_swf
from shadowtime.replayer.logs.workload import prepare
from shadowtime.shared.accounting import text_file as log_file
from shadowtime.shared.accounting.text_file import lines_of
from shadowtime.shared.bounds import MAX_DURATION, MAX_LINE_LENGTH, MAX_TIME
from shadowtime.shared.cli.command_line import run_command
from shadowtime.shared.errors import TraceError
from tests.support.log_rows import MIB, written


def row(number: int, *, submit: int = 0, wait: int = -1, run: int = 60, size: int = 1, request: int = 60) -> str:
    return f"{number} {submit} {wait} {run} {size} -1 -1 {size} {request} -1 1 1 1 1 1 1 -1 -1\n"


# Finding 12: what is small and unpacks to much


def test_finding_12_lines_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_file, "MAX_LINES", 3 * MIB)
    bomb = written(tmp_path / "bomb.swf.gz", *[b"\n" * MIB] * 200)
    with pytest.raises(
        TraceError, match=rf"bomb\.swf\.gz, line {3 * MIB + 1}: a log has at most 3,145,728 lines; split it$"
    ):
        read_swf(bomb)


@pytest.mark.parametrize("text", [b"1 ", b"; A: x", b"\0"], ids=["job", "header", "zeros"])
@pytest.mark.parametrize("before", [b"", b"; Version: 2\n1 2 3"], ids=["first", "second"])
def test_finding_12_a_line_is_no_longer_than_a_line(tmp_path: Path, text: bytes, before: bytes) -> None:
    bomb = written(tmp_path / "bomb.swf.gz", before, *[text * (MIB // 4)] * 100)
    number = 2 if before else 1
    with pytest.raises(TraceError, match=rf"bomb\.swf\.gz, line {number}: longer than the maximum of 1,048,576 bytes$"):
        read_swf(bomb)


def test_finding_12_bytes_are_counted_over_all_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_file, "MAX_LOG_SIZE", 3 * MIB)
    member = gzip.compress(b";" * 60_000 + b"\n", mtime=0)
    path = tmp_path / "many.swf.gz"
    path.write_bytes(member * 100)
    with pytest.raises(TraceError, match=r"many\.swf\.gz: a log has at most 3,145,728 bytes, unpacked; split it$"):
        read_swf(path)
    path.write_bytes(gzip.compress(row(1).encode()) + gzip.compress(row(2).encode()) + b"\0" * 99)
    assert read_swf(path).table[:, 0].tolist() == [1, 2]


def test_finding_12_a_header_has_a_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swf, "MAX_HEADER_SIZE", 1_000)
    path = tmp_path / "header.swf"
    path.write_text("".join(f"; Key{number}: {'x' * 90}\n" for number in range(20)) + row(1))
    with pytest.raises(TraceError, match=r"header\.swf, line 11: a header has at most 1,000 bytes; shorten it$"):
        read_swf(path)


@pytest.mark.parametrize("at", [-2, -1, 0, 1, 2])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_are_the_same_wherever_a_piece_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int, end: bytes
) -> None:
    lines = [row(number).strip().encode() for number in range(1, 9)]
    path = tmp_path / "log.swf"
    path.write_bytes(b"\xef\xbb\xbf" + end.join(lines) + end)
    monkeypatch.setattr(log_file, "PIECE", 2 * len(lines[0]) + len(end) + 3 + at)
    assert [line for block in lines_of(path) for line in block if line] == lines


def test_the_longest_line_is_read(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_text("; Note: " + "x" * (MAX_LINE_LENGTH - 8) + "\n" + row(1))
    assert len(read_swf(path).header["Note"]) == MAX_LINE_LENGTH - 8


# What comes of numbers at their bounds


HALF = MAX_DURATION // 2
HOSTILE = {
    "submit": (
        [row(1, submit=2**53 - 100)],
        f"line 2: field 2 is 9007199254740892, beyond {MAX_TIME}, the largest submit time",
    ),
    "wait": (
        [row(1, wait=MAX_TIME + 1)],
        f"line 2: field 3 is {MAX_TIME + 1}, beyond {MAX_TIME}, the largest wait time",
    ),
    "far": (
        [
            row(number, submit=MAX_TIME - 100, run=3_600, size=60 if number < 3 else 10, request=3_600)
            for number in (1, 2, 3)
        ],
        "the replay reaches 2199023259052, beyond 2199023255552, the latest time of an event",
    ),
    "long": ([row(number, run=HALF, request=HALF, size=100) for number in range(1, 12)], "beyond 2199023255552"),
    "number": ([row(2**53 + 2)], "line 2: field 1 is 9007199254740994, beyond"),
    "digits": ([row(1).replace(" 60 ", " " + "9" * 400 + " ")], "line 2: field 4 is 9999"),
}


def test_the_reason_states_from_which_length_on_jobs_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_text("; MaxProcs: 100\n" + row(1, run=HALF, request=60) + row(2, run=HALF + 1, request=60))
    workload = prepare(read_swf(path))
    assert (len(workload), workload.skipped) == (1, {f"longer than {HALF} s": 1})


def refused(arguments: Sequence[object], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the one line that a replay leaves; it has no status but 2."""
    monkeypatch.setattr(sys, "argv", ["replayer", *map(str, arguments)])
    with pytest.raises(SystemExit) as left:
        run_command(replayer_main)
    told = capsys.readouterr()
    assert (left.value.code, told.out) == (2, "")
    (line,) = (each for each in told.err.splitlines() if each.startswith("error: "))
    assert "Traceback" not in told.err
    return line


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("policy", ["easy", "conservative", "best"])
def test_finding_01_a_log_beyond_the_bounds_ends_with_one_line(
    name: str, policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, complaint = HOSTILE[name]
    log = tmp_path / "log.swf"
    log.write_text("; MaxProcs: 100\n" + "".join(rows))
    assert complaint in refused([log, "--policy", policy], monkeypatch, capsys)


def test_finding_01_recorded_jobs_that_end_too_late_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.swf"
    log.write_text("; MaxProcs: 100\n" + row(1, wait=0) + row(7, submit=MAX_TIME - 10, wait=0))
    told = refused([log, "--mode", "recorded"], monkeypatch, capsys)
    assert told.startswith("error: log: job 7 ends at 2199023255602, beyond 2199023255552")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--capacity", f"{MAX_TIME + 1}:4"], "--capacity '2199023255553:4': time: expected a number less"),
        (["--capacity", "0:99999999999"], "--capacity '0:99999999999': processors: expected a number less"),
        (["--capacity", "9" * 5_000], "… (5000 characters, sha256 "),
        (["--policy", "x" * 100_000], "… (100000 characters, sha256 "),
        (["--policy", "easy:runtime=templates(set=\0)"], "templates \ufffd: embedded null byte"),
        (["--policy", "easy:runtime=templates(set=/dev/zero)"], "templates /dev/zero: larger than 4,194,304 bytes"),
    ],
)
def test_options_beyond_the_bounds(
    arguments: list[str],
    complaint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = tmp_path / "log.swf"
    log.write_text("; MaxProcs: 100\n" + row(1))
    told = refused([log, *arguments], monkeypatch, capsys)
    assert complaint in told
    assert len(told) < 1_000


def test_a_log_with_a_long_name_is_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / ("x" * 240 + ".swf")
    log.write_text("; MaxProcs: 100\n" + row(1))
    monkeypatch.setattr(sys, "argv", ["replayer", str(log), "--json", str(tmp_path / "out")])
    with pytest.raises(SystemExit) as left:
        run_command(replayer_main)
    assert not left.value.code
