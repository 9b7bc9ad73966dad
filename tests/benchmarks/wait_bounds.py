"""Bounds on the waits of recorded logs at every level that they tell, in windows, by width, and what one costs.

`python -m tests.benchmarks.wait_bounds [LOG]… [--wait-bound SPEC] [--runtime SPEC] [--jobs N]` prints one JSON line per
log. `tighter` is the root mean square of what `plain` has above the waits that it covers, by that of this bound, on the
jobs of which both say something; `windows` the share of a thousand jobs after another of which within 2 points of the
level start within it; of the median: the share within a factor 2 of the wait, and within ten minutes.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from shadowtime.replayer.comparison import Plan
from shadowtime.replayer.embedded import EmbeddedReplay
from shadowtime.services.catalogue import canonical, configure
from shadowtime.services.pipeline import STAGES
from shadowtime.services.wait_bound.handler import WaitBounds
from shadowtime.shared.arrays import Flags, Floats
from shadowtime.shared.command_line import application, run_app
from shadowtime.shared.events import ClusterOpened, Envelope, JobStarted, JobSubmitted, JobWithdrawn
from tests.benchmarks.logs import HELP, METAVAR, log

TRACES = ("CTC", "SDSC-SP2", "HPC2N")
WINDOW = 1_000
NEAR = 0.02


class Timed(WaitBounds):
    """The stage, with the cpu seconds that its bounds took at submission."""

    def __init__(self, opened: ClusterOpened, taken: list[float]) -> None:
        super().__init__(opened)
        self._taken = taken

    def on_submitted(self, envelope: Envelope, job: JobSubmitted) -> Envelope:
        """Add the bounds."""
        began = time.process_time()
        told = super().on_submitted(envelope, job)
        self._taken.append(time.process_time() - began)
        return told


class Told(NamedTuple):
    """Of each job its number, its wait, the seconds of each level (NaN where there are none); cpu seconds each took."""

    numbers: list[int]
    waits: Floats
    levels: dict[float, Floats]
    taken: Floats


def told(trace: str, bounder: str, runtime: str, jobs: int | None = None) -> Told:
    """Return what one bounder tells of the jobs of a recorded log."""
    name, workload = log(trace, jobs)
    plan = Plan(bounder, name, workload, configure("easy", runtime), "recorded", canonical("wait-bound", bounder))
    taken: list[float] = []
    stages = [
        replace(each, open=partial(Timed, taken=taken)) if each.name == "wait_bound" else each for each in STAGES[:3]
    ]
    submitted, waits, found = dict[int, int](), dict[int, int](), dict[int, dict[float, int]]()

    def note(envelope: Envelope) -> None:
        event = envelope.event
        if isinstance(event, JobSubmitted):
            submitted[event.job_number] = event.since
            for each in envelope.wait_bounds or ():
                if each.queue is None and each.bound is not None:
                    within = dict(each.starts_within) if each.grouping == "futures" else {}
                    found[event.job_number] = within | {each.quantile: each.bound}
        elif isinstance(event, JobStarted):
            waits[event.job_number] = event.time - submitted[event.job_number]
        elif isinstance(event, JobWithdrawn):
            found.pop(event.job_number, None)

    EmbeddedReplay(plan.opened(), plan.source(), [note], stages=stages).run_to_end()
    numbers = [number for number in submitted if number in waits and number in found]
    levels = sorted({level for number in numbers for level in found[number]})
    by_level = {level: np.array([found[number].get(level, np.nan) for number in numbers]) for level in levels}
    return Told(numbers, np.array([waits[number] for number in numbers], dtype=np.float64), by_level, np.array(taken))


def above(waits: Floats, bounds: Floats) -> float:
    """Return the root mean square of what bounds have above the waits that they cover, in seconds."""
    covered = waits <= bounds
    return float(np.sqrt(np.mean((bounds[covered] - waits[covered]) ** 2)))


def windows(covered: Flags, level: float) -> float:
    """Return the share of windows in which the share of covered waits is near its level."""
    whole = covered[: len(covered) // WINDOW * WINDOW].reshape(-1, WINDOW).mean(axis=1)
    return float(np.mean(np.abs(whole - level) <= NEAR + 1e-9)) if len(whole) else float("nan")


def row(trace: str, bounder: str, runtime: str, jobs: int | None = None) -> dict[str, Any]:
    """Return the figures of one bounder on one log."""
    plain, own = told(trace, "plain", "requested", jobs), told(trace, bounder, runtime, jobs)
    waits, level = own.waits, max((each for each in own.levels if each <= 0.95), default=0.95)
    both = set(plain.numbers) & set(own.numbers)
    of_plain, of_own = (np.array([number in both for number in each.numbers]) for each in (plain, own))
    tighter = above(plain.waits[of_plain], plain.levels[0.95][of_plain]) / above(
        waits[of_own], own.levels[level][of_own]
    )
    figures = {
        "log": trace,
        "bound": bounder,
        "runtime": runtime,
        "jobs": len(waits),
        "covered": {each: round(float(np.mean(waits <= told)), 4) for each, told in own.levels.items()},
        "windows": {each: round(windows(waits <= told, each), 3) for each, told in own.levels.items()},
        "tighter": round(tighter, 3),
        "milliseconds": {
            "mean": round(1e3 * float(own.taken.mean()), 3),
            "p99": round(1e3 * float(np.quantile(own.taken, 0.99)), 3),
        },
    }
    if 0.5 in own.levels:
        median = own.levels[0.5]
        ratio = np.maximum(median, 1.0) / np.maximum(waits, 1.0)
        figures["median"] = {
            "within a factor 2": round(float(np.mean((ratio >= 0.5) & (ratio <= 2.0))), 3),
            "within ten minutes": round(float(np.mean(np.abs(median - waits) <= 600.0)), 3),
        }
    return figures


def main(
    traces: Annotated[list[str] | None, typer.Argument(metavar=f"[{METAVAR}]…", help=HELP)] = None,
    wait_bound: Annotated[str, typer.Option(metavar="SPEC", help="What is beside `plain`.")] = "futures",
    runtime: Annotated[str, typer.Option(metavar="SPEC", help="What predicts run times.")] = "experts",
    jobs: Annotated[int | None, typer.Option(metavar="N", min=1, help="The first so many only.")] = None,
) -> None:
    """Print one JSON line per log."""
    each: Sequence[str] = traces or TRACES
    for trace in each:
        print(json.dumps(row(trace, wait_bound, runtime, jobs)), flush=True)


if __name__ == "__main__":
    run_app(application(main))
