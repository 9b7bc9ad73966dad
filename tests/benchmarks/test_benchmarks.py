"""The benchmarks can be named, and need no archive."""

import json
from functools import partial
from pathlib import Path

import pytest

import tests.benchmarks.large_machine as large
import tests.benchmarks.logs as logs
import tests.benchmarks.probabilistic_pass as passes
from tests.benchmarks.__main__ import BENCHMARKS, main
from tests.benchmarks.scheduling_pass import median_microseconds


def test_unknown_name_lists_the_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nope"]) == 2
    message = capsys.readouterr().err
    assert message.startswith("unknown benchmark 'nope'; known: ")
    assert all(name in message for name in BENCHMARKS)


def test_each_prints_one_json_line_without_the_archive(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "TRACES", Path("nowhere"))
    monkeypatch.setitem(logs.SIZES, "KTH", logs.Size(200, 16))
    assert main(["replay-kth"]) == 0
    [line] = capsys.readouterr().out.splitlines()
    result = json.loads(line)
    assert (result["benchmark"], result["log"], result["jobs"]) == ("replay-kth", "generated", 200)
    assert 0 < result["share_outside_policy"] < 1
    assert result["passes"] > 200


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
