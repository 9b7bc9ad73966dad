"""The benchmarks can be named, and replay what they are told to or nothing."""

import json
import sys
from functools import partial
from pathlib import Path
from runpy import run_module

import pytest

import tests.benchmarks.large_machine as large
import tests.benchmarks.probabilistic_pass as passes
from shadowtime.shared.errors import TraceError
from tests.benchmarks.__main__ import BENCHMARKS, main
from tests.benchmarks.logs import log
from tests.benchmarks.replay import replay
from tests.benchmarks.scheduling_pass import median_microseconds
from tests.gates import archive


def test_unknown_name_lists_the_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nope"]) == 2
    message = capsys.readouterr().err
    assert message.startswith("unknown benchmark 'nope'; known: ")
    assert all(name in message for name in BENCHMARKS)


def test_each_prints_one_json_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, generated_log: str
) -> None:
    monkeypatch.setitem(BENCHMARKS, "replay-generated", partial(replay, generated_log))
    assert main(["replay-generated"]) == 0
    [line] = capsys.readouterr().out.splitlines()
    result = json.loads(line)
    assert (result["benchmark"], result["trace"], result["jobs"]) == ("replay-generated", "generated", 200)
    assert 0 < result["share_outside_policy"] < 1
    assert result["passes"] > 200


@pytest.mark.filterwarnings("ignore:.* found in sys.modules:RuntimeWarning")
@pytest.mark.parametrize(
    ("module", "arguments", "log"),
    [
        ("wait_forecasts", ["waits", "KTH"], "KTH"),
        ("wait_forecasts", ["schedules"], "KTH"),
        ("similar_jobs", ["errors", "CTC"], "CTC"),
        ("similar_jobs", ["search"], "KTH"),
        ("adjusted_requests", ["KTH"], "KTH"),
        ("memory", ["HPC2N"], "HPC2N"),
        ("__main__", ["replay-hpc2n"], "HPC2N"),
        ("__main__", ["memory-hpc2n"], "HPC2N"),
        ("__main__", ["adjustment-cost-auto"], "HPC2N"),
        ("__main__", ["templates-cost"], "HPC2N"),
        ("__main__", ["template-search"], "KTH"),
        ("__main__", ["forecast-in-replay-ctc"], "CTC"),
        ("__main__", ["stream"], "KTH"),
        ("__main__", ["access-stream"], "KTH"),
        ("__main__", ["store-away"], "KTH"),
        ("__main__", ["memory-stream"], "HPC2N"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_a_missing_log_is_named_and_none_is_generated_in_its_place(
    module: str,
    arguments: list[str],
    log: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(archive, "TRACES", tmp_path / "nowhere")
    archive.workload.cache_clear()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [module, *arguments])
    with pytest.raises(SystemExit) as left:
        run_module(f"tests.benchmarks.{module}", run_name="__main__")
    captured = capsys.readouterr()
    assert left.value.code == 2
    (line,) = captured.err.splitlines()
    assert f"log {log} of the archive is missing: there is no {tmp_path / 'nowhere' / archive.FILES[log]}" in line
    assert captured.out == ""
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_place_of_a_name(generated_log: str) -> None:
    name, workload = log(f"{generated_log}@32")
    assert (name, workload.processors) == ("generated@32", 32)
    with pytest.raises(TraceError, match="nope: neither a file nor one of KTH, SDSC-SP2, CTC, HPC2N"):
        log("nope@100")


def test_passes_that_weigh_probabilities_are_timed_where_no_candidate_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a start in it a pass would walk twice, and the sizes would not be comparable."""
    monkeypatch.setattr(passes, "median_microseconds", partial(median_microseconds, budget=0.01))
    monkeypatch.setattr(passes, "SIZES", [passes.Size(4, 64, 3), passes.Size(8, 9_000, 3)])
    small, coarse = passes.probabilistic_pass()["passes"]
    assert (small["running"], small["processors"], small["candidates"]) == (4, 64, 3)
    assert small["terminations"] > 0
    assert 0 < small["walk_in_single_processors"] < small["pass"]
    assert coarse["pass"] > 0


def test_large_machine_without_the_time_that_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "JOBS", 300)
    result = large.large_machine()
    assert (result["jobs"], result["processors"]) == (300, 80_000)
    assert result["elapsed_seconds"] < result["limit_seconds"]
