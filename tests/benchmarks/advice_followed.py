"""What becomes of jobs that follow the advice: a random tenth of a log asks as the table marks, the rest as it did.

`python -m tests.benchmarks.advice_followed [LOG]… [--policy NAME] [--risk R] [--jobs N]` prints one JSON line per log.
Advice is made of the states just before each job is submitted, in the replay in which it is followed; nothing knows of
what comes later. The same jobs are compared with themselves in a replay without advice: mean wait and the share that is
cut, with 95 % intervals by a bootstrap of blocks of time.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from shadowtime.replayer.comparison.plan import RunPlan
from shadowtime.replayer.simulation.embedded import EmbeddedReplay
from shadowtime.replayer.simulation.machine import Machine
from shadowtime.services.catalogue import configure
from shadowtime.services.pipeline import STAGES
from shadowtime.services.processes.ask.advice import alternative, predicted_job
from shadowtime.services.processes.ask.alternatives import AlternativeShape, marked
from shadowtime.services.runtime_distribution.handler import RuntimeDistribution
from shadowtime.services.scheduler.handler import Scheduler, starts_if_submitted
from shadowtime.shared.chance import key_of, uniform
from shadowtime.shared.cli.command_line import application, run_app
from shadowtime.shared.kernels.arrays import Flags, Floats, Integers
from shadowtime.shared.messages.envelope import ClusterOpened, Envelope, JobEnded, JobStarted, JobSubmitted
from shadowtime.shared.stages.stage import Stage
from shadowtime.shared.statistics.bootstrap import mean_over_time
from tests.benchmarks.logs import HELP, METAVAR, log

KEY = key_of(0, "advice")
SHARE = 0.1
LOGGED = "requested_time", "run_time"
POLICY = "easy:plan=requested"
"""Decides by requests: where predictions decide, what a job requests hardly matters to its wait."""


class Piece(NamedTuple):
    """One piece of advice: the stated risks of the job's own request and of the advised one, and this request."""

    own: float | None
    stated: float
    requested_time: int


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
        self.pieces: dict[int, Piece] = {}

    def handle(self, envelope: Envelope) -> Envelope:
        """Have a job ask as it is advised, if it is one of those."""
        event = envelope.event
        if isinstance(event, JobSubmitted) and event.job_number in self.follow:
            advised = self.advised(event)
            self.machine.ask(advised)
            envelope = envelope.model_copy(update={"event": advised})
        return super().handle(envelope)

    def advised(self, job: JobSubmitted) -> JobSubmitted:
        """Return the job as the table marks it, or as it is if nothing is advised."""
        own = AlternativeShape(job.requested_processors, job.requested_time or 0)
        predicted = predicted_job(self, job, self.risk, largest=0)
        (pool,) = self.held["scheduler"].pools
        starts = starts_if_submitted(pool, job.time, predicted.asked)
        rows = [
            alternative(own, asked, start, predicted) for (asked, _), start in zip(predicted.asked, starts, strict=True)
        ]
        for (asked, _), row in zip(predicted.asked, marked(rows, self.risk), strict=True):
            if row.advised:
                self.pieces[job.job_number] = Piece(rows[0].cut, row.cut or 0.0, row.requested_time)
                return asked

        return job


def followed(plan: RunPlan, follow: set[int], risk: float) -> tuple[Lives, dict[int, Piece]]:
    """Return what became of the jobs where some follow the advice, and the advice by job number."""
    held: dict[str, Scheduler] = {}
    adviser: list[Advised] = []
    lives = Lives()

    def opens(opened: ClusterOpened) -> Scheduler:
        held["scheduler"] = Scheduler(opened)
        return held["scheduler"]

    def advises(opened: ClusterOpened) -> Advised:
        adviser.append(Advised(opened, held, machine, follow, risk))
        return adviser[0]

    first, *others = STAGES
    machine = Asking(plan.workload, plan.capacity, plan.traits)
    stages = [Stage(first.name, first.reads, first.writes, advises)]
    stages += [
        Stage(each.name, each.reads, each.writes, opens) if each.name == "scheduler" else each for each in others
    ]
    EmbeddedReplay(plan.opened(), machine, [lives], stages=stages).run_to_end()
    return lives, adviser[0].pieces


def tenths(stated: Floats, cut: Flags) -> list[dict[str, Any]]:
    """Return the number of jobs, the mean stated risk and the share that was cut, for each tenth of stated risk."""
    tenth = np.minimum((10 * stated).astype(np.int64), 9)
    rows = [(at / 10, stated[tenth == at], cut[tenth == at]) for at in range(10)]
    return [
        {"from": begin, "jobs": len(risks), "stated": round(risks.mean(), 4), "cut": round(happened.mean(), 4)}
        for begin, risks, happened in rows
        if len(risks)
    ]


def calibration(pieces: Mapping[int, Piece], run_time: Mapping[int, int], own: Mapping[int, int]) -> dict[str, Any]:
    """Return how the stated risks compare with what happened, by job number: run times and own requests in the log.

    A job that was cut in the log has its run time there as if it had ended then. Its true run time is unknown, if it
    is advised to ask for more: `near_at_most` counts all these as cut.
    """
    numbers = list(pieces)
    times, asked = (np.array([of[number] for number in numbers], np.int64) for of in (run_time, own))
    stated, requested = (np.array([getattr(pieces[number], name) for number in numbers]) for name in Piece._fields[1:])
    risks = np.array([pieces[number].own for number in numbers])
    cut, unknown = times > requested, (times > asked) & (requested > asked)
    near = (stated >= 0.04) & (stated <= 0.06)
    return {
        "pieces": len(pieces),
        "shorter_same_longer": [int(np.sum(np.sign(requested - asked) == sign)) for sign in (-1, 0, 1)],
        "near": int(near.sum()),
        "near_cut": round(cut[near].mean(), 4) if near.any() else None,
        "near_at_most": round((cut | unknown)[near].mean(), 4) if near.any() else None,
        "highest": round(stated.max(), 6),
        "own": tenths(risks, times > asked),
        "advised": tenths(stated, cut),
    }


def row(
    trace: str, policy: str, runtime: str, risk: float, jobs: int | None = None, share: float = SHARE
) -> dict[str, Any]:
    """Return the figures of one log; seconds, shares in 0 to 1."""
    name, workload = log(trace, jobs)
    plan = RunPlan(policy, name, workload, configure(policy, runtime))
    before = Lives()
    EmbeddedReplay(plan.opened(), plan.source(), [before]).run_to_end()
    numbers, submitted = workload.columns["job_number"], workload.columns["submit_time"]
    chosen = uniform(KEY, numbers, 0) < share
    after, pieces = followed(plan, set(numbers[chosen].tolist()), risk)
    own, run_time = (dict(zip(numbers.tolist(), workload.columns[name].tolist(), strict=True)) for name in LOGGED)
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
        "asked_otherwise": sum(piece.requested_time != own[number] for number, piece in pieces.items()),
        "calibration": calibration(pieces, run_time, own),
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
