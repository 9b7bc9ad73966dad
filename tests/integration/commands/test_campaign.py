"""A campaign from the command line: the same bytes however it is carried out, and however often it is killed."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pyarrow.parquet as pq
import pytest

from shadowtime.replayer.campaign.all_papers import reproduce_all
from shadowtime.replayer.campaign.file import read_campaign
from shadowtime.replayer.campaign.logs import find_logs, workload_of
from shadowtime.replayer.campaign.reproduce import reproduce
from shadowtime.replayer.campaign.run import How
from shadowtime.replayer.logs.swf import write_swf
from shadowtime.replayer.synthetic.generator import generate
from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.errors import SettingsError, TraceError
from tests.support.forked import run_forked
from tests.support.patience import PATIENCE

FILE = """
name = "small"
title = "Two policies on a small log"
logs = ["small.swf.gz@16"]
policies = [{ label = "R", spec = "conservative:queue=R" }, { label = "E", spec = "easy", seeds = [0] }, "best"]
seeds = [0, 1, 2]
copies = 1
keep_jobs = true
columns = [
    "mean_wait",
    { key = "mean_bounded_slowdown", name = "slowdown", of = "E" },
    { key = "calibration.exact.brier_score", name = "Brier", digits = 3 },
]

[paper."small@16"]
E = { "mean wait" = 12 }
"""
CELLS = 6 + 2 + 6


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a campaign and its log."""
    made = tmp_path_factory.mktemp("campaign")
    write_swf(made / "small.swf.gz", *generate(jobs=300, processors=16, seed=1, load=4.0))
    (made / "small.toml").write_text(FILE)
    return made


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "shadowtime", *arguments]


def environment(mark: str = "") -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80", "CAMPAIGN_OF": mark}


def run(folder: Path, out: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the campaign, with results in a folder of this name."""
    call = command("campaign", "small.toml", "--out", out, *arguments)
    return subprocess.run(
        call, cwd=folder, env=environment(), capture_output=True, text=True, timeout=PATIENCE, check=False
    )


@pytest.fixture(scope="module")
def whole(folder: Path) -> "subprocess.CompletedProcess[str]":
    """The campaign, carried out in one process, with everything that it can write."""
    written = ["--report", "page.html", "--csv", "rows.csv", "--latex", "tables.tex"]
    done = run(folder, "whole", "--workers", "1", *written)
    assert done.returncode == 0, done.stderr
    return done


def table(folder: Path, out: str) -> bytes:
    return (folder / out / "table.parquet").read_bytes()


def test_a_table_of_means_with_intervals_that_fits_a_terminal(whole: "subprocess.CompletedProcess[str]") -> None:
    assert max(map(len, whole.stdout.splitlines())) <= 80
    assert "small@16: 300 jobs on 16 processors" in whole.stdout
    assert " ± " in whole.stdout
    assert "(12)" in whole.stdout
    assert "100.00" in whole.stdout  # easy's share of its own slowdown
    assert "R: conservative:queue=R" in whole.stdout.splitlines()
    assert f"small: {CELLS} cells, 0 of them done before; results in whole" in whole.stderr.splitlines()


def test_a_row_for_each_cell_in_order_without_a_clock(folder: Path, whole: "subprocess.CompletedProcess[str]") -> None:
    rows = pq.read_table(folder / "whole" / "table.parquet").to_pylist()
    assert [(row["row"], row["copy"], row["seed"]) for row in rows] == [
        (label, copy, seed)
        for label, seeds in (("R", (0, 1, 2)), ("E", (0,)), ("best", (0, 1, 2)))
        for copy in (0, 1)
        for seed in seeds
    ]
    assert not [key for key in rows[0] if "seconds" in key and key != "wasted_processor_seconds"]
    assert len({row["decisions_sha256"] for row in rows[:6]}) == 6, "orders that draw"
    assert {len(row["cell"]) for row in rows} == {64}
    cells = pq.read_table(folder / "whole" / "cells" / f"{rows[0]['cell']}.parquet").to_pylist()
    assert cells[0]["elapsed_seconds"] > 0


def test_what_is_written_beside_it(folder: Path, whole: "subprocess.CompletedProcess[str]") -> None:
    page = (folder / "page.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "Each job against itself" in page
    assert "Slowdown against the longest wait" in page
    assert "src=" not in page
    assert len((folder / "rows.csv").read_text().splitlines()) == 1 + CELLS
    latex = (folder / "tables.tex").read_text()
    assert r"\begin{tabular}{lrrr}" in latex
    assert r"slowdown, \% of E" in latex


def test_what_is_done_is_not_done_again(folder: Path, whole: "subprocess.CompletedProcess[str]") -> None:
    before = table(folder, "whole")
    done = run(folder, "whole")
    assert f"{CELLS} cells, {CELLS} of them done before" in done.stderr
    assert done.stdout == whole.stdout
    assert table(folder, "whole") == before


@pytest.mark.parametrize(
    "how",
    [("--workers", "2"), pytest.param(("--on", "dask", "--workers", "2"), marks=pytest.mark.nightly)],
    ids=" ".join,
)
def test_the_same_bytes_however_it_is_carried_out(
    folder: Path, whole: "subprocess.CompletedProcess[str]", how: Sequence[str]
) -> None:
    done = run(folder, "-".join(how), *how)
    assert done.returncode == 0, done.stderr
    assert table(folder, "-".join(how)) == table(folder, "whole")
    assert done.stdout == whole.stdout


def of_mark(mark: str) -> list[int]:
    """Return the processes whose environment has this mark."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"CAMPAIGN_OF={mark}".encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:  # it has ended, or is another user's
            continue
    return found


def wait_until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def begun(folder: Path, out: str) -> "tuple[subprocess.Popen[str], str]":
    """Start the campaign, and wait until it has done a cell."""
    mark = uuid4().hex
    call = command("campaign", "small.toml", "--out", out, "--workers", "2")
    process = subprocess.Popen(call, cwd=folder, env=environment(mark), stderr=subprocess.PIPE, text=True)
    wait_until(lambda: len(list((folder / out / "cells").glob("*.parquet"))) >= 1)
    return process, mark


def test_killed_in_the_middle_it_goes_on_to_the_same_bytes(
    folder: Path, whole: "subprocess.CompletedProcess[str]"
) -> None:
    process, mark = begun(folder, "killed")
    process.kill()
    process.communicate()
    wait_until(lambda: not of_mark(mark))  # nothing is left behind that goes on working
    written = {path: path.stat().st_mtime_ns for path in (folder / "killed" / "cells").glob("*.parquet")}
    assert 0 < len(written) < CELLS
    assert not (folder / "killed" / "table.parquet").exists()
    done = run(folder, "killed", "--workers", "2")
    assert done.returncode == 0, done.stderr
    assert f"{CELLS} cells, {len(written)} of them done before" in done.stderr
    assert {path: path.stat().st_mtime_ns for path in written} == written
    assert table(folder, "killed") == table(folder, "whole")


@pytest.mark.nightly
def test_ctrl_c_ends_it_with_one_line_and_leaves_what_is_done(folder: Path) -> None:
    process, mark = begun(folder, "interrupted")
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert told.splitlines()[1:] == ["interrupted; finished cells are kept; run the same command again to continue"]
    assert not of_mark(mark)


@pytest.mark.nightly
def test_a_worker_that_dies_names_its_cell(folder: Path) -> None:
    process, mark = begun(folder, "died")
    workers = [pid for pid in of_mark(mark) if b"forkserver" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    for pid in sorted(workers)[1:]:  # the first is the server that forks them
        os.kill(pid, signal.SIGKILL)
    _, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert told.splitlines()[-1].startswith("error: small@16, ")
    assert told.splitlines()[-1].endswith("the process ended abnormally: killed, or out of memory")


def test_a_worker_that_finds_another_file_says_so(folder: Path, whole: "subprocess.CompletedProcess[str]") -> None:
    (log,) = find_logs(read_campaign(folder / "small.toml"), folder)
    other = folder / "other.swf.gz"
    other.write_bytes(b"not the log")
    with pytest.raises(TraceError, match=r"other.swf.gz differs from the campaign's file: SHA-256"):
        workload_of(replace(log, path=str(other)))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["campaign", "nope.toml"], "nope.toml: cannot be read: No such file or directory"),
        (["campaign", "small.toml", "--on", "grid"], "--on 'grid': expected cores, dask or dask=ADDRESS"),
        (["campaign", "small.toml", "--workers", "0"], "--workers"),
        (["campaign", "small.toml", "--csv", "a", "--latex", "a"], "two results have the same path: a, a"),
        (["campaign", "small.toml", "--csv", "small.swf.gz"], "small.swf.gz is an input; write the result"),
        (["campaign", "small.toml", "--csv", "small.toml"], "small.toml is an input; write the result"),
        (["campaign", "small.toml", "--out", "small.toml"], "small.toml: cannot be created"),
        pytest.param(
            ["campaign", "small.toml", "--on", "dask=tcp://127.0.0.1:1"],
            "no scheduler answers",
            marks=pytest.mark.nightly,
        ),
        (["reproduce", "P1-table-4", "--all"], "'P1-table-4' and --all exclude each other: name one table, or none"),
        (
            ["reproduce", "--all", "--csv", "a"],
            "--csv and --latex are of one campaign, not of --all; leave them out, or name a page",
        ),
        (["reproduce", "--all", "--logs", "nowhere"], "--logs nowhere: it has none of the logs of the papers"),
        (
            ["reproduce", "result.json", "--csv", "a", "--first", "3"],
            "result.json: a result is repeated as it was made, so leave out --csv, --first",
        ),
        (
            ["reproduce", "P2-figures-1-to-4", "--latex", "a"],
            "P2-figures-1-to-4 is no grid of replays, so leave out --latex",
        ),
        (["reproduce", "P9-table-9"], "unknown campaign 'P9-table-9'; did you mean 'P4-table-2'? known: P0-table-1"),
        (["reproduce", "P1-table-4", "--logs", "."], "log KTH is missing: there is no KTH-SP2-1996-2.swf.gz in ."),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_a_mistake_is_one_line(folder: Path, arguments: list[str], told: str) -> None:
    done = run_forked(*arguments, folder=folder, environment=environment())
    assert done.returncode == 2
    (line,) = (line for line in done.stderr.splitlines() if not line.startswith("small: "))
    assert line.startswith("error: ")
    assert told in line


@pytest.mark.nightly
def test_of_the_first_jobs_alone_no_figures_of_a_paper_are_shown(folder: Path) -> None:
    done = run(folder, "first", "--first", "20", "--workers", "2")
    assert done.returncode == 0, done.stderr
    assert "20 jobs on 16 processors" in done.stdout
    assert "(12)" not in done.stdout
    assert "--first: the paper's figures are left out" in done.stderr.replace("\n", " ")


def test_all_papers_make_one_document(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = FILE.replace('["small.swf.gz@16"]', '["small.swf.gz@16"]\njobs = 40').replace("copies = 1", "")
    (folder / "near.toml").write_text(small)
    (folder / "gone.toml").write_text(small.replace("small.swf.gz", "gone.swf").replace("small@16", "gone@16"))
    (folder / "same.toml").write_text(small.replace('name = "small"', 'name = "same"'))
    paths = {name: folder / f"{name}.toml" for name in ("near", "gone", "same")}
    how = How(folder, folder, folder / "papers", 1, "cores", None, folder / "papers.html", None, None)
    reproduce_all(paths, how)
    printed = capsys.readouterr()
    assert "gone: left out: log gone.swf is missing" in printed.err
    assert re.search(r"same: (\d+) cells, \1 of them done before", printed.err), "equal replays are made once"
    assert "≠ E: not explained" in printed.out
    assert "0 of 1" in printed.out
    page = (folder / "papers.html").read_text()
    for text in (
        "section 3.5: clusters of an artificial trace",
        "Two policies on a small log",
        "log gone.swf is missing",
        "0 of 1",
        "≠ E: not explained",
    ):
        assert text in page


def test_the_list_needs_nothing_that_a_campaign_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A campaign with `boosted` cannot be read without LightGBM."""

    def refuse(path: Path) -> None:
        raise SettingsError("it needs LightGBM, which is not installed")

    monkeypatch.setattr("shadowtime.replayer.campaign.file.read_campaign", refuse)
    reproduce()
    assert "run_times " in capsys.readouterr().out


def test_all_that_can_be_reproduced_is_listed(folder: Path) -> None:
    done = run_forked("reproduce", folder=folder, environment=environment())
    assert "P1-table-4                 Perković 2000, Table 4" in done.stdout
