"""Results side by side: as data with fixed keys, and as a table."""

import io
import itertools
import math
import re
from collections.abc import Callable, Sequence
from functools import partial

import orjson
import pytest
from rich.console import Console

from shadowtime.replayer.comparison.document import as_json, is_worse
from shadowtime.replayer.comparison.plan import RunPlan, RunResult, carry_out
from shadowtime.replayer.logs.swf import read_swf
from shadowtime.replayer.logs.trace import BUNDLED
from shadowtime.replayer.logs.workload import prepare
from shadowtime.replayer.presentation.policies import comparison_table, forecast_table
from shadowtime.replayer.presentation.predictions import prediction_table
from shadowtime.services.catalogue import configure
from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.cli.fitted_table import FittedTable
from shadowtime.shared.formatting import duration, work
from shadowtime.shared.messages.envelope import ClusterOpened, Envelope, run_name
from shadowtime.shared.messages.scores import CalibrationScores, WaitForecastScores
from tests.support.small_logs import generated, job, plan_of, workload_of

# The design fixes these: tools outside the project read them.
DOCUMENT = {
    "trace",
    "cluster",
    "processors",
    "jobs",
    "skipped",
    "policies",
    "run_time_predictions",
    "walltime_adjustments",
    "wait_bounds",
}
POLICY = [
    "policy",
    "runtime",
    "adjustment",
    "mean_wait",
    "geometric_mean_wait",
    "max_wait",
    "zero_wait_share",
    "mean_bounded_slowdown",
    "mean_bounded_slowdown_unclamped",
    "mean_slowdown",
    "mean_response",
    "weighted_mean_wait",
    "wait_weighted_mean_wait",
    "utilization",
    "makespan",
    "ended_at_limit",
    "killed",
    "wasted_processor_seconds",
    "scheduling_points",
    "elapsed_seconds",
    "cpu_seconds",
    "calibration",
    "configuration",
]
RUN_TIME = [
    "policy",
    "predictor",
    "jobs",
    "predictions",
    "mean_absolute_error",
    "median_absolute_error",
    "under_predicted",
    "mean_run_time",
    "log_score",
    "crps",
    "pit",
    "prediction_workload",
]
ADJUSTMENT = [
    "scheme",
    "mean_accuracy",
    "median_accuracy",
    "mean_accuracy_requested",
    "none",
    "over",
    "under",
    "bad",
]


def results_of(*policies: str) -> list[RunResult]:
    workload = generated()
    return [carry_out(plan_of(workload, policy)) for policy in policies]


def test_keys_are_those_of_the_design() -> None:
    document = as_json(results_of("fcfs", "cautious"))
    assert set(document) == DOCUMENT | {
        "aligned",
        "lacks",
        "overlaps",
        "settings",
        "wait_forecasts",
        "requests_as_run_times",
        "told_at_submission",
    }
    assert [list(row) for row in document["policies"]] == [POLICY, POLICY]
    assert [list(row) for row in document["run_time_predictions"]] == [RUN_TIME, RUN_TIME]
    assert [list(row) for row in document["walltime_adjustments"]] == [ADJUSTMENT, ADJUSTMENT]
    assert document["wait_bounds"] == document["wait_forecasts"] == []
    orjson.dumps(document)


def test_rows_keep_the_order_of_the_command_line_and_repeat_the_spec() -> None:
    specs = ["easy-sjbf:runtime=last-two", "fcfs", "best", "easy"]
    rows = as_json(results_of(*specs))["policies"]
    assert [row["policy"] for row in rows] == specs
    assert [row["runtime"] for row in rows] == [
        "last-two",
        "requested",
        configure("best").runtime,
        "requested",
    ]


def test_rows_spell_out_their_configuration() -> None:
    for row in as_json(results_of("best", "easy", "conservative:queue=R/L"))["policies"]:
        assert configure(row["configuration"]) == configure(row["policy"])
        assert "runtime=" in row["configuration"]


def test_policies_that_weigh_probabilities_have_their_calibration_in_the_row() -> None:
    """Whoever compares policies wants to know by the same file whether the probabilities behind them were right."""
    rows = as_json(results_of("easy", "probabilistic:runtime=empirical"))["policies"]
    assert rows[0]["calibration"] is None
    calibration = orjson.loads(orjson.dumps(rows[1]["calibration"]))
    assert set(calibration) == set(CalibrationScores.model_fields)
    exact = calibration["exact"]
    assert exact["candidates"] == sum(each["candidates"] for each in exact["bins"]) > 0
    assert exact["candidates"] == sum(calibration[f"exact_{part}"]["candidates"] for part in ("started", "not_started"))
    assert 0 <= exact["calibration_error"] <= 1


def test_forecast_waits_have_rows_of_their_own() -> None:
    results = results_of("easy", "fcfs:forecast=yes,runtime=last-two")
    (row,) = as_json(results)["wait_forecasts"]
    assert list(row) == ["policy", "runtime", *WaitForecastScores.model_fields, "configuration"]
    assert (row["policy"], row["forecasts"]) == ("fcfs:forecast=yes,runtime=last-two", 60)
    assert row["error_share"] == pytest.approx(row["mean_absolute_error"] / row["mean_wait"])
    text = rendered(results, 80, forecast_table)
    assert "60 of 60" in text
    assert "forecast: their mean" in text
    assert "easy" not in text


def test_what_was_run_ahead_on_a_recorded_log_has_its_name() -> None:
    plan = plan_of(prepare(read_swf(BUNDLED), limit=60), "easy:forecast=yes")._replace(
        label="recorded", mode="recorded"
    )
    text = rendered([carry_out(plan)], 120, forecast_table)
    assert "easy, by requested" in text


def test_the_policies_can_be_read_on_80_columns() -> None:
    results = results_of("easy-sjbf:forecast=yes", "fcfs:forecast=yes")
    for table in (comparison_table, forecast_table):
        text = rendered(results, 80, table)
        assert "easy-sjbf" in text
        assert "fcfs" in text


def test_scores_by_hand() -> None:
    """Job 2 waits 60 s behind job 1; job 3, of 5 s, starts at once."""
    workload = workload_of(
        job(1, 0, processors=3, run_time=60),
        job(2, 0, processors=3, run_time=40),
        job(3, 10, processors=1, run_time=5),
        processors=4,
    )
    document = as_json([carry_out(plan_of(workload))])
    row = document["policies"][0]
    assert (document["trace"], document["cluster"], document["processors"], document["jobs"]) == (
        "small",
        "small",
        4,
        3,
    )
    assert row["mean_wait"] == 20
    assert row["max_wait"] == 60
    assert row["zero_wait_share"] == pytest.approx(2 / 3)
    assert row["geometric_mean_wait"] == pytest.approx((10 * 60 * 10) ** (1 / 3))
    assert row["mean_bounded_slowdown"] == pytest.approx((1 + 100 / 40 + 1) / 3)
    assert row["mean_bounded_slowdown_unclamped"] == pytest.approx((1 + 100 / 40 + 0.5) / 3)
    assert row["mean_slowdown"] == pytest.approx((1 + 100 / 40 + 1) / 3)
    assert row["wait_weighted_mean_wait"] == pytest.approx(60)
    assert row["mean_response"] == pytest.approx((60 + 100 + 5) / 3)
    assert row["weighted_mean_wait"] == pytest.approx(60)  # the others have waited for nothing
    assert row["makespan"] == 100
    assert row["utilization"] == pytest.approx((3 * 60 + 3 * 40 + 5) / 400)
    assert (row["killed"], row["wasted_processor_seconds"], row["scheduling_points"]) == (0, 0, 5)
    assert document["run_time_predictions"][0]["mean_absolute_error"] == pytest.approx((40 + 60 + 95) / 3)
    assert document["run_time_predictions"][0]["mean_run_time"] == pytest.approx(35)
    assert document["walltime_adjustments"][0]["mean_accuracy"] == pytest.approx((0.6 + 0.4 + 0.05) / 3)


def test_recorded_mode_gives_one_policy_row_and_scores_every_predictor() -> None:
    workload = workload_of(*(job(n, 10 * n, wait_time=5) for n in range(1, 9)))
    plans = [
        RunPlan("recorded", "small", workload, configure("easy", runtime), "recorded")
        for runtime in ("requested", "last-two")
    ]
    document = as_json([carry_out(plan) for plan in plans])
    assert [row["policy"] for row in document["policies"]] == ["recorded"]
    assert document["policies"][0]["mean_wait"] == 5
    assert [row["predictor"] for row in document["run_time_predictions"]] == ["requested", "last-two"]


def test_settings_of_a_run_are_in_its_opening() -> None:
    opened: list[ClusterOpened] = []

    def note(envelope: Envelope) -> None:
        if isinstance(envelope.event, ClusterOpened):
            opened.append(envelope.event)

    carry_out(plan_of(generated(), "best", seed=11), [note])
    [event] = opened
    assert (event.policy, event.runtime, event.seed) == (*configure("best")[:2], 11)
    assert (event.adjustment, event.wait_bound, event.mode, event.processors) == ("none", "none", "closed", 16)


def test_cpu_seconds_are_those_of_one_replay() -> None:
    first, second = results_of("easy", "easy")
    assert 0 < first.cpu_seconds < 5
    assert math.isclose(first.scores.policy.mean_wait or 0, second.scores.policy.mean_wait or 0)


def rendered(
    results: list[RunResult], width: int = 120, table: Callable[[Sequence[RunResult]], FittedTable] = comparison_table
) -> str:
    console = Console(width=width, file=io.StringIO())
    console.print(table(results))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_table_has_a_row_per_policy() -> None:
    results = results_of("fcfs", "easy")
    text = rendered(results)
    assert "generated: 60 jobs on 16 processors, by mean bounded slowdown" in text
    fcfs, easy = (result.scores.policy.mean_bounded_slowdown for result in results)
    assert fcfs is not None
    assert easy is not None
    assert easy < fcfs
    assert text.index("easy") < text.index("fcfs")
    for heading in ("mean wait", "geometric", "longest", "slowdown", "at once", "cpu"):
        assert heading in text
    assert "geometric: each counted as at least 10 s" in text


def test_the_price_of_trials_is_told_where_there_is_one() -> None:
    trials = "conservative:speculate=0.2,test_runs=yes"
    results = results_of("easy", trials)
    scores = results[1].scores.policy
    assert scores.killed > 0
    (told,) = [line.strip() for line in rendered(results, 200).splitlines() if "in vain" in line]
    assert told == f"conservative…: {scores.killed:,} runs in vain, {work(scores.wasted_processor_seconds)} wasted"
    assert "in vain" not in rendered(results[:1])


def test_a_set_of_templates_does_not_fill_the_screen() -> None:
    result = carry_out(
        plan_of(generated(), f"easy:runtime=templates(set={';'.join(['mean(key=user,history=4)'] * 10)})")
    )
    assert len(rendered([result], 80, prediction_table).splitlines()) < 30
    assert len(rendered([result], 80).splitlines()) < 30
    assert result.plan.configuration.runtime.endswith("beyond=0.5)")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_tables_fit_and_keep_the_names(width: int) -> None:
    """What there is no room for is named beneath."""
    results = results_of("best", "easy:adjustment=percentile(percentile=85)", "easy:adjustment=auto", "fcfs")
    for table in (comparison_table, prediction_table):
        text = rendered(results, width, table)
        assert max(map(len, text.splitlines())) <= width
    assert ("columns left out at this width:" in rendered(results, width)) == (width == 60)
    rows = rendered(results, width).partition("─\n")[2].splitlines()
    names = [" ".join(itertools.takewhile(lambda word: not re.match(r"[*0-9]", word), row.split())) for row in rows[:4]]
    assert sorted(names) == ["best", "easy auto", "easy…", "fcfs"]


def test_only_policies_that_plan_are_said_to_plan() -> None:
    text = " ".join(rendered(results_of("fcfs", "easy:plan=requested,runtime=last-two"), 100).split())
    assert " easy… plans with requests replayed" in text
    assert "predictions" not in text
    assert "plan" not in rendered(results_of("fcfs"), 100)


def test_the_legend_says_what_names_stand_for() -> None:
    """Typed between quotes it is the same policy. Keys at their defaults are left out: those of `tuned` are long."""
    results = results_of("cautious", "easy", "easy:adjustment=percentile(percentile=90)")
    legend = " ".join(rendered(results, 80).partition("best of its column")[2].split())
    assert "cautious probabilistic(candidates=spf" in legend
    assert "budget=1.0" not in legend
    assert "easy plans with requests; easy… plans with requests, adjusted (percentile)" in legend
    spec = legend.rpartition("easy… ")[2].partition(" cautious ")[0]
    assert spec.startswith("easy(adjustment=percentile(percentile=90, threshold=0.5, ")
    assert configure(spec) == results[2].plan.configuration
    assert "easy " not in legend.rpartition("easy… ")[2], "what is all at its defaults says so by its name"


def test_the_best_of_each_column_is_marked() -> None:
    results = results_of("fcfs", "easy")
    plain = rendered(results)
    slowdown = min(result.scores.policy.mean_bounded_slowdown or 0 for result in results)
    assert f"*{slowdown:,.2f}" in plain
    assert "*: best of its column" in " ".join(plain.split())
    console = Console(width=120, file=io.StringIO(), force_terminal=True, color_system="standard")
    console.print(comparison_table(results))
    coloured = console.file.getvalue()  # type: ignore[attr-defined]
    assert re.search(rf"\x1b\[1;32m *{re.escape(f'{slowdown:,.2f}')}", coloured)
    assert "*" not in coloured
    assert "*" not in rendered(results[:1])


def test_slowdowns_are_compared_with_easy_unless_another_is_wanted() -> None:
    results = results_of("fcfs", "easy", "lwf")
    slowdowns = {each.plan.label: each.scores.policy.mean_bounded_slowdown or 0 for each in results}
    assert as_json(results)["settings"]["baseline"] == "easy"
    assert as_json(results[::2])["settings"]["baseline"] == "fcfs"
    shown = rendered(results, 120)
    assert "to easy: slowdown as a share of that of the baseline" in " ".join(shown.split())
    (fcfs,) = [line for line in shown.splitlines() if line.startswith("fcfs ")]
    assert f" {slowdowns['fcfs'] / slowdowns['easy']:.1%}".rstrip("%") in fcfs.replace(",", "")
    assert "to lwf" in rendered(results, 120, partial(comparison_table, baseline="lwf"))
    assert "to easy" not in rendered(results[1:2], 120)


def test_figures_that_differ_look_different() -> None:
    (first,) = results_of("easy")
    waits = [5760.0, 5725.0, 5724.0]
    results = [
        first._replace(
            scores=first.scores.model_copy(
                update={"policy": first.scores.policy.model_copy(update={"mean_wait": wait})}
            )
        )
        for wait in waits
    ]
    assert all(each in rendered(results) for each in ("1.6000", "1.5903", "1.5900"))
    exact = Console(width=120, file=io.StringIO())
    exact.print(comparison_table(results, exact=True))
    assert all(each in exact.file.getvalue() for each in ("5,760.0", "5,725.0", "5,724.0"))  # type: ignore[attr-defined]


def test_predictors_are_compared_with_requests() -> None:
    workload = prepare(read_swf(BUNDLED), limit=300)
    every = [
        carry_out(RunPlan("recorded", "small", workload, configure("easy", runtime), "recorded"))
        for runtime in ("requested", "last-two", "empirical:window=30")
    ]
    baseline = as_json(every)["requests_as_run_times"]
    assert baseline["mean_absolute_error"] == pytest.approx(every[0].scores.run_time.mean_absolute_error)
    assert baseline["mean_run_time"] == pytest.approx(every[0].scores.run_time.mean_run_time)
    text = rendered(every[1:], 80, prediction_table)
    for told in ("log score", "CRPS", "requests ", "empirical(window=30)", "requested times as"):
        assert told in text
    assert "requested times as" not in rendered(every, 80, prediction_table), "the requests have a row"
    assert "CRPS" not in rendered(every[:1], 80, prediction_table), "nothing was predicted"
    closed = carry_out(plan_of(generated()))
    assert as_json([closed])["requests_as_run_times"]["mean_absolute_error"] == pytest.approx(
        closed.scores.run_time.mean_absolute_error
    )


def test_requests_of_no_jobs_have_no_error() -> None:
    """Without limits, users asked for nothing: no predictor can be worse than that."""
    workload = workload_of(
        *(job(number, submit_time=100 * number, requested_time=MAX_DURATION, wait_time=0) for number in range(1, 9))
    )
    results = [carry_out(RunPlan("recorded", "small", workload, configure("easy", "last-two"), "recorded"))]
    assert as_json(results)["requests_as_run_times"] == {
        "jobs": 0,
        "mean_absolute_error": None,
        "mean_run_time": None,
    }
    text = rendered(results, 80, prediction_table)
    assert "worse than the request" not in text
    assert "0 of" in text


@pytest.mark.parametrize(("error", "worse"), [(99.0, False), (100.4, False), (101.5, True), (None, False)])
def test_a_predictor_that_is_as_far_off_as_the_requests_is_not_worse(error: float | None, worse: bool) -> None:
    scores = {"mean_absolute_error": error, "jobs": 9}
    assert is_worse(scores, {"mean_absolute_error": 100.0, "jobs": 9}) is worse


def test_table_shows_the_name_of_the_log_as_it_is() -> None:
    result = carry_out(plan_of(workload_of(job(1)))._replace(cluster="kth[old]"))
    assert "kth[old]: 1 job on" in rendered([result])


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "-"), (0, "0 s"), (59.4, "59 s"), (60, "1.0 min"), (3600, "1.0 h"), (1_163_311, "323.1 h")],
)
def test_durations_are_for_people(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


def test_a_policy_may_have_a_long_name() -> None:
    """As one with a set of templates; two that differ at their end alone remain two."""
    long = [f"easy:runtime=templates(set={';'.join([f'mean(key=user,history={n})'] * 10)})" for n in (4, 8)]
    names = {run_name("bundled", each) for each in long}
    assert len(names) == 2
    assert {len(name) for name in names} == {200}
    jobs = workload_of(job(1))
    assert carry_out(RunPlan(long[0], "made", jobs, configure(long[0]))).scores.policy.jobs == 1
