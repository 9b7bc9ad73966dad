"""Waits forecast by running the scheduler ahead by known run times (Smith 1999, Table 4), and what a forecast costs.

`python -m tests.benchmarks.wait_forecasts waits|schedules [LOG]…` prints one JSON line per log, policy and predictor.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from shadowtime.replayer.campaign.file import read_campaign
from shadowtime.replayer.campaign.logs import find_logs, workload_of
from shadowtime.replayer.comparison.plan import RunPlan
from shadowtime.replayer.simulation.embedded import EmbeddedReplay
from shadowtime.services.catalogue import configure
from shadowtime.services.pipeline import STAGES
from shadowtime.services.scheduler.handler import Scheduler
from shadowtime.services.scheduler.registry import POLICIES
from shadowtime.services.scheduler.tables.histograms import UNKNOWN
from shadowtime.services.scheduler.tables.job_table import Queue, Running, planned_times
from shadowtime.shared.cli.command_line import application, run_app
from shadowtime.shared.messages.envelope import ClusterOpened
from shadowtime.shared.messages.predictions import WaitForecast
from shadowtime.shared.spec import parse
from shadowtime.shared.stages.stage import Stage
from tests.benchmarks.logs import HELP, METAVAR, Log, log
from tests.benchmarks.scheduling_pass import FREE, NOW, median_microseconds, queue_of, running_of
from tests.gates.archive import TRACES
from tests.support.clairvoyance import clairvoyant_stages

POLICIES_AHEAD = ("fcfs", "lwf", "easy", "all-reserve")
ACTUAL = "actual"
"""The predictor that knows the run times."""

QUEUES = (100, 1_000, 10_000)
RUNNING = 100


class Table(StrEnum):
    """What can be tabulated."""

    WAITS = "waits"
    """Decisions go by requests, only forecasts by the predictor: tables 4 to 9."""
    SCHEDULES = "schedules"
    """Decisions go by the predictor too: tables 10 to 15."""


def log_of(text: str, jobs: int | None) -> Log:
    """Return a log as `log` does, or the log LABEL of a campaign from FILE.toml:LABEL."""
    file, _, label = text.rpartition(":")
    if not file.endswith(".toml"):
        return log(text, jobs)
    (found,) = (each for each in find_logs(read_campaign(Path(file)), TRACES, jobs) if each.label == label)
    return Log(label, workload_of(found))


def row(table: Table, trace: str, policy: str, runtime: str, jobs: int | None = None) -> dict[str, Any]:
    """Return the figures of one log, policy and predictor; times in seconds, errors as shares of the means."""
    name, workload = log_of(trace, jobs)
    plan = ",plan=requested" if table is Table.WAITS and policy != "fcfs" else ""
    chosen = configure(f"{policy}:forecast=yes{plan}", "requested" if runtime == ACTUAL else runtime)
    opened = RunPlan(policy, name, workload, chosen).opened()
    stages = clairvoyant_stages(workload) if runtime == ACTUAL else STAGES
    began = time.process_time()
    last = EmbeddedReplay(opened, RunPlan(policy, name, workload, chosen).source(), stages=stages).run_to_end()
    assert last.scores is not None
    scores, run_times, forecast = last.scores.policy, last.scores.run_time, last.scores.wait_forecast
    assert forecast is not None
    assert run_times.mean_absolute_error is not None
    assert run_times.mean_run_time
    return {
        "table": table,
        "trace": name,
        "policy": policy,
        "runtime": runtime,
        "jobs": scores.jobs,
        "run_time_error": run_times.mean_absolute_error / run_times.mean_run_time,
        "wait_error": forecast.error_share,
        "mean_wait_error": forecast.mean_absolute_error,
        "mean_wait": scores.mean_wait,
        "utilization": scores.utilization,
        "cpu_seconds": round(time.process_time() - began, 1),
    }


def rows(table: Table, trace: str, policies: Sequence[str], runtimes: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield a row per predictor and policy; FCFS does not decide by run times, so the first table has it all."""
    for runtime in runtimes:
        for policy in policies:
            if table is Table.WAITS or policy != "fcfs":
                yield row(table, trace, policy, runtime)


class Timed(Scheduler):
    """A scheduler that notes what each of its forecasts took."""

    def __init__(self, opened: ClusterOpened, microseconds: list[float]) -> None:
        super().__init__(opened)
        (pool,) = self.pools
        assert pool.forecaster is not None
        forecast = pool.forecaster.forecast

        def timed(now: int, queue: Queue, running: Running, free: int, job_number: int) -> WaitForecast:
            began = time.perf_counter()
            found = forecast(now, queue, running, free, job_number)
            microseconds.append((time.perf_counter() - began) * 1e6)
            return found

        pool.forecaster.forecast = timed  # type: ignore[method-assign]


def cost_in_replay(trace: str) -> list[dict[str, Any]]:
    """Return microseconds for each submission of a log, on requests and where predictions are outlived."""
    name, workload = log(trace)
    found = []
    for policy in POLICIES_AHEAD:
        for runtime in ("requested", "last-two"):
            taken: list[float] = []
            stages = [
                Stage(each.name, each.reads, each.writes, partial(Timed, microseconds=taken))
                if each.name == "scheduler"
                else each
                for each in STAGES
            ]
            plan = RunPlan(policy, name, workload, configure(f"{policy}:forecast=yes", runtime))
            EmbeddedReplay(plan.opened(), plan.source(), stages=stages).run_to_end()
            median, high, most = np.quantile(taken, [0.5, 0.99, 1.0]).round(1).tolist()
            figures = {"median": median, "mean": round(float(np.mean(taken)), 1), "p99": high, "max": most}
            found.append({"trace": name, "policy": policy, "runtime": runtime, "microseconds": figures})
    return found


def cost_at(policy_name: str, waiting: int) -> dict[str, Any]:
    """Return microseconds of a forecast behind so many waiting jobs: from nothing, and when the next job comes."""
    forecaster = POLICIES.build(parse(f"{policy_name}:forecast=yes")).forecaster()
    assert forecaster is not None
    queue, running = queue_of(waiting), running_of(RUNNING)

    def forecast(job_number: int) -> WaitForecast:
        return forecaster.forecast(NOW, queue, running, FREE, job_number)

    def forecast_anew() -> None:
        forecaster.ahead.forget()
        forecast(waiting)

    fresh = median_microseconds(forecast_anew)
    following = []
    for number in range(waiting + 1, waiting + 100):  # no smaller and no shorter than any before
        queue.add((number, number, 64, *planned_times(200_000, None, None), UNKNOWN))
        began = time.perf_counter()
        forecast(number)
        following.append((time.perf_counter() - began) * 1e6)
    return {
        "policy": policy_name,
        "waiting": waiting,
        "running": RUNNING,
        "microseconds": fresh,
        "microseconds_for_the_next": round(float(np.median(following)), 1),
    }


def cost_by_queue(policy_name: str) -> list[dict[str, Any]]:
    """Return what a forecast costs, against the length of the queue."""
    return [cost_at(policy_name, waiting) for waiting in QUEUES]


BENCHMARKS: dict[str, Callable[[], list[dict[str, Any]]]] = {
    **{f"forecast-by-queue-{policy}": partial(cost_by_queue, policy) for policy in POLICIES_AHEAD},
    "forecast-in-replay-ctc": partial(cost_in_replay, "CTC"),
}


def main(
    table: Table,
    traces: Annotated[list[str] | None, typer.Argument(metavar=f"[{METAVAR}]…", help=HELP)] = None,
    policy: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Repeat for several.")] = None,
    runtime: Annotated[list[str] | None, typer.Option(metavar="SPEC", help=f"By default {ACTUAL}.")] = None,
) -> None:
    """Print one JSON line per log, policy and predictor."""
    for trace in traces or ("KTH", "SDSC-SP2", "CTC"):
        for each in rows(table, trace, policy or POLICIES_AHEAD, runtime or (ACTUAL,)):
            print(json.dumps(each), flush=True)


if __name__ == "__main__":
    run_app(application(main))
