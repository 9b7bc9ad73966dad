"""A converted log is what a replay uses of a log."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from shadowtime.replayer.logs.swf import read_swf
from shadowtime.replayer.logs.trace import BUNDLED
from shadowtime.replayer.logs.workload import prepare
from shadowtime.shared.cluster.job import OF_ANY_LOG, Job
from tests.integration.commands.converted import convert


@pytest.mark.parametrize("name", ["out.swf", "out.swf.gz"])
def test_a_log_replays_as_before(tmp_path: Path, name: str) -> None:
    status, told = convert(BUNDLED, tmp_path / name, "--jobs", 200)
    assert (status, "wrote 200 jobs on 128 processors" in told) == (0, True), told
    before, after = prepare(read_swf(BUNDLED), limit=200), prepare(read_swf(tmp_path / name))
    assert list(after) == list(before)
    assert (after.processors, after.unix_start_time) == (before.processors, before.unix_start_time)


def test_what_is_asked_for_is_done(tmp_path: Path) -> None:
    out = tmp_path / "out.swf"
    assert convert(f"{BUNDLED}@16", out, "--requests", "actual", "--filter", "align")[0] == 0
    before = prepare(read_swf(BUNDLED), 16, requests="actual", oversized="align")
    assert list(prepare(read_swf(out))) == list(before)


def test_jobs_put_back_are_in_the_log_which_says_so(tmp_path: Path) -> None:
    log, out = tmp_path / "log.swf", tmp_path / "out.swf"
    row = "{} {} 0 50 1 -1 -1 1 60 -1 1 3 -1 -1 -1 -1 -1 -1\n"
    log.write_text("; MaxProcs: 4\n" + row.format(1, 0) + row.format(4, 900))
    keys = "first=2,last=3,user=7,request=3600,run_time=60"
    assert convert(log, out, "--put-back", keys)[0] == 0
    jobs = list(prepare(read_swf(out)))
    assert [(job.job_number, job.submit_time, job.user_id) for job in jobs[1:3]] == [(2, 300, 7), (3, 600, 7)]
    assert f"generated jobs put back by {keys}" in read_swf(out).header["Conversion"]


def test_every_field_of_the_log_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "log.swf"
    log.write_bytes(b"; MaxProcs: 4\n1 0 7 5 2 3.0 99 2 5 98 1 2 3 4 5 6 -1 -1\n")
    assert convert(log, tmp_path / "out.swf")[0] == 0
    assert np.array_equal(read_swf(tmp_path / "out.swf").table, read_swf(log).table)


def test_parquet_has_the_same_columns(tmp_path: Path) -> None:
    assert convert(BUNDLED, tmp_path / "out.parquet", "--jobs", 50)[0] == 0
    frame = pd.read_parquet(tmp_path / "out.parquet")
    columns = prepare(read_swf(BUNDLED), limit=50).columns
    assert {name: frame[name].tolist() for name in frame} == {name: found.tolist() for name, found in columns.items()}


def test_csv_has_a_column_per_field(tmp_path: Path) -> None:
    assert convert(BUNDLED, tmp_path / "out.csv", "--jobs", 50)[0] == 0
    head, *rows = (tmp_path / "out.csv").read_text().splitlines()
    assert head.split(",") == list(Job._fields[:OF_ANY_LOG])
    columns = prepare(read_swf(BUNDLED), limit=50).columns
    found = np.array([list(map(int, row.split(","))) for row in rows])
    assert np.array_equal(found, np.stack([columns[name] for name in head.split(",")], axis=1))


def test_a_mistake_is_one_line_and_leaves_no_file(tmp_path: Path) -> None:
    log = tmp_path / "log.swf"
    log.write_bytes(b"; MaxProcs: 4\n1 0 0 5 1 -1 -1 1 5 -1 1 -1 -1 -1 -1 -1 -1 -1\n")
    for arguments, culprit in [
        ((BUNDLED, tmp_path / "out.xls"), "out.xls: expected a name that ends in one of .swf, .swf.gz, .csv, .parquet"),
        ((tmp_path / "no.swf", tmp_path / "out.swf"), "no.swf"),
        ((log, log), "log.swf is an input"),
        ((log, tmp_path / "none" / "out.swf"), "cannot be written"),
    ]:
        status, told = convert(*arguments)
        assert (status, culprit in told, "Traceback" in told) == (2, True, False), told
    assert [path.name for path in tmp_path.iterdir()] == ["log.swf"]
    assert len(read_swf(log).table) == 1


def test_the_place_is_said_once_as_a_word_or_as_an_option(tmp_path: Path) -> None:
    assert convert(BUNDLED, "-o", tmp_path / "out.csv", "--jobs", 5)[0] == 0
    for words in ((), (tmp_path / "a.csv", "-o", tmp_path / "b.csv")):
        status, told = convert(BUNDLED, *words)
        assert (status, told.strip()) == (2, "error: expected the output file once, as OUT or as --output OUT")


@pytest.mark.parametrize("size", ["", "@8"])
def test_an_assumed_size_is_noted(tmp_path: Path, size: str) -> None:
    (log := tmp_path / "log.swf").write_text("1 0 0 100 4 -1 -1 4 100 -1 1 1 1 1 1 1 -1 -1\n")
    assert convert(f"{log}{size}", tmp_path / "out.swf")[0] == 0
    note = read_swf(tmp_path / "out.swf").header.get("Note")
    assert (note is None) == bool(size)
