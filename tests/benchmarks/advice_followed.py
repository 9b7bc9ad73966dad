"""What becomes of jobs that follow the advice: a random tenth of a log asks as the table marks, the rest as it did.

`python -m tests.benchmarks.advice_followed [LOG]… [--policy NAME] [--risk R] [--jobs N]` prints one JSON line per log.
Advice is made of the states just before each job is submitted, in the replay in which it is followed; nothing knows of
what comes later. The same jobs are compared with themselves in a replay without advice: mean wait and the share that is
cut, with 95 % intervals by a bootstrap of blocks of time.
"""

import json
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

import numpy as np
import typer

from shadowtime.replayer.comparison.plan import RunPlan
from shadowtime.replayer.simulation.embedded import EmbeddedReplay
from shadowtime.replayer.simulation.machine import Machine
from shadowtime.services.catalogue import configure
from shadowtime.services.pipeline import STAGES
from shadowtime.services.processes.ask.advice import alternative
from shadowtime.services.processes.ask.alternatives import AlternativeShape, marked, risk_of, shapes
from shadowtime.services.runtime_distribution.handler import RuntimeDistribution
from shadowtime.services.scheduler.handler import Scheduler, starts_if_submitted
from shadowtime.shared.chance import key_of, uniform
from shadowtime.shared.cli.command_line import application, run_app
from shadowtime.shared.kernels.arrays import Flags, Integers
from shadowtime.shared.messages.envelope import ClusterOpened, Envelope, JobEnded, JobStarted, JobSubmitted
from shadowtime.shared.stages.stage import Stage
from shadowtime.shared.statistics.bootstrap import mean_over_time
from tests.benchmarks.logs import HELP, METAVAR, log

KEY = key_of(0, "advice")
SHARE = 0.1
POLICY = "easy:plan=requested"
"""Decides by requests: where predictions decide, what a job requests hardly matters to its wait."""


class Lives:
    """Notes wait and end of each job."""

    def __init__(self) -> None:
        self.submitted: dict[int, int] = {}
        self.waits: dict[int, int] = {}
        self.cut: dict[int, bool] = {}

    def __call__(self, envelope: Envelope) -> None:
        """Take in an envelope of the log."""
        event = envelope.event
        if isinstance(event, JobSubmitted):
            self.submitted[event.job_number] = event.since
        elif isinstance(event, JobStarted):
            self.waits[event.job_number] = event.time - self.submitted[event.job_number]
        elif isinstance(event, JobEnded):
            self.cut[event.job_number] = event.outcome == "limit"

    def columns(self, numbers: Integers) -> tuple[Integers, Flags]:
        """Return waits in seconds, and whether jobs were cut."""
        return np.array([self.waits[each] for each in numbers.tolist()]), np.array(
            [self.cut[each] for each in numbers.tolist()]
        )


class Asking(Machine):
    """A machine on which jobs may ask for another time than in the log: that ends them then."""

    def ask(self, job: JobSubmitted) -> None:
        """Let a job that has just come ask for the time that it is submitted with now."""
        row, logged = self._waiting[job.job_number]
        requested_time = logged.requested_time if job.requested_time is None else job.requested_time
        self._waiting[job.job_number] = row, logged._replace(requested_time=requested_time)


class Advised(RuntimeDistribution):
    """The first stage, before which some jobs ask otherwise than they did."""

    def __init__(
        self, opened: ClusterOpened, held: Mapping[str, Scheduler], machine: Asking, follow: set[int], risk: float
    ) -> None:
        super().__init__(opened)
        self.held, self.machine, self.follow, self.risk = held, machine, follow, risk

    def handle(self, envelope: Envelope) -> Envelope:
        """Have a job ask as it is advised, if it is one of those."""
        event = envelope.event
        if isinstance(event, JobSubmitted) and event.job_number in self.follow:
            advised = self.advised(event)
            self.machine.ask(advised)
            envelope = envelope.model_copy(update={"event": advised})
        return super().handle(envelope)

    def advised(self, job: JobSubmitted) -> JobSubmitted:
        """Return the job as the table marks it."""
        own = AlternativeShape(job.requested_processors, job.requested_time or 0)
        prediction = self.run_time_of(job)
        if prediction is None or not any(prediction.histogram):
            return job
        double = (risk_of(own, own.processors, prediction.histogram) or 0.0) > self.risk
        jobs = [
            job.model_copy(update={"requested_processors": each.processors, "requested_time": each.requested_time})
            for each in shapes(own, prediction.histogram, self.processors, moldable=False, double=double)
        ]
        asked = [(each, self.run_time_of(each)) for each in jobs]
        (pool,) = self.held["scheduler"].pools
        starts = starts_if_submitted(pool, job.time, asked)
        found = [alternative(own, each, start, prediction) for each, start in zip(jobs, starts, strict=True)]
        return next(each for each, row in zip(jobs, marked(found, self.risk), strict=True) if row.advised)


def followed(plan: RunPlan, follow: set[int], risk: float) -> tuple[Lives, int]:
    """Return what became of the jobs where some follow the advice, and how many asked for something else by it."""
    held: dict[str, Scheduler] = {}
    lives, changed = Lives(), 0

    def opens(opened: ClusterOpened) -> Scheduler:
        held["scheduler"] = Scheduler(opened)
        return held["scheduler"]

    own = dict(zip(*(plan.workload.columns[name].tolist() for name in ("job_number", "requested_time")), strict=True))

    def watch(envelope: Envelope) -> None:
        nonlocal changed
        event = envelope.event
        if isinstance(event, JobSubmitted) and event.requested_time != own[event.job_number]:
            changed += 1
        lives(envelope)

    first, *others = STAGES
    machine = Asking(plan.workload, plan.capacity, plan.traits)
    advised = partial(Advised, held=held, machine=machine, follow=follow, risk=risk)
    stages = [Stage(first.name, first.reads, first.writes, advised)]
    stages += [
        Stage(each.name, each.reads, each.writes, opens) if each.name == "scheduler" else each for each in others
    ]
    EmbeddedReplay(plan.opened(), machine, [watch], stages=stages).run_to_end()
    return lives, changed


def row(trace: str, policy: str, runtime: str, risk: float, jobs: int | None = None) -> dict[str, Any]:
    """Return the figures of one log; seconds, shares in 0 to 1."""
    name, workload = log(trace, jobs)
    plan = RunPlan(policy, name, workload, configure(policy, runtime))
    before = Lives()
    EmbeddedReplay(plan.opened(), plan.source(), [before]).run_to_end()
    numbers, submitted = workload.columns["job_number"], workload.columns["submit_time"]
    chosen = uniform(KEY, numbers, 0) < SHARE
    after, changed = followed(plan, set(numbers[chosen].tolist()), risk)
    (wait, cut), (new_wait, new_cut) = before.columns(numbers), after.columns(numbers)

    def interval(values: Any, of: Flags) -> list[float | None]:
        return [
            None if each is None else round(each, 4)
            for each in mean_over_time(values[of].astype(np.float64), submitted[of], KEY)
        ]

    return {
        "trace": name,
        "policy": policy,
        "runtime": runtime,
        "risk": risk,
        "jobs": int(chosen.sum()),
        "asked_otherwise": changed,
        "mean_wait": interval(wait, chosen),
        "mean_wait_advised": interval(new_wait, chosen),
        "wait_difference": interval(new_wait - wait, chosen),
        "wait_difference_of_others": interval(new_wait - wait, ~chosen),
        "cut": interval(cut, chosen),
        "cut_advised": interval(new_cut, chosen),
        "cut_difference": interval(new_cut.astype(np.int64) - cut, chosen),
    }


def main(
    traces: Annotated[list[str] | None, typer.Argument(metavar=f"[{METAVAR}]…", help=HELP)] = None,
    policy: Annotated[str, typer.Option(metavar="NAME", help="Who decides.")] = POLICY,
    runtime: Annotated[str, typer.Option(metavar="SPEC", help="What predicts run times.")] = "experts",
    risk: Annotated[float, typer.Option(metavar="R", min=0, max=1, help="Greatest risk of being cut.")] = 0.05,
    jobs: Annotated[int | None, typer.Option(metavar="N", min=1, help="Only the first N jobs.")] = None,
) -> None:
    """Print one JSON line per log."""
    for trace in traces or ("KTH",):
        print(json.dumps(row(trace, policy, runtime, risk, jobs)), flush=True)


if __name__ == "__main__":
    run_app(application(main))
