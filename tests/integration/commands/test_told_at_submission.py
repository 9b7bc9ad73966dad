"""What jobs are told at submission is scored beside the policies, and changes nothing of them."""

import subprocess
from pathlib import Path
from typing import Any

import orjson
import pytest

from shadowtime.replayer.comparison.plan import carry_out
from shadowtime.replayer.comparison.wait_coverage import BoundedWaits
from shadowtime.replayer.presentation.predictions_run import predictions_plan
from tests.support.forked import run_forked
from tests.support.small_logs import generated, plan_of


def replayed(*options: str) -> "subprocess.CompletedProcess[str]":
    done = run_forked("replay", "--jobs", "300", *options)
    done.check_returncode()
    return done


def test_run_times_forecasts_and_bounds_are_shown_on_request() -> None:
    shown = replayed("--policy", "fcfs", "--policy", "easy", "--predictions").stdout
    assert "bundled, run times as predicted at submission" in shown
    assert "bundled, waits as forecast at submission" in shown
    assert "bundled, bounds on the wait" in shown
    assert "95 % interval" in shown


def test_the_page_has_the_figures_of_the_terminal_and_says_under_which_policy(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    policies = ["--policy", "lwf", "--policy", "lwf:runtime=empirical"]
    shown = replayed(*policies, "--report", str(page), "--predictions").stdout
    assert "run times as predicted at submission under easy" in shown
    assert "bounds on the wait under easy: bmbp" in shown
    found = page.read_text().partition('aria-label="Run-time predictions"')[2].partition("</table>")[0]
    (row,) = [each for each in found.split("<tr>") if "empirical" in each]
    (line,) = [each for each in shown.splitlines() if each.startswith("empirical ")]
    assert f">{line.split()[2]}</data>" in row
    assert "<td>easy…</td>" in row
    assert '<th scope="row">easy…</th><td><code class=spec>easy(<wbr>forecast=yes' in page.read_text()


def test_the_predictors_of_all_policies_are_scored_in_the_terminal_as_on_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    policies = ["--policy", "easy", "--policy", "easy-sjbf:runtime=last-two", "--policy", "lwf:runtime=last-two"]
    shown = replayed(*policies, "--report", str(page), "--predictions").stdout
    table = shown.partition("run times as predicted at submission\n")[2].partition("error: ")[0]
    names = [line.split()[0] for line in table.splitlines() if line.endswith(("of 300", " -"))]
    assert sorted(names) == ["empirical", "last-two", "requests"]
    found = page.read_text().partition('aria-label="Run-time predictions"')[2].partition("</table>")[0]
    assert all(name in found for name in names)


def test_the_baseline_is_one_of_the_policies(tmp_path: Path) -> None:
    page, json = tmp_path / "page.html", tmp_path / "scores.json"
    options = ["--policy", "easy", "--policy", "lwf", "--report", str(page), "--json", str(json)]
    assert "to lwf" in replayed(*options, "--baseline", "lwf").stdout
    assert orjson.loads(json.read_bytes())["settings"]["baseline"] == "lwf"
    assert "The baseline is lwf." in page.read_text()
    assert '<th scope="row">easy against lwf</th>' in page.read_text()


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "options",
    [
        ["--no-predictions"],
        ["--predictions", "--runtime", "last-two"],
        ["--predictions", "--adjustment", "auto"],
        ["--predictions", "--wait-bound", "bmbp:publish=plain"],
        ["--predictions", "--in-pieces"],
    ],
)
def test_who_chooses_himself_sees_what_he_chose(options: list[str]) -> None:
    done = replayed(*options)
    assert "at submission" not in done.stdout
    without_effect = [] if options == ["--no-predictions"] else [options[1]]
    told = [f"predictions at submission are not scored with {option}" for option in without_effect]
    assert [line for line in done.stderr.splitlines() if "predictions" in line] == told


def test_policies_and_their_decisions_are_as_without(tmp_path: Path) -> None:
    def results(*options: str) -> tuple[bytes, dict[str, Any], bytes]:
        names = [tmp_path / name for name in ("d.jsonl", "r.json", "r.csv")]
        replayed("--decisions", str(names[0]), "--json", str(names[1]), "--results", str(names[2]), *options)
        document = orjson.loads(names[1].read_bytes())
        del document["arguments"]
        for row in document["policies"]:
            del row["elapsed_seconds"], row["cpu_seconds"]
        return names[0].read_bytes(), document, names[2].read_bytes().splitlines()[0]

    with_them, without = results("--predictions"), results()
    told = with_them[1].pop("told_at_submission")
    assert without[1].pop("told_at_submission") is None
    assert with_them == without
    assert told["run_time_predictions"][0]["jobs"] == 300
    assert {row["grouping"] for row in told["wait_bounds"]} >= {"plain", "conformal"}
    assert told["wait_forecasts"][0]["forecasts"] == 300


def test_the_schedule_is_that_of_easy() -> None:
    easy = plan_of(generated(300), "easy")
    assert carry_out(predictions_plan(easy)).scores.policy == carry_out(easy).scores.policy


def test_intervals_are_about_the_coverage_that_is_scored() -> None:
    result = carry_out(predictions_plan(plan_of(generated(300), "easy")))
    scored = {each.grouping: each.coverage for each in result.scores.wait_bounds if each.queue is None}
    assert {grouping: each.mean for grouping, each in result.coverage.items()} == pytest.approx(
        {grouping: coverage for grouping, coverage in scored.items() if coverage is not None}
    )
    for each in result.coverage.values():
        assert each.low is not None
        assert each.high is not None
        assert each.low <= each.mean <= each.high


def test_waits_that_nobody_bounded_have_no_coverage() -> None:
    assert BoundedWaits().coverage(7) == {}
    assert carry_out(plan_of(generated(20), "easy")).coverage == {}
