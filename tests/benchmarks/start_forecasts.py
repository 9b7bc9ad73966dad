"""Forecasts from sampled futures against the starts that came, beside other forecasts, and what an answer costs.

`python -m tests.benchmarks.start_forecasts [LOG]… [--policy NAME]… [--runtime SPEC] [--forecast calibrated]
[--jobs N]` prints one JSON line per log and policy, of every job. Beside the scoreboard's figures are those of jobs of
which the forecast was not sure; of point forecasts where all run times are known, which go wrong by arrivals alone; and
of sampled ones where run times are drawn independently from the very distributions that are predicted (`planted`),
which only arrivals put wrong too.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import numpy as np
import typer

from shadowtime.replayer.comparison.plan import RunPlan
from shadowtime.replayer.logs.workload import Workload
from shadowtime.replayer.simulation.embedded import EmbeddedReplay
from shadowtime.services.catalogue import canonical, configure
from shadowtime.services.pipeline import STAGES
from shadowtime.services.scheduler.handler import Scheduler
from shadowtime.services.scheduler.tables.job_table import Queue, Running
from shadowtime.services.scoreboard.scores.start_distributions import StartDistributions
from shadowtime.shared.chance import key_of, uniform
from shadowtime.shared.cli.command_line import application, run_app
from shadowtime.shared.distributions.histogram import BINS, bin_of
from shadowtime.shared.distributions.sampling import sampled_times
from shadowtime.shared.kernels.arrays import Floats
from shadowtime.shared.messages.base import MAX_DURATION
from shadowtime.shared.messages.envelope import ClusterOpened, Envelope, JobStarted, JobSubmitted
from shadowtime.shared.messages.predictions import RunTimePrediction, WaitForecast
from shadowtime.shared.stages.handler import StageHandler
from shadowtime.shared.stages.stage import Stage
from tests.benchmarks.logs import HELP, METAVAR, log
from tests.support.clairvoyance import clairvoyant_stages

POLICIES = ("easy", "cautious")
TRACES = ("KTH", "SDSC-SP2", "CTC")
FIXED = 100_000
"""Additions of the loop to which costs are compared."""


def fixed_loop() -> float:
    """Return the seconds of cpu that a fixed loop takes: the cost of an answer is told in it, too."""
    began = time.process_time()
    total = 0
    for each in range(FIXED):
        total += each
    return time.process_time() - began


class Timed(Scheduler):
    """A scheduler that notes what each of its forecasts took, in seconds of cpu."""

    def __init__(self, opened: ClusterOpened, taken: list[float]) -> None:
        super().__init__(opened)
        (pool,) = self.pools
        assert pool.forecaster is not None
        forecast = pool.forecaster.forecast

        def timed(now: int, queue: Queue, running: Running, free: int, job_number: int) -> WaitForecast:
            began = time.process_time()
            found = forecast(now, queue, running, free, job_number)
            taken.append(time.process_time() - began)
            return found

        pool.forecaster.forecast = timed  # type: ignore[method-assign]


class Unsure:
    """Scores forecasts of the jobs whose quantiles are not all the same."""

    def __init__(self) -> None:
        self.starts = StartDistributions()
        self.submitted: dict[int, int] = {}
        self.met: list[bool] = []
        self.late: list[bool] = []

    def __call__(self, envelope: Envelope) -> None:
        """Take in an envelope of the log."""
        event = envelope.event
        if isinstance(event, JobSubmitted) and envelope.forecast is not None:
            self.submitted[event.job_number] = event.since
            table = envelope.forecast.starts_within or ()
            if table and table[0][1] < table[-1][1]:
                self.starts.submit(event.job_number, envelope.forecast, envelope.wait_bounds)
        elif isinstance(event, JobStarted):
            self.starts.reveal(event.job_number, event.time - self.submitted[event.job_number])

    def figures(self) -> dict[str, Any]:
        """Return how many there were, and the shares within each interval."""
        sampled, *_ = self.starts.scores() or (None,)
        if sampled is None:
            return {"jobs": 0}
        return {"jobs": sampled.jobs} | _intervals(sampled.intervals)


class WithoutArrivals:
    """Counts starts that were foretold to the second, too soon and too late, where all run times are known."""

    def __init__(self) -> None:
        self.foretold: dict[int, int] = {}
        self.same = self.sooner = self.later = 0

    def __call__(self, envelope: Envelope) -> None:
        """Take in an envelope of the log."""
        event = envelope.event
        if isinstance(event, JobSubmitted) and envelope.forecast is not None and envelope.forecast.wait is not None:
            self.foretold[event.job_number] = event.since + envelope.forecast.wait
        elif isinstance(event, JobStarted) and (foretold := self.foretold.pop(event.job_number, None)) is not None:
            self.same += event.time == foretold
            self.sooner += event.time < foretold
            self.later += event.time > foretold

    def figures(self) -> dict[str, float]:
        """Return shares of the jobs."""
        jobs = self.same + self.sooner + self.later
        return {"same": self.same / jobs, "sooner": self.sooner / jobs, "later": self.later / jobs}


class Planted(StageHandler):
    """One run in which the distribution of each run time is known, and nothing else."""

    def __init__(self, opened: ClusterOpened, histograms: Mapping[int, Floats]) -> None:
        super().__init__(opened)
        self.histograms = histograms

    def on_submitted(self, envelope: Envelope, job: JobSubmitted) -> Envelope:
        """Add the distribution."""
        known = RunTimePrediction.of(self.histograms[job.job_number], job.requested_time, observations=0)
        return envelope.model_copy(update={"run_time": known})


def planted(workload: Workload) -> tuple[Workload, list[Stage]]:
    """Return a log whose run times are drawn anew, each from four bins about its own, and stages that know these."""
    numbers = workload.columns["job_number"]
    masses = np.zeros((len(numbers), BINS))
    middle = np.array([bin_of(float(each)) for each in workload.columns["run_time"]])
    for step in range(-2, 2):
        masses[np.arange(len(numbers)), np.clip(middle + step, 1, BINS - 1)] += 0.25
    none, never = np.zeros(len(numbers)), np.full(len(numbers), float(MAX_DURATION))
    draws = uniform(key_of(1, "planted"), numbers, 0)[np.newaxis]
    (run_times,) = sampled_times(masses, none, never, none, draws)
    histograms = dict(zip(numbers.tolist(), masses, strict=True))
    first, *others = STAGES
    stages = [Stage(first.name, first.reads, first.writes, lambda opened: Planted(opened, histograms)), *others]
    return replace(workload, columns=dict(workload.columns) | {"run_time": run_times}), stages


def by_arrivals_alone(plan: RunPlan) -> dict[str, Any]:
    """Return how forecasts fare that nothing but later arrivals can put wrong."""
    arrivals = WithoutArrivals()
    known = plan._replace(configuration=configure(f"{plan.label}:forecast=yes"))
    stages = clairvoyant_stages(plan.workload)
    EmbeddedReplay(known.opened(), known.source(), [arrivals], stages=stages).run_to_end()
    workload, stages = planted(plan.workload)
    anew = plan._replace(workload=workload)
    scores = EmbeddedReplay(anew.opened(), anew.source(), stages=stages).run_to_end().scores
    assert scores is not None
    assert scores.starts is not None
    return {"run_times_known": arrivals.figures(), "planted": _intervals(scores.starts[0].intervals)}


def _intervals(told: Sequence[Any]) -> dict[str, Any]:
    return {
        "covered": {f"{each.level:g}": round(each.covered, 4) for each in told},
        "covered_by_chance": {f"{each.level:g}": round(each.covered_by_chance, 4) for each in told},
    }


def row(trace: str, policy: str, runtime: str, jobs: int | None = None, forecast: str = "sampled") -> dict[str, Any]:
    """Return the figures of one log and policy; seconds, shares in 0 to 1."""
    name, workload = log(trace, jobs)
    chosen = configure(f"{policy}:forecast={forecast}", runtime)
    plan = RunPlan(policy, name, workload, chosen, wait_bound=canonical("wait-bound", "bmbp"))
    taken: list[float] = []
    stages = [
        Stage(each.name, each.reads, each.writes, partial(Timed, taken=taken)) if each.name == "scheduler" else each
        for each in STAGES
    ]
    unsure = Unsure()
    last = EmbeddedReplay(plan.opened(), plan.source(), [unsure], stages=stages).run_to_end()
    as_run_ahead = by_arrivals_alone(plan) if policy.startswith("easy") else {}  # `best` is run ahead as EASY is
    loop = float(np.median([fixed_loop() for _ in range(21)]))
    scores = last.scores
    assert scores is not None
    assert scores.starts is not None
    sampled, point, bounds = scores.starts
    cost = np.quantile(taken, [0.5, 0.99, 1.0])
    return {
        "trace": name,
        "policy": policy,
        "runtime": runtime,
        "forecast": forecast,
        "jobs": sampled.jobs,
        "without": sampled.without,
        "mean_wait": sampled.mean_wait,
        **_intervals(sampled.intervals),
        "of_unsure": unsure.figures(),
        "crps": {"sampled": sampled.crps, "point": point.crps, "bounds": bounds.crps},
        "sampled_crps_of_bounded": bounds.sampled_crps,
        "coverage_of_bounds": {
            each.grouping: each.coverage
            for each in scores.wait_bounds
            if each.queue is None and each.grouping in ("ensemble", "conformal")
        },
        "brier": {each.by: each.within.brier for each in scores.starts if each.within is not None},
        "start_calibration_error": {
            each.by: each.within.calibration_error for each in scores.starts if each.within is not None
        },
        "cuts": None if scores.cuts is None else scores.cuts.model_dump(exclude={"bins"}),
        **as_run_ahead,
        "pit_of_run_times": [round(each, 3) for each in scores.run_time.pit],
        "milliseconds": dict(zip(("median", "p99", "max"), (cost * 1e3).round(2).tolist(), strict=True)),
        "fixed_loops": dict(zip(("median", "p99", "max"), (cost / loop).round(2).tolist(), strict=True)),
    }


def main(
    traces: Annotated[list[str] | None, typer.Argument(metavar=f"[{METAVAR}]…", help=HELP)] = None,
    policy: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Repeat for several.")] = None,
    runtime: Annotated[str, typer.Option(metavar="SPEC", help="What predicts run times.")] = "experts",
    forecast: Annotated[str, typer.Option(metavar="NAME", help="sampled or calibrated.")] = "sampled",
    jobs: Annotated[int | None, typer.Option(metavar="N", min=1, help="Only the first N jobs.")] = None,
) -> None:
    """Print one JSON line per log and policy."""
    for trace in traces or TRACES:
        for each in policy or POLICIES:
            print(json.dumps(row(trace, each, runtime, jobs, forecast)), flush=True)


if __name__ == "__main__":
    run_app(application(main))
