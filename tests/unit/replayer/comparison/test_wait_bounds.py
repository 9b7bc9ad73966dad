"""Bounds on the wait, from the command line to the rows and the table."""

import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import shadowtime.replayer.commands.replay as replayer_main
from shadowtime.replayer.arguments import parse_wait_bound
from shadowtime.replayer.comparison.document import as_json
from shadowtime.replayer.comparison.plan import RunPlan, RunResult, carry_out, carry_out_paced
from shadowtime.replayer.comparison.wait_coverage import BoundedWaits
from shadowtime.replayer.io.timing import Pace, Stopwatch
from shadowtime.replayer.presentation.policies import wait_bound_table
from shadowtime.services.catalogue import configure
from shadowtime.services.wait_bound.bounder import Unbounded
from shadowtime.services.wait_bound.handler import BOUNDERS
from shadowtime.shared.cli.command_line import run_command
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.messages.envelope import Envelope, JobStarted, JobSubmitted
from shadowtime.shared.messages.predictions import WaitBound
from shadowtime.shared.spec import SpecSettings
from tests.support.small_logs import job, workload_of, write_log

# The design fixes these: tools outside the project read them.
ROW = [
    "queue",
    "grouping",
    "quantile",
    "confidence",
    "predictions",
    "coverage",
    "coverage_low",
    "coverage_high",
    "over_rms",
    "ratio_to_plain",
    "seconds",
    "without",
    "windows",
    "windows_within",
    "policy",
]


class LongestSoFar(Unbounded):
    """The longest wait so far; twice that under the name `static`."""

    name = "longest"

    def __init__(self, settings: SpecSettings) -> None:
        self.longest: int | None = None

    def predict_one(self, x: JobSubmitted) -> tuple[WaitBound, ...]:  # type: ignore[override]
        return tuple(
            WaitBound(
                grouping=grouping,
                queue=queue,
                quantile=0.5,
                confidence=0.5,
                bound=None if self.longest is None else factor * self.longest,
            )
            for queue in sorted({None, x.queue_number}, key=str, reverse=True)
            for grouping, factor in (("plain", 1), ("static", 2), ("nodes", 0))
        )

    def learn_one(self, x: object, y: object) -> None:
        assert isinstance(y, int)
        self.longest = max(self.longest or 0, y)

    def snapshot(self) -> Any:
        return self.longest

    def restore(self, state: Any) -> None:
        self.longest = state


@pytest.fixture(autouse=True)
def longest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `longest` be a wait bound, and what `bmbp` stands for."""
    monkeypatch.setitem(BOUNDERS.classes, "longest", LongestSoFar)
    monkeypatch.setitem(BOUNDERS.classes, "bmbp", LongestSoFar)


JOBS = (
    job(1, 0, wait_time=10, queue_number=2),
    job(2, 100, wait_time=4, queue_number=1),
    job(3, 200, wait_time=30, queue_number=2),
    job(4, 300, wait_time=20),
)
"""The longest wait so far, at their submissions: none, 10, 10 and 30 s."""


def recorded(runtime: str = "requested", wait_bound: str = "longest") -> RunPlan:
    return RunPlan("recorded", "small", workload_of(*JOBS), configure("easy", runtime), "recorded", wait_bound)


def briefly(rows: Sequence[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [tuple(row[key] for key in ("queue", "grouping", "predictions", "without", "coverage")) for row in rows]


def test_rows_by_hand() -> None:
    rows = as_json([carry_out(recorded())])["wait_bounds"]
    assert [list(row) for row in rows] == [ROW] * 9
    assert briefly(rows) == [
        ("all", "plain", 3, 1, pytest.approx(2 / 3)),
        ("all", "static", 3, 1, pytest.approx(2 / 3)),
        ("all", "nodes", 3, 1, 0),
        (1, "plain", 1, 0, 1),
        (1, "static", 1, 0, 1),
        (1, "nodes", 1, 0, 0),
        (2, "plain", 1, 1, 0),
        (2, "static", 1, 1, 0),
        (2, "nodes", 1, 1, 0),
    ]
    plain, static, nodes = rows[:3]
    assert plain["over_rms"] == pytest.approx(((6**2 + 10**2) / 2) ** 0.5)
    assert static["over_rms"] == pytest.approx(((16**2 + 40**2) / 2) ** 0.5)
    assert plain["ratio_to_plain"] == 1
    assert static["ratio_to_plain"] == pytest.approx(plain["over_rms"] / static["over_rms"])
    assert (nodes["over_rms"], nodes["ratio_to_plain"]) == (None, None)
    assert rows[4]["ratio_to_plain"] == pytest.approx(6 / 16)
    assert rows[7]["ratio_to_plain"] is None, "there is nothing of plain to divide"
    assert (plain["quantile"], plain["confidence"], plain["windows"], plain["windows_within"]) == (0.5, 0.5, 0, 0)
    assert {row["policy"] for row in rows} == {"recorded"}


def test_of_several_recorded_passes_the_first_gives_the_rows() -> None:
    results = [carry_out(recorded(runtime)) for runtime in ("requested", "last-two")]
    document = as_json(results)
    assert len(document["run_time_predictions"]) == 2
    assert document["wait_bounds"] == as_json(results[:1])["wait_bounds"]


def test_of_several_policies_each_has_its_rows() -> None:
    plans = [
        RunPlan(each, "small", workload_of(*JOBS), configure(each), wait_bound="longest") for each in ("fcfs", "easy")
    ]
    rows = as_json([carry_out(plan) for plan in plans])["wait_bounds"]
    assert [row["policy"] for row in rows] == ["fcfs"] * 9 + ["easy"] * 9


def test_seconds_are_measured_where_there_are_bounds() -> None:
    [paced] = carry_out_paced([recorded()], Pace(1e9), [()])
    for result in (carry_out(recorded()), paced):
        assert result.wait_bound_seconds is not None
        assert 0 < result.wait_bound_seconds < result.elapsed_seconds + 1
        assert as_json([result])["wait_bounds"][0]["seconds"] == round(result.wait_bound_seconds, 3)
    assert carry_out(recorded(wait_bound="none")).wait_bound_seconds is None
    streamed = carry_out(recorded())._replace(wait_bound_seconds=None)
    assert as_json([streamed])["wait_bounds"][0]["seconds"] is None


def test_a_measured_run_resumes_unmeasured() -> None:
    """What is measured is the same run, with the same snapshot."""
    plan, stopwatch = recorded(), Stopwatch()
    whole = plan.replay().run_to_end()
    for cut in range(14):
        measured, again = plan.replay(stopwatch=stopwatch), plan.replay()
        for _ in range(cut):
            measured.step()
        again.restore(measured.snapshot())
        assert again.snapshot() == measured.snapshot()
        measured.restore(again.snapshot())
        assert again.run_to_end() == measured.run_to_end() == whole
    assert stopwatch.seconds > 0


def rendered(results: list[RunResult]) -> str:
    console = Console(width=120, file=io.StringIO())
    console.print(wait_bound_table(results))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_table_has_a_row_per_queue_and_grouping() -> None:
    text = rendered([carry_out(recorded()._replace(cluster="kth[old]"))])
    lines = [line.replace("│", " ").split() for line in text.splitlines()]
    assert "kth[old], bounds on the wait: longest" in text
    assert ["queue", "grouping", "%", "s", "jobs"] in lines
    assert ["all", "plain", "66.7", "8", "1.000", "3", "of", "4"] in lines
    assert ["2", "static", "0.0", "-", "-", "1", "of", "2"] in lines


def test_recorded_waits_are_bounded_by_default() -> None:
    assert parse_wait_bound(None, "recorded") == "bmbp"
    assert parse_wait_bound(None, "closed") == "none"
    assert parse_wait_bound(["none"], "recorded") == "none"
    assert parse_wait_bound(["longest"], "closed") == "longest"
    with pytest.raises(SettingsError, match=r"--wait-bound: expected one value, found 2 \(bmbp, none\)"):
        parse_wait_bound(["bmbp", "none"], "recorded")


def replay(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    monkeypatch.setattr(sys, "argv", ["replayer", *map(str, arguments)])
    with pytest.raises(SystemExit) as left:
        run_command(replayer_main)
    assert not left.value.code
    return capsys.readouterr().out


def test_command_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log = write_log(tmp_path, *JOBS)
    document = json.loads(replay(monkeypatch, capsys, log, "--mode", "recorded", "--json", "-"))
    assert document["settings"]["wait_bound"] == "bmbp"
    assert [row["queue"] for row in document["wait_bounds"]] == ["all"] * 3 + [1] * 3 + [2] * 3
    assert all(row["seconds"] >= 0 for row in document["wait_bounds"])
    assert "bounds on the wait: bmbp" in replay(monkeypatch, capsys, log, "--mode", "recorded")
    assert "bounds on" not in replay(monkeypatch, capsys, log, "--mode", "recorded", "--wait-bound", "none")
    assert json.loads(replay(monkeypatch, capsys, log, "--json", "-"))["wait_bounds"] == []
    closed = json.loads(replay(monkeypatch, capsys, log, "--wait-bound", "longest", "--json", "-"))
    assert briefly(closed["wait_bounds"])[0] == ("all", "plain", 3, 1, 1)
    assert "bounds on the wait under easy: longest" in replay(monkeypatch, capsys, log, "--wait-bound", "longest")
    several = ["--policy", "easy:queue=srf,threshold=900", "--policy", "easy:queue=srf,threshold=90"]
    printed = replay(monkeypatch, capsys, log, *several, "--wait-bound", "longest")
    for name in ("easy 900", "easy 90"):
        assert f"bounds on the wait under {name}: longest" in printed
    assert "bounds on" not in replay(monkeypatch, capsys, log)


@pytest.mark.parametrize(
    ("missed", "intervals"),
    [((), 0), (tuple(number for number in range(1, 201) if number % 40 < number // 20), 1), (tuple(range(1, 201)), 0)],
)
def test_a_coverage_of_all_or_none_has_no_interval(missed: tuple[int, ...], intervals: int) -> None:
    """If all of 200 bounds hold, others may fail: an interval from 100 to 100 % would be false."""
    waits = BoundedWaits()
    bound = WaitBound(grouping="plain", quantile=0.95, confidence=0.95, bound=60)
    for number in range(1, 201):
        at = 1_000 * number
        submitted = JobSubmitted(time=at, job_number=number, requested_processors=1)
        started = JobStarted(time=at + (61 if number in missed else 60), job_number=number, processors=1)
        waits(Envelope(run="r", sequence=2 * number, event=submitted, wait_bounds=(bound,)))
        waits(Envelope(run="r", sequence=2 * number + 1, event=started))
    share = waits.coverage(7)["plain"]
    assert share.mean == 1 - len(missed) / 200
    assert (share.low is not None) == (share.high is not None) == bool(intervals)
