"""The command line: what it accepts, what it leaves behind, and one line for whatever is wrong."""

import csv
import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyarrow import parquet

import shadowtime.replayer.commands.replay as replayer_main
from shadowtime.replayer.commands import replay_run as compare
from shadowtime.replayer.logs.swf import write_swf
from shadowtime.replayer.synthetic.generator import generate
from shadowtime.services.catalogue import configure
from shadowtime.services.scheduler.registry import POLICIES, RECOMMENDED
from shadowtime.shared.cli.command_line import run_command
from shadowtime.shared.cli.paths import ROOT
from tests.support.patience import PATIENCE
from tests.support.small_logs import job, write_log

COMMAND = [sys.executable, "-m", "shadowtime", "replay"]


class Finished(NamedTuple):
    """What a command left."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """What it printed, as JSON."""
        return json.loads(self.out)


Replay = Callable[..., Finished]


@pytest.fixture
def replay(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Replay:
    """Run the command in this process."""

    def run(*arguments: object) -> Finished:
        monkeypatch.setattr(sys, "argv", ["replayer", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            run_command(replayer_main)
        captured = capsys.readouterr()
        status = left.value.code or 0
        assert isinstance(status, int)
        return Finished(status, captured.out, captured.err)

    return run


def refused(finished: Finished) -> str:
    """Return the one line of an error; notes on what was left out of a log may stand before it."""
    *notes, last = finished.err.splitlines()
    assert finished.status == 2
    assert last.startswith("error: ")
    assert not [note for note in notes if note.startswith(("error", "Traceback", " "))]
    return last.removeprefix("error: ")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of four jobs on four processors, with waits, two users and a job that is too large."""
    return write_log(
        tmp_path,
        job(1, 0, processors=3, run_time=90, wait_time=0),
        job(2, 5, processors=4, run_time=30, wait_time=85, user_id=2),
        job(3, 6, processors=1, run_time=20, requested_time=400, wait_time=2),
        job(4, 7, processors=9, wait_time=1),
        job(5, 200, processors=4, run_time=500, requested_time=300, wait_time=10),
        name="few.swf.gz",
    )


# What is wrong


def test_file_missing(replay: Replay, tmp_path: Path) -> None:
    path = tmp_path / "none.swf"
    assert refused(replay(path)) == f"{path}: cannot be read: No such file or directory"


def test_file_is_a_folder(replay: Replay, tmp_path: Path) -> None:
    told = f"{tmp_path}: a folder without files; expected a log, or a folder with its parts"
    assert refused(replay(tmp_path)) == told


LINE = "1 0 5 60 8 59.50 -1 16 600 -1 1 7 2 -1 3 1 -1 -1\n"


@pytest.mark.parametrize(
    ("contents", "complaint"),
    [
        (b"%PDF-1.7\nnothing of a log\n", "is this a Standard Workload Format file?"),
        (b"\x7fELF\x00\x01\x02\x03", "is this a Standard Workload Format file?"),
        (b"a,b,c\n1,2,3\n", "line 1: "),
        (b"", "this is an empty file"),
        (b"; MaxProcs: 4\n", "it has no job line"),
        (LINE.encode() + LINE.replace("1 0", "2 x", 1).encode(), "line 2: field 2 is 'x', not a number"),
        (LINE.encode() + b"2 3 4\n", "line 2: 3 fields; a job line has 18"),
        (gzip.compress(LINE.encode() * 1000, mtime=0)[:-20], "truncated or damaged gzip file"),
        (
            b"; MaxProcs: 1,024\n" + LINE.encode(),
            "its header has neither MaxProcs nor MaxNodes as a whole number; give --processors",
        ),
        (
            b"; MaxProcs: 8\n" + LINE.encode(),
            "no job left to replay on 8 processors; skipped: 1 larger than the machine",
        ),
        (b"; MaxProcs: 16\n" + LINE.replace(" 60 ", " -1 ", 1).encode(), "skipped: 1 run time not positive"),
        (b"; MaxProcs: 16\n" + LINE.replace("1 0", "1 -5", 1).encode(), "skipped: 1 submit time negative"),
    ],
)
def test_file_is_not_a_log_to_replay(replay: Replay, tmp_path: Path, contents: bytes, complaint: str) -> None:
    path = tmp_path / "log.swf"
    path.write_bytes(contents)
    line = refused(replay(path))
    assert line.startswith((str(path), "log: "))
    assert complaint in line


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--policy", "nope"], r"unknown policy 'nope'; known: (.*, )?easy, easy-sjbf, fcfs"),
        (["--policy", "easy", "--policy", "nope:x=1"], "unknown policy 'nope'"),
        (["--policy", "easy:window=3"], "policy 'easy' has no key 'window'; known keys: "),
        (["--policy", "easy:"], "'' in 'easy:' is not of the form key=value"),
        (["--policy", ""], "'' is not a SPEC"),
        (
            ["--policy", "easy:runtime=nope"],
            "unknown run-time predictor 'nope'; known: (.*, )?last-two, (.*, )?requested",
        ),
        (["--policy", "best:depth=1"], "has no key 'depth'"),
        (["--runtime", "nope"], "unknown run-time predictor 'nope'; known: (.*, )?last-two, (.*, )?requested"),
        (["--runtime", "last-two:size=3"], "run-time predictor 'last-two' has no key 'size'; known keys: predict"),
        (
            ["--policy", "easy-sjbf:fallback=hope"],
            "policy 'easy-sjbf': fallback=hope: .*request.*incremental",
        ),
        (["--runtime", "last-two", "--runtime", "requested"], "--runtime: expected one value in closed mode, found 2"),
        (["--adjustment", "nope"], r"unknown walltime adjustment 'nope'; did you mean 'none'\? known: (.*, )?none"),
        (["--wait-bound", "nope"], r"unknown wait bound 'nope'; did you mean 'none'\? known: bmbp, (.*, )?none"),
        (["--mode", "recorded", "--policy", "easy", "--policy", "fcfs"], "--policy: expected one in recorded mode"),
        (["--speed", "fast"], "--speed 'fast': expected max or a factor of at least 0.001"),
        (["--speed", "0"], "--speed '0': expected max or a factor of at least 0.001"),
        (["--speed", "nan"], "--speed 'nan': expected max or a factor of at least 0.001"),
        (["--speed", "inf"], "--speed 'inf': expected max or a factor of at least 0.001"),
        (["--speed=-3"], "--speed '-3': expected max or a factor of at least 0.001"),
        (["--capacity", "7"], "--capacity '7': expected SECONDS:PROCESSORS"),
        (["--capacity", "a:b"], "--capacity 'a:b': expected SECONDS:PROCESSORS"),
        (["--capacity=-1:4"], "--capacity '-1:4': expected SECONDS:PROCESSORS"),
        (["--capacity", "²:4"], "--capacity '²:4': expected SECONDS:PROCESSORS"),
        (["--capacity", "150:2"], "none of 1 waiting jobs starts: job 5 requests 4 processors; the machine has 2"),
        (["--jobs", "0"], "'--jobs': .*greater than or equal to 1"),
        (["--jobs", "1.5"], "'--jobs': .*whole number"),
        (["--processors", "0"], "'--processors': .*greater than or equal to 1"),
        (["--processors", "many"], "'--processors': .*whole number"),
        (["--seed", "x"], "'--seed': .*whole number"),
        (["--mode", "open"], "'--mode': 'open' is not one of 'closed', 'recorded'"),
        (["--moldable", "perhaps"], "'--moldable': 'perhaps' is not one of 'yes', 'no'"),
        (["--requests", "true"], "'--requests': 'true' is not one of"),
        (["--filter", "cut"], "'--filter': 'cut' is not one of"),
        (["--polcy", "easy"], "no such option: --polcy .*--policy"),
        (["-o", "out"], "no such option: -o; see .* --help"),
        (["--seed"], "'--seed' requires an argument"),
        (["--policy", "easy", "--policy", "easy"], "--policy 'easy' is given twice$"),
        (
            ["--policy", "easy", "--policy", "easy:weight=0"],
            "--policy 'easy:weight=0' is given twice: 'easy' is the same",
        ),
        (
            ["--mode", "recorded", "--runtime", "empirical", "--runtime", "empirical:prior=2"],
            "--runtime and --adjustment 'empirical:prior=2, none' is given twice: 'empirical, none' is the same",
        ),
        (["--list"], "--list: unknown name .*; --list without a name shows all"),
        (["--processors", "99999999999999999999"], "99999999999999999999"),
        (["--seed", "99999999999999999999", "--decisions", "-"], "99999999999999999999"),
        (["--seed", str(2**53 + 1)], "seed 9007199254740993: expected a whole number from 0 to 9007199254740992"),
        (["--speedup", "perfect"], "--speedup 'perfect': expected constant, amdahl:serial=SHARE or downey:"),
        (["--speedup", "amdahl:serial=2"], "--speedup 'amdahl:serial=2': expected constant, .*less than or equal to 1"),
        (["--speedup", "downey:parallelism=2"], r"sigma=VARIANCE \(sigma: it is missing\)$"),
        (["--speedup", "constant:x=1"], "sigma=VARIANCE$"),
        (["--speedup", "perfect:kind=amdahl,serial=0.1"], "--speedup 'perfect:kind=amdahl,serial=0.1': expected"),
        (["--policy", "easy", "--policy", "fcfs", "--schedule", "x.csv"], "needs one trace and one policy"),
        (
            ["--policy", "easy", "--policy", "fcfs", "--speed", "1e7", "--decisions", "-"],
            "needs one trace and one policy",
        ),
        (["--run", "again"], "--run and --set need --transport kafka"),
        (["--mode", "recorded", "--runtime", "requested", "--runtime", "last-two", "--schedule", "-"], "--schedule"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_options_out_of_range(replay: Replay, log: Path, arguments: list[str], complaint: str) -> None:
    finished = replay(log, *arguments)
    assert re.search(complaint, refused(finished))
    assert finished.out == ""


def test_unknown_policy_lists_every_known_one(replay: Replay, log: Path) -> None:
    line = refused(replay(log, "--policy", "nope"))
    assert line.partition("known: ")[2].split(", ") == sorted([*RECOMMENDED, *POLICIES.classes])


@pytest.mark.parametrize("size", ["²", "0", "99999999999999999999"])
def test_size_behind_the_name_of_a_log(replay: Replay, log: Path, size: str) -> None:
    assert size in refused(replay(f"{log}@{size}"))


def test_two_clusters_and_one_schedule(replay: Replay, log: Path, tmp_path: Path) -> None:
    assert "needs one trace and one policy" in refused(replay(log, f"{log}@8", "--schedule", tmp_path / "x.csv"))
    assert "needs one trace and one policy" in refused(
        replay(log, f"{log}@8", "--mode", "recorded", "--schedule", tmp_path / "x.csv")
    )
    assert not (tmp_path / "x.csv").exists()


@pytest.mark.parametrize("option", ["--json", "--schedule", "--decisions", "--report", "--results"])
@pytest.mark.parametrize("where", ["none/result", ""])
def test_result_file_cannot_be_written(replay: Replay, log: Path, tmp_path: Path, option: str, where: str) -> None:
    path = tmp_path / where if where else tmp_path
    line = refused(replay(log, option, path))
    assert line.startswith(f"{path}: cannot be written: ")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
@pytest.mark.parametrize("option", [["--json", "-"], ["--decisions", "-"], []])
def test_standard_output_is_full(log: Path, option: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run([*COMMAND, str(log), *option], stdout=full, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    assert "Traceback" not in done.stderr
    assert "No space left on device" in done.stderr


# What comes out


def test_json_on_standard_output_is_pure(replay: Replay, log: Path) -> None:
    finished = replay(log, "--json", "-")
    assert finished.status == 0
    assert finished.document["trace"] == "few"
    assert finished.document["cluster"] == "few"
    assert (finished.document["jobs"], finished.document["processors"]) == (4, 4)
    assert finished.document["skipped"] == {"larger than the machine": 1}
    assert [row["policy"] for row in finished.document["policies"]] == ["easy"]
    assert "skipped 1 job: 1 larger than the machine" in finished.err


def test_report_on_standard_output_is_pure(replay: Replay, log: Path) -> None:
    finished = replay(log, "--report", "-")
    assert finished.out.startswith("<!doctype html>")
    assert finished.out.rstrip().endswith("</html>")


def test_without_result_files_a_table_comes_out(replay: Replay, log: Path) -> None:
    finished = replay(log, "--policy", "fcfs", "--policy", "best")
    assert finished.status == 0
    assert "few: 4 jobs on 4 processors" in finished.out
    assert finished.out.index("fcfs") < finished.out.index("best")


def test_all_result_files_at_once(replay: Replay, log: Path, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    names = {
        "--json": "a.json",
        "--schedule": "b.csv",
        "--decisions": "c.jsonl",
        "--report": "d.html",
        "--results": "e.csv",
    }
    arguments = [each for option, name in names.items() for each in (option, folder / name)]
    assert replay(log, *arguments).status == 0
    assert sorted(os.listdir(folder)) == sorted(names.values())
    assert (folder / "b.csv").read_text().splitlines() == [
        "job_number,submit_time,start_time,end_time,processors,status",
        "1,0,0,90,3,1",
        "2,5,90,120,4,1",
        "3,6,120,140,1,1",  # it fits at 6 s, but by its request it would delay job 2
        "5,200,200,500,4,0",
    ]
    kinds = [json.loads(line)["kind"] for line in (folder / "c.jsonl").read_text().splitlines()]
    assert kinds[0] == "ClusterOpened"
    assert set(kinds[1:]) == {"Decided"}


def test_several_traces_give_a_list(replay: Replay, log: Path) -> None:
    finished = replay(log, f"{log}@9", "--json", "-", "--policy", "fcfs", "--policy", "easy")
    small, large = finished.document
    assert (small["cluster"], small["processors"], small["jobs"]) == ("few", 4, 4)
    assert (large["cluster"], large["processors"], large["jobs"]) == ("few@9", 9, 5)
    assert large["trace"] == "few"
    for each in (small, large):
        assert [row["policy"] for row in each["policies"]] == ["fcfs", "easy"]


def test_the_same_log_twice_is_refused(replay: Replay, log: Path) -> None:
    assert refused(replay(log, log)) == f"log {str(log)!r} is given twice"
    again = log.parent / ".." / log.parent.name / log.name
    assert refused(replay(log, f"{again}@4")) == f"log '{again}@4' is given twice: {str(log)!r} is the same"


def test_processors_of_the_command_line(replay: Replay, log: Path) -> None:
    assert replay(log, "--processors", 12, "--json", "-").document["processors"] == 12
    both = replay(log, f"{log}@9", "--processors", 12, "--json", "-").document
    assert [each["processors"] for each in both] == [12, 9]
    twice = "@PROCESSORS and --processors exclude each other; leave one of them out"
    assert refused(replay(f"{log}@9", "--processors", 12)) == f"{log}@9: {twice}"


def test_the_policy_of_an_objective_is_replayed_once(replay: Replay, log: Path) -> None:
    done = replay(log, "--objective", "slowdown", "--policy", "tuned", "--json", "-")
    assert [row["policy"] for row in done.document["policies"]] == ["tuned"]
    done = replay(log, "--objective", "slowdown", "--policy", "easy", "--json", "-")
    assert [row["policy"] for row in done.document["policies"]] == ["easy", "best"]
    assert refused(replay(log, "--objective", "slowdown", "--mode", "recorded")).startswith(
        "--objective slowdown: expected none in recorded mode"
    )


def test_requests_are_rewritten(replay: Replay, log: Path, tmp_path: Path) -> None:
    waits = {
        requests: replay(log, "--requests", requests, "--json", "-").document["policies"][0]["mean_wait"]
        for requests in ("as-logged", "actual", "doubled")
    }
    # Job 3 fits beside job 1 for its 20 s, not for the 400 s that it requests.
    assert waits == {"as-logged": (85 + 114) / 4, "actual": 85 / 4, "doubled": (85 + 114) / 4}


def test_filter_align_cuts_large_jobs(replay: Replay, log: Path) -> None:
    finished = replay(log, "--filter", "align", "--json", "-")
    assert (finished.document["jobs"], finished.document["skipped"]) == (5, {})
    assert finished.document["aligned"] == 1
    assert "cut 1 job to 4 processors" in finished.err


def test_first_jobs_only(replay: Replay, log: Path) -> None:
    assert replay(log, "--jobs", 2, "--json", "-").document["jobs"] == 2


def test_in_pieces(replay: Replay, log: Path, tmp_path: Path) -> None:
    """All that a whole log gives but what needs all jobs at once."""
    whole, pieces = (
        replay(log, "--json", "-", "--decisions", tmp_path / name, *given)
        for name, given in (("whole", ()), ("pieces", ("--in-pieces",)))
    )
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "pieces").read_bytes()
    assert whole.err == pieces.err
    assert whole.document.keys() - pieces.document.keys() == {"lacks", "overlaps"}
    assert all(whole.document[name] == pieces.document[name] for name in ("jobs", "skipped", "processors", "settings"))
    for given in (("--report", tmp_path / "page"), ("--schedule", tmp_path / "ran.csv")):
        assert refused(replay(log, "--in-pieces", *given)).startswith(
            "--in-pieces cannot be used with --report or --schedule"
        )
    table = tmp_path / "jobs.csv"
    table.write_text("submit,start,end,processors,limit\n")
    assert refused(replay(table, "--in-pieces")).endswith(
        "--in-pieces is only for a log in the Standard Workload Format, without other reading options"
    )


def test_capacity_changes(replay: Replay, log: Path, tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    assert replay(log, "--capacity", "700:4", "--capacity", "150:3", "--schedule", path).status == 0
    assert path.read_text().splitlines()[-1] == "5,200,700,1000,4,0"


def test_recorded_mode_scores_predictors_on_what_happened(replay: Replay, log: Path) -> None:
    arguments = ["--mode", "recorded", "--runtime", "requested", "--runtime", "last-two", "--json", "-"]
    document = replay(log, *arguments).document
    [row] = document["policies"]
    assert row["policy"] == "recorded"
    assert row["mean_wait"] == (0 + 85 + 2 + 10) / 4
    assert [each["predictor"] for each in document["run_time_predictions"]] == [
        "requested",
        "last-two",
    ]
    assert {each["jobs"] for each in document["run_time_predictions"]} == {4}
    assert [each["predictions"] for each in document["run_time_predictions"]] == [0, 1]
    assert document["run_time_predictions"][0]["mean_run_time"] == (90 + 30 + 20 + 500) / 4


def test_recorded_mode_keeps_the_logged_schedule(replay: Replay, log: Path, tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    assert replay(log, "--mode", "recorded", "--schedule", path).status == 0
    assert path.read_text().splitlines()[1:] == ["1,0,0,90,3,1", "2,5,90,120,4,1", "3,6,8,28,1,1", "5,200,210,710,4,1"]


def test_recorded_mode_needs_waits(replay: Replay, tmp_path: Path) -> None:
    path = write_log(tmp_path, job(1), job(2))
    assert "its jobs have no wait times" in refused(replay(path, "--mode", "recorded"))


@pytest.mark.nightly
def test_recorded_mode_takes_the_bundled_trace(replay: Replay) -> None:
    plain = ("--policy", "easy", "--runtime", "requested", "--json", "-")
    recorded = replay("--mode", "recorded", *plain).document["policies"][0]
    decided = replay(*plain).document["policies"][0]
    assert recorded["mean_wait"] == decided["mean_wait"], "its waits are those of EASY"


def test_list_names_everything(replay: Replay) -> None:
    finished = replay("--list")
    assert finished.status == 0
    for name in ("easy", "easy-sjbf", "fcfs", "requested", "last-two", "--wait-bound"):
        assert name in finished.out
    assert RECOMMENDED["best"] in "".join(finished.out.split()), "whole, however narrow the terminal"
    assert len(finished.out.splitlines()) < 100
    assert all(len(line) <= 80 for line in finished.out.splitlines())


def test_list_tells_the_keys_of_what_is_named(replay: Replay) -> None:
    finished = replay("--list", "last-two", "empirical", "easy")
    assert finished.status == 0
    assert "fallback=request" in finished.out
    assert "prior=2.0" in finished.out
    assert "weight=0" in finished.out
    assert "lwf" not in finished.out


def test_paced_clusters_side_by_side(replay: Replay, log: Path, tmp_path: Path) -> None:
    arguments = [log, f"{log}@9", "--json", "-"]
    paced = replay(*arguments, "--speed", "1e7").document
    for each, unpaced in zip(paced, replay(*arguments).document, strict=True):
        for document in (each, unpaced):
            del document["policies"][0]["elapsed_seconds"], document["policies"][0]["cpu_seconds"]
            del document["settings"]["speed"]
        assert each == unpaced
    began = time.perf_counter()
    assert replay(*arguments, "--speed", "2500").status == 0
    assert time.perf_counter() - began > 500 / 2500, "the last job ends at 500 s"


def test_names_that_look_like_markup_or_are_not_text(tmp_path: Path, log: Path, replay: Replay) -> None:
    odd = tmp_path / "kth[old].swf.gz"
    odd.write_bytes(log.read_bytes())
    finished = replay(odd)
    assert "kth[old]: 4 jobs" in finished.out
    assert "kth[old]: skipped 1 job" in finished.err
    odd = tmp_path / os.fsdecode(b"\xff.swf.gz")
    odd.write_bytes(log.read_bytes())
    assert replay(odd, "--json", "-").status == 0


def test_exact_seconds(replay: Replay, log: Path) -> None:
    assert " 49.8 " in replay(log, "--seconds").out


def test_results_are_a_row_per_policy_and_log(replay: Replay, log: Path, tmp_path: Path) -> None:
    arguments = [log, f"{log}@9", "--policy", "fcfs", "--policy", "best", "--results"]
    assert replay(*arguments, tmp_path / "r.csv").status == 0
    assert replay(*arguments, tmp_path / "r.parquet", "--json", tmp_path / "r.json").status == 0
    with (tmp_path / "r.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    table = parquet.read_table(tmp_path / "r.parquet").to_pylist()
    told = [
        (each["cluster"], row) for each in json.loads((tmp_path / "r.json").read_bytes()) for row in each["policies"]
    ]
    assert len(rows) == len(table) == len(told) == 4
    for row, typed, (cluster, scores) in zip(rows, table, told, strict=True):
        assert row["cluster"] == typed["cluster"] == cluster
        assert row["policy"] == typed["policy"] == scores["policy"]
        assert configure(typed["configuration"]) == configure(scores["policy"])
        assert float(row["mean_wait"]) == typed["mean_wait"] == scores["mean_wait"]
        assert {"run_time_crps", "adjustment_bad"} <= typed.keys() == row.keys()


def test_a_schedule_as_a_log_replays_to_the_same_starts(replay: Replay, log: Path, tmp_path: Path) -> None:
    for name in ("out.swf", "out.swf.gz", "out.parquet", "out.csv"):
        assert replay(log, "--schedule", tmp_path / name).status == 0
    written = (tmp_path / "out.csv").read_text()
    for name in ("out.swf", "out.swf.gz"):
        again = tmp_path / f"{name}.csv"
        assert replay(tmp_path / name, "--mode", "recorded", "--schedule", again).status == 0
        assert again.read_text() == written
    frame = parquet.read_table(tmp_path / "out.parquet")
    assert [",".join(frame.column_names), *(",".join(map(str, row.values())) for row in frame.to_pylist())] == (
        written.splitlines()
    )


# Ended from outside


def test_interrupted_says_so(replay: Replay, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(compare, "replay", interrupt)
    finished = replay(log, "--pipeline")
    assert finished.status == 128 + signal.SIGINT
    assert finished.err.splitlines()[-1] == "interrupted; no result file was written"


@pytest.mark.parametrize("speed", ["max", "20000"])
def test_interrupt_leaves_no_result_file(tmp_path: Path, speed: str) -> None:
    results = tmp_path / "results"
    results.mkdir()
    files = ["--json", "a.json", "--schedule", "b.csv", "--decisions", "c.jsonl", "--report", "d.html"]
    arguments = [each if each.startswith("--") else str(results / each) for each in files]
    long = tmp_path / "long.swf"
    write_swf(long, *generate(jobs=60_000, processors=64, seed=1))
    with subprocess.Popen(
        [*COMMAND, str(long), "--speed", speed, *arguments], stdout=-1, stderr=-1, text=True, cwd=ROOT
    ) as process:
        deadline = time.monotonic() + PATIENCE
        while not os.listdir(results):  # the decision log, under way
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + signal.SIGINT, err
    assert out == ""
    assert "Traceback" not in err
    assert os.listdir(results) == []


@pytest.mark.parametrize("arguments", [["--decisions", "-"], ["--jobs", "50", "--json", "-"], ["--list"]])
def test_a_reader_that_leaves_is_no_error(arguments: list[str]) -> None:
    """As in `shadowtime replay … | head -1`."""
    with subprocess.Popen([*COMMAND, *arguments], stdout=-1, stderr=-1, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        err = process.stderr.read().decode()
        status = process.wait(timeout=PATIENCE)
    assert err == ""
    assert status in (0, 1)


def test_errors_through_a_real_process(tmp_path: Path) -> None:
    done = subprocess.run([*COMMAND, "none.swf"], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: none.swf: cannot be read: No such file or directory\n"


def test_progress_bar_on_a_terminal(tmp_path: Path, log: Path) -> None:
    controller, terminal = os.openpty()
    with subprocess.Popen([*COMMAND, str(log), "--json", "-"], stdout=-1, stderr=terminal, cwd=ROOT) as process:
        os.close(terminal)
        parts = []
        with suppress(OSError), os.fdopen(controller, "rb", buffering=0) as screen:  # an error at its end
            while part := screen.read(4096):
                parts.append(part)
        scores, _ = process.communicate()
    shown = b"".join(parts).decode()
    assert process.returncode == 0
    assert json.loads(scores)["jobs"] == 4
    assert "Traceback" not in shown
