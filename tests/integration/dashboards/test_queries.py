"""After a replay over a whole real stack, all that dashboards and alerts ask has an answer, and the right one."""

import itertools
import json
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from shadowtime.dashboards.push import holds
from shadowtime.dashboards.queries import MOST
from shadowtime.replayer.logs.swf import read_swf
from shadowtime.services.pipeline import STAGES
from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.metric_names import METRICS, RESULTS, RUN_TIME_STATE
from shadowtime.shared.streaming.settings import Settings
from shadowtime.stack.local.plan import StackPlan
from shadowtime.stack.servers.servers import SERVERS, VictoriaMetrics
from tests.support.dashboard_queries import (
    Asked,
    answered,
    asked,
    at_first,
    boards,
    known,
    panels,
    regular,
    step_of,
    values,
    variables,
)
from tests.support.local_stack import new_plan, options, stack
from tests.support.metric_store import ask, write
from tests.support.patience import PATIENCE
from tests.support.processes import wait_until
from tests.support.real_servers import require
from tests.support.server_control import flush, reset_rollup_cache

pytestmark = pytest.mark.nightly

SEEDS = {"north": 3, "south": 6}
POLICY = "probabilistic:tau=0.3,recalibrate=stated,runtime={},adjustment=auto"
FORECASTING = "easy:forecast=yes"
TUNED = "tuned:runtime=empirical,least=50,every=3600"
RUNS = "What was run, newest first"
LONG = 1_000
"""Jobs from which on a log lasts for the week after which there are hidden states."""


class Replayed(NamedTuple):
    """A stack that has replayed two clusters, and what the replay said of them."""

    plan: StackPlan
    store: VictoriaMetrics
    documents: list[dict[str, Any]]
    policy: str
    start: int
    end: int


def replay(folder: Path, jobs: int, load: float) -> Iterator[Replayed]:
    for server in SERVERS:
        require(server)
    logs = [folder / f"{name}.swf.gz" for name in SEEDS]
    command = [sys.executable, "-m", "shadowtime", "generate", "--processors", "64", "--load", str(load)]
    making = [
        subprocess.Popen([*command, "--seed", str(seed), "--jobs", str(jobs), "-o", str(log)], cwd=ROOT)
        for log, seed in zip(logs, SEEDS.values(), strict=True)
    ]
    plan = new_plan(folder / "stack")
    up = stack("up", *options(plan))
    try:
        assert up.returncode == 0, up.stdout + up.stderr
        assert [each.wait(PATIENCE) for each in making] == [0, 0]
        store = VictoriaMetrics(folder / "asked", plan.victoria_metrics_port)
        wait_until(lambda: scraped(store), "not every process is scraped")
        told = folder / "told.json"
        policy = POLICY.format("hmm" if jobs >= LONG else "empirical")
        command = [
            sys.executable,
            "-m",
            "shadowtime",
            "replay",
            *map(str, logs),
            "--policy",
            policy,
            "--policy",
            FORECASTING,
            "--policy",
            TUNED,
        ]
        command += ["--wait-bound", "bmbp", "--transport", "kafka", "--json", str(told)]
        command += ["--set", f"kafka-bootstrap=127.0.0.1:{plan.kafka_port}"]
        subprocess.run(command, cwd=ROOT, check=True)
        wait_until(lambda: len(ended(store, jobs)) == 6, "the results of a run are not written")
        time.sleep(11)  # two scrapes
        wait_until(lambda: scraped(store), "not every process is scraped any more")
        flush(store)
        reset_rollup_cache(store)
        start = read_swf(logs[0]).unix_start_time or 0
        (last,) = ask(store, "query", query="max(tlast_over_time(shadowtime_run_info[20y]))")["result"]
        yield Replayed(plan, store, json.loads(told.read_text()), policy, start, int(float(last["value"][1])) + 1_800)
    finally:
        stack("down", "--folder", plan.folder)


def scraped(store: VictoriaMetrics) -> bool:
    """Return whether the store has lately had figures of each process twice."""
    flush(store)
    query = "count(count_over_time({__name__=~'shadowtime_worker_lag|shadowtime_metrics_lag'}[1m]) >= 2)"
    found = ask(store, "query", query=query, latency_offset="1s")["result"]
    return bool(found) and int(found[0]["value"][1]) == len(STAGES) + 1


def ended(store: VictoriaMetrics, jobs: int) -> list[Any]:
    """Return the runs of which the last sample is in the store."""
    flush(store)
    return list(ask(store, "query", query=f"last_over_time(shadowtime_jobs_total[20y]) == {jobs}")["result"])


FOLLOWED = (
    *("Followed clusters", "What following costs", "Reported by followers", "Doubted by followers"),
    *("A cluster is not followed", "A cluster contradicts itself"),
)
"""Panels and alerts of followed clusters. None is followed."""

AT_TIMES = ("end later", "wait 95 % ±", "slowdown 95 % ±")
"""Columns that only have values if the time range ends before a run, or if the log has some batches of days."""

SHADOWS = "twin"
"""The dashboard of shadows, of which there is none either."""


@pytest.fixture(
    scope="module",
    params=[pytest.param((250, 1.5), marks=pytest.mark.nightly), pytest.param((5_000, 0.7), marks=pytest.mark.archive)],
    ids=["small", "large"],
)
def replayed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replayed]:
    yield from replay(tmp_path_factory.mktemp("replayed"), *request.param)


def choices(replayed: Replayed, name: str, start: int, end: int) -> Iterator[dict[str, str]]:
    """Yield what can be chosen on a dashboard: what Grafana has at first, and each other value of a variable."""
    made = variables(boards()[name]) if name in boards() else {}
    chosen: dict[str, str] = {}
    for variable, each in made.items():
        offered = values(replayed.store, each, chosen, start, end)
        assert offered, f"{name}: nothing to choose from for {variable}"
        chosen[variable] = at_first(each, offered)
    yield chosen
    for cluster in values(replayed.store, made["cluster"], chosen, start, end) if "cluster" in made else ():
        there = chosen | {"cluster": cluster}
        for variable in made.keys() - {"cluster", "experiment"}:
            for value in values(replayed.store, made[variable], there, start, end):
                yield there | {variable: regular(value) if made[variable].get("multi") else value}


@pytest.mark.parametrize("board", [*(each for each in boards() if each != SHADOWS), "alerts"])
def test_every_query_returns_data(replayed: Replayed, board: str) -> None:
    now = int(time.time()) + 2
    real = board in ("home", "health", "alerts")
    start, end = (now - 600, now) if real else (replayed.start, replayed.end)
    queries = [query for query in asked() if query.board == board]
    assert queries
    scraped = [query for query in queries if query.panel not in FOLLOWED]
    if board == "health":  # it takes the store a while to let queries of rates see what was scraped last
        wait_until(lambda: all(answered(replayed.store, each, {}, start, now) for each in scraped), "no health")
    queries = [query for query in queries if query.legend not in AT_TIMES]
    empty, full = set[str](), set[Asked]()
    for chosen in choices(replayed, board, start, end):
        drawn = Counter[str]()
        for query in queries:
            at = (
                (replayed.start, replayed.end)
                if re.search("band|drifting", query.expr) and board == "alerts"
                else (start, end)
            )
            if found := answered(replayed.store, query, chosen, *at):
                full.add(query)
                drawn[query.panel] += len(found)
            elif not query.may_be_empty:
                empty.add(f"{query.panel}: {query.expr} with {chosen}")
        if board != "alerts":
            of_one_moment = ("table", "barchart", "heatmap")
            tables = {each["title"] for each in panels(boards()[board]) if each["type"] in of_one_moment}
            assert not {title: count for title, count in drawn.items() if count > MOST + 1 and title not in tables}
    excused = {"Change points", "Hidden state", "Capacity"} if replayed.documents[0]["jobs"] < LONG else {"Capacity"}
    excused |= {
        "Error of expected starts",
        "Expected too late or too early",
        "Starts that were expected",
        *FOLLOWED,
        "Running now",
        "Predictions that do not hold, and since when",
    }
    never = {f"{query.panel}: {query.expr}, whatever is chosen" for query in queries if query not in full}
    missing = {each for each in empty | never if each.partition(":")[0] not in excused}
    assert not missing, "\n".join(sorted(missing))


def test_numbers_are_those_of_the_replay(replayed: Replayed) -> None:
    def last(metric: str, cluster: str, policy: str = replayed.policy, **labels: str) -> float:
        labels |= {"cluster": cluster, "policy": policy}
        chosen = ",".join(f'{name}="{value}"' for name, value in labels.items())
        query = f"last_over_time(shadowtime_{metric}{{{chosen}}}[20y])"
        (row,) = ask(replayed.store, "query", query=query)["result"]
        return float(row["value"][1])

    assert len(replayed.documents) == 2
    for document in replayed.documents:
        cluster = document["cluster"]
        (policy, *_), (run_time, *_), (adjustment, *_), (forecast,) = (
            document[name] for name in ("policies", "run_time_predictions", "walltime_adjustments", "wait_forecasts")
        )
        for metric, value in {
            "wait_forecasts_total": forecast["forecasts"],
            "wait_forecast_mean_absolute_error_seconds": forecast["mean_absolute_error"],
            "wait_forecast_mean_seconds": forecast["mean_forecast"],
            "wait_forecast_mean_wait_seconds": forecast["mean_wait"],
        }.items():
            assert last(metric, cluster, FORECASTING) == pytest.approx(value, rel=1e-9), metric
        for metric, value in {
            "mean_wait_seconds": policy["mean_wait"],
            "geometric_mean_wait_seconds": policy["geometric_mean_wait"],
            "max_wait_seconds": policy["max_wait"],
            "zero_wait_share": policy["zero_wait_share"],
            "mean_bounded_slowdown": policy["mean_bounded_slowdown"],
            "mean_bounded_slowdown_unclamped": policy["mean_bounded_slowdown_unclamped"],
            "mean_response_seconds": policy["mean_response"],
            "weighted_mean_wait_seconds": policy["weighted_mean_wait"],
            "utilization": policy["utilization"],
            "killed_total": policy["killed"],
            "wasted_processor_seconds_total": policy["wasted_processor_seconds"],
            "ended_at_limit_total": policy["ended_at_limit"],
            "scheduling_points_total": policy["scheduling_points"],
            "run_time_predictions_total": run_time["predictions"],
            "run_time_mean_absolute_error_seconds": run_time["mean_absolute_error"],
            "run_time_mean_seconds": run_time["mean_run_time"],
            "run_time_log_score": run_time["log_score"],
            "run_time_crps_seconds": run_time["crps"],
            "walltime_median_accuracy": adjustment["median_accuracy"],
        }.items():
            assert last(metric, cluster) == pytest.approx(value, rel=1e-9), metric
        for tenth, share in enumerate(run_time["pit"]):
            assert last("run_time_pit_share", cluster, tenth=f"{tenth / 10:g}") == pytest.approx(share)
        assert last("walltime_accuracy", cluster, of="adjusted") == pytest.approx(adjustment["mean_accuracy"])
        assert last("walltime_accuracy", cluster, of="requested") == pytest.approx(
            adjustment["mean_accuracy_requested"]
        )
        for outcome in ("none", "over", "under", "bad"):
            share = last("walltime_adjustments_total", cluster, outcome=outcome) / document["jobs"]
            assert share == pytest.approx(adjustment[outcome])
        for measure in ("exact", "bound"):
            told = policy["calibration"][measure]
            assert last("delay_brier_score", cluster, measure=measure) == pytest.approx(told["brier_score"])
            assert last("delay_calibration_error", cluster, measure=measure) == pytest.approx(told["calibration_error"])
        portfolio = document["policies"][-1]["portfolio"]
        assert last("member_decides", cluster, TUNED, member=portfolio["decides"]) == 1
        for row in portfolio["members"]:
            for metric in ("weight", "slowdown"):
                told = last(f"member_{metric}", cluster, TUNED, member=row["member"])
                assert told == pytest.approx(row[metric], rel=1e-9)
        for row in document["wait_bounds"]:
            scope = {"policy": row["policy"], "queue": str(row["queue"]), "grouping": row["grouping"]}
            assert last("wait_bound_predictions_total", cluster, **scope) == row["predictions"]
            for metric, field in (("wait_bound_coverage", "coverage"), ("wait_bound_over_rms_seconds", "over_rms")):
                if row[field] is not None:
                    assert last(metric, cluster, **scope) == pytest.approx(row[field])


def opened(replayed: Replayed, cluster: str, policy: str) -> tuple[dict[str, str], int, int]:
    """Return what is chosen by a link of the home dashboard, and a policy: the variables and the time range."""
    now = int(time.time())
    (query,) = [each for each in asked() if (each.board, each.panel, each.legend) == ("home", RUNS, "range")]
    series = answered(replayed.store, query, {}, now - 3_600, now)
    (row,) = [each for each in series if holds(each["metric"], {"cluster": cluster, "policy": policy})]
    chosen = {name: row["metric"][name] for name in ("experiment", "cluster")}
    (panel,) = [each for each in panels(boards()["home"]) if each["title"] == RUNS]
    links = json.dumps(panel["fieldConfig"]["overrides"])
    ((begin, end),) = set(re.findall(r"from=\$\{__data\.fields\.(\w+)\}&to=\$\{__data\.fields\.(\w+)\}", links))
    assert set(re.findall(r"var-(\w+)=\$\{__data\.fields\.(\w+):percentencode", links)) == {
        (name, name) for name in chosen
    }
    times = [int(row["metric"][label]) // 1_000 for label in (begin, end)]
    return {"policy": policy, "queue": "all", "jobs": "all jobs", "window": "1d", **chosen}, times[0], times[1]


def test_panels_of_a_run_opened_in_its_time_show_what_the_replay_said(replayed: Replayed) -> None:
    for document in replayed.documents:
        chosen, start, end = opened(replayed, document["cluster"], replayed.policy)
        (policy, *_), (run_time, *_), (adjustment, *_) = (
            document[name] for name in ("policies", "run_time_predictions", "walltime_adjustments")
        )
        raw = policy["calibration"]["exact"]
        told = {
            ("scheduler", "Job waiting longest"): -1,
            ("scheduler", "Scheduler passes"): policy["scheduling_points"],
            ("scheduler", "Calibration error"): raw["calibration_error"],
            ("scheduler", "Brier score"): raw["brier_score"],
            ("runtime_distribution", "Predicted jobs"): run_time["predictions"],
            ("runtime_distribution", "Error of predictions"): run_time["mean_absolute_error"],
            ("runtime_distribution", "Mean run time"): run_time["mean_run_time"],
            ("runtime_distribution", "Distribution error"): run_time["crps"],
            ("walltime_adjustment", "Accuracy as requested"): adjustment["mean_accuracy_requested"],
            ("walltime_adjustment", "Accuracy as adjusted"): adjustment["mean_accuracy"],
            ("walltime_adjustment", "Median accuracy as adjusted"): adjustment["median_accuracy"],
        }
        machine = {
            "busy, end": 0,
            "waiting, end": 0,
            "longest, end": 0,
            "mean wait": policy["mean_wait"],
            "slowdown": policy["mean_bounded_slowdown"],
            "utilization": policy["utilization"],
        }
        coverage = {
            row["grouping"]: row["coverage"]
            for row in document["wait_bounds"]
            if (row["policy"], row["queue"]) == (policy["policy"], "all")
        }
        stats = {
            (name, each["title"])
            for name, board in boards().items()
            for each in panels(board)
            if each["type"] == "stat" and name != "home"
        }
        assert stats == {*told, ("runtime_distribution", "Error of requests")}
        tables = [query for query in asked() if query.panel in ("Each policy", "Coverage") and query.instant]
        for query in tables:
            of_board = chosen | {"policy": regular(policy["policy"])} if query.board == "scoreboard" else chosen
            series = answered(replayed.store, query, of_board, start, end)
            if query.legend == "coverage":
                found = {each["metric"]["grouping"]: float(each["value"][1]) for each in series}
                assert found == pytest.approx(coverage)
            elif query.legend in machine:
                (only,) = series
                assert float(only["value"][1]) == pytest.approx(machine[query.legend], rel=1e-9), query.legend
        for query in asked():
            if (query.board, query.panel) not in stats or not query.instant:
                continue
            series = answered(replayed.store, query, chosen, start, end)
            if (query.board, query.panel) in told:
                said = told.pop((query.board, query.panel))
                values = [float(each["value"][1]) for each in series]
                assert values == ([] if said is None else [pytest.approx(said, rel=1e-9)]), query.panel
        assert not told


def test_charts_of_a_run_opened_in_its_time_end_with_what_the_replay_said(replayed: Replayed) -> None:
    for document in replayed.documents:
        chosen, start, end = opened(replayed, document["cluster"], FORECASTING)
        (_, policy, _) = document["policies"]
        for panel, value in (
            ("Longest wait", policy["max_wait"] / 3_600),
            ("Jobs cut at their limit", policy["ended_at_limit"]),
        ):
            (query,) = [each for each in asked() if (each.board, each.panel) == ("scoreboard", panel)]
            (series,) = answered(replayed.store, query, chosen | {"policy": regular(FORECASTING)}, start, end)
            assert float(series["values"][-1][1]) == pytest.approx(value, rel=1e-9), panel


def test_the_table_of_a_portfolio_has_who_decides_and_how_all_fare(replayed: Replayed) -> None:
    for document in replayed.documents:
        chosen, start, end = opened(replayed, document["cluster"], TUNED)
        told = document["policies"][-1]["portfolio"]
        queries = [query for query in asked() if query.panel == "Who decides" and query.instant]
        found = {
            query.legend: {
                each["metric"]["member"]: float(each["value"][1])
                for each in answered(replayed.store, query, chosen, start, end)
            }
            for query in queries
        }
        assert found["decides"] == {told["decides"]: 1}
        for column in ("slowdown", "weight"):
            assert found[column] == pytest.approx({each["member"]: each[column] for each in told["members"]})


def test_marks_are_where_another_member_begins_to_decide(replayed: Replayed) -> None:
    """A chart has about 500 points. A member that decides only between two points has no mark."""
    (query,) = [each for each in asked() if each.panel == "Who decides" and not each.instant]
    for document in replayed.documents:
        chosen, start, end = opened(replayed, document["cluster"], TUNED)
        told = document["policies"][-1]["portfolio"]["changes"]
        marked = [
            (at, each["metric"]["member"])
            for each in answered(replayed.store, query, chosen, start, end)
            for at, _ in each["values"]
        ]
        assert sorted(marked) == marks(told, replayed.start, start, end)


def marks(changes: list[dict[str, Any]], begin: int, start: int, end: int) -> list[tuple[int, str]]:
    """Return the points of a chart at which another member decides than at the point before.

    Parameters
    ----------
    changes
        Time of the cluster and member, as the replay reports them.
    begin
        Unix time of second 0 of the cluster.
    start, end
        Unix time range of the chart.
    """
    every, step = Settings().sample_seconds, step_of(start, end)
    sampled = [(begin + -(-each["time"] // every) * every, each["member"]) for each in changes]

    def decides(at: int) -> str | None:
        return next((member for time, member in reversed(sampled) if time <= at), None)

    points = range(start // step * step, end + 1, step)
    found = [(at, decides(at)) for at in points if decides(at) != decides(at - step)]
    return [(at, member) for at, member in found if member is not None]


def test_what_is_emitted_is_what_is_asked_for(replayed: Replayed) -> None:
    found = set(ask(replayed.store, "label/__name__/values", start=0, end=int(time.time()) + 60))
    emitted = {name for name in found if name.startswith("shadowtime_")}
    asked_for = set(itertools.chain.from_iterable(query.metrics for query in asked())) - found.difference(emitted)
    plain = {name.removesuffix(end) for name in emitted for end in ("_bucket",)}
    too_short = {RUN_TIME_STATE.name} if replayed.documents[0]["jobs"] < LONG else set()
    live = {
        name
        for name in asked_for
        if name.startswith(("shadowtime_follow_", "shadowtime_shadow_", "shadowtime_twin_", "shadowtime_expected_"))
    }
    assert {name for name in asked_for if name.removesuffix("_bucket") not in plain} == too_short | live
    unasked = {name for name in emitted if not name.endswith(("_sum", "_count"))} - asked_for
    assert {name for name in unasked if name in {each.name for each in METRICS}} == set()
    assert all(known(name) for name in emitted), emitted
    assert {each.name for each in RESULTS} - emitted == too_short | {
        name for name in live if name.startswith("shadowtime_expected_")
    }


def test_a_shadow_of_another_cluster_is_not_shown(tmp_path: Path) -> None:
    """The name of the selected cluster was a pattern: `kth.1` matched `kth-1`."""
    require(VictoriaMetrics)
    named = {board: variables(made)["shadow"] for board, made in boards().items() if "shadow" in variables(made)}
    names = ["kth.1", "kth-1", "a+(b)", r"c\d"]
    with VictoriaMetrics(tmp_path) as server:
        now = int(time.time())
        for name in names:
            escaped = name.replace("\\", "\\\\")
            write(server, f'shadowtime_twin_evidence{{shadow="{escaped}/twin/easy"}} 1 {now * 1000}\n')
        flush(server)
        for variable in named.values():
            for name in names:
                assert len(values(server, variable, {"real": name}, now - 60, now + 1)) == 1, name
    assert named
