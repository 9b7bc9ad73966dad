"""The benchmarks can be named, and need no archive."""

import json
from pathlib import Path

import pytest

import tests.benchmarks.logs as logs
from tests.benchmarks.__main__ import BENCHMARKS, main


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
