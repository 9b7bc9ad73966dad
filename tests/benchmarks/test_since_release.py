"""Figures beside those of the last release: what is worse by a tenth fails, and what is kept can be compared with."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tests.benchmarks.since_release as since
from shadowtime._version import __version__
from shadowtime.shared.cli.command_line import application, run_app
from shadowtime.shared.errors import TraceError
from tests.benchmarks.since_release import Figure, last_release, of_stream


@pytest.fixture(name="history", autouse=True)
def _history(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(since, "HISTORY", tmp_path)
    return tmp_path


def told(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["since_release", *arguments])
    with pytest.raises(SystemExit) as left:
        run_app(application(since.main))
    return int(left.value.code or 0)


def made(*figures: Figure) -> object:
    def of(here: Path, there: Path, turns: int) -> Iterator[Figure]:
        yield from figures

    return of


@pytest.mark.nightly
def test_a_command_runs_in_both_checkouts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], history: Path
) -> None:
    monkeypatch.setattr(since, "COMMANDS", {"help": ("-m", "shadowtime", "ask", "--help")})
    monkeypatch.setattr(since, "WORSE", 10.0)  # a moment, of which a ratio says nothing
    assert told(monkeypatch, "--against", "HEAD", "--no-stream", "--turns", "1", "--write") == 0
    (line,) = map(json.loads, capsys.readouterr().out.splitlines())
    kept = json.loads((history / f"{__version__}.json").read_text())
    assert kept["figures"] == {"help": {"ratio": line["ratio"], "loops": line["loops"]}}
    assert kept["commit"] == kept["against"]
    assert line["loops"] > 0
    assert last_release() == kept["commit"]


@pytest.mark.nightly
def test_what_is_worse_by_a_tenth_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], history: Path
) -> None:
    better, worse = Figure("easy", [2.0, 1.0], [1.0, 3.0]), Figure("best", [1.12, 9.0], [1.0, 9.0])
    monkeypatch.setattr(since, "commands", made(better))
    assert told(monkeypatch, "--against", "HEAD", "--no-stream", "--turns", "1") == 0
    monkeypatch.setattr(since, "streamed", made(worse))
    assert told(monkeypatch, "--against", "HEAD", "--turns", "1") == 1
    assert "worse than" in (error := capsys.readouterr().err)
    assert error.endswith(" by a tenth: best 1.12\n")
    assert not list(history.iterdir())


def test_figures_of_the_stream() -> None:
    printed = [
        {"part": "closed-replay", "median_ms": 11.0, "p99_ms": 21.5, "jobs": 1000},
        {"part": "recorded-replay", "jobs": 4000, "events_per_second": 2000},
        {"part": "side-by-side", "runs": 10, "jobs": 100, "events_per_second": 500},
        {"part": "side-by-side", "runs": 100, "jobs": 20, "events_per_second": 400},
        {"part": "stage", "stage": "scheduler", "events_per_second": 9000},
    ]
    assert of_stream("\n".join(map(json.dumps, printed))) == {
        "closed-replay": 11.0,
        "closed-replay p99": 21.5,
        "recorded-replay": 1 / 2000,
        "side-by-side 100": 1 / 400,
    }


def test_a_command_that_fails_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"-c raise SystemExit\('no'\) in .*: no"):
        since.run(("-c", "raise SystemExit('no')"), tmp_path)


def test_without_a_release_a_commit_is_asked_for() -> None:
    if since.git("tag", "--list", "v*"):
        pytest.skip("there is a release")
    with pytest.raises(TraceError, match="there is no release yet: name a commit with --against"):
        last_release()
