"""Bounds on the waits of recorded logs at every level that they tell, in windows, by width, and what one costs.

`python -m tests.benchmarks.wait_bounds [LOG]… [--wait-bound SPEC] [--runtime SPEC] [--jobs N]` prints one JSON line per
log and queue. `tighter` is the root mean square of what `plain` has above the waits that it covers, by that of this
bound, on the jobs of which both say something; `windows` the share of a thousand jobs after another of which within 2
points of the level start within it; of the median: the share within a factor 2 of the wait, and within ten minutes.
"""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from shadowtime.replayer.comparison.plan import RunPlan
from shadowtime.replayer.simulation.embedded import EmbeddedReplay
from shadowtime.services.catalogue import canonical, configure
from shadowtime.services.pipeline import STAGES
from shadowtime.services.wait_bound.handler import WaitBounds
from shadowtime.shared.cli.command_line import application, run_app
from shadowtime.shared.kernels.arrays import Flags, Floats
from shadowtime.shared.messages.envelope import ClusterOpened, Envelope, JobStarted, JobSubmitted, JobWithdrawn
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
    """Of each job of one queue, or of all, its number, its wait, and the seconds of each level; NaN where none are."""

    numbers: list[int]
    waits: Floats
    levels: dict[float, Floats]


def told(trace: str, bounder: str, runtime: str, jobs: int | None = None) -> tuple[dict[int | None, Told], Floats]:
    """Return what one bounder tells of the jobs of a recorded log, by queue; and the cpu seconds that each took."""
    name, workload = log(trace, jobs)
    plan = RunPlan(bounder, name, workload, configure("easy", runtime), "recorded", canonical("wait-bound", bounder))
    taken: list[float] = []
    stages = [
        replace(each, open=partial(Timed, taken=taken)) if each.name == "wait_bound" else each for each in STAGES[:3]
    ]
    submitted, waits = dict[int, int](), dict[int, int]()
    found: dict[int | None, dict[int, dict[float, int]]] = {}

    def note(envelope: Envelope) -> None:
        event = envelope.event
        if isinstance(event, JobSubmitted):
            submitted[event.job_number] = event.since
            for each in envelope.wait_bounds or ():
                if each.bound is not None:
                    within = dict(each.starts_within) if each.grouping == "futures" else {}
                    levels = within | {each.quantile: each.bound}
                    found.setdefault(each.queue, {})[event.job_number] = levels
        elif isinstance(event, JobStarted):
            waits[event.job_number] = event.time - submitted[event.job_number]
        elif isinstance(event, JobWithdrawn):
            for of_queue in found.values():
                of_queue.pop(event.job_number, None)

    EmbeddedReplay(plan.opened(), plan.source(), [note], stages=stages).run_to_end()
    return {queue: _told(of_queue, waits) for queue, of_queue in found.items()}, np.array(taken)


def _told(found: dict[int, dict[float, int]], waits: dict[int, int]) -> Told:
    numbers = [number for number in found if number in waits]
    levels = sorted({level for number in numbers for level in found[number]})
    by_level = {level: np.array([found[number].get(level, np.nan) for number in numbers]) for level in levels}
    return Told(numbers, np.array([waits[number] for number in numbers], dtype=np.float64), by_level)


def above(waits: Floats, bounds: Floats) -> float:
    """Return the root mean square of what bounds have above the waits that they cover, in seconds."""
    covered = waits <= bounds
    return float(np.sqrt(np.mean((bounds[covered] - waits[covered]) ** 2)))


def windows(covered: Flags, level: float) -> float:
    """Return the share of windows in which the share of covered waits is near its level."""
    whole = covered[: len(covered) // WINDOW * WINDOW].reshape(-1, WINDOW).mean(axis=1)
    return float(np.mean(np.abs(whole - level) <= NEAR + 1e-9)) if len(whole) else float("nan")


def rows(trace: str, bounder: str, runtime: str, jobs: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield the figures of one bounder on one log: of all jobs, then of each queue with a window of them or more."""
    plain, _ = told(trace, "bmbp:publish=plain", "requested", jobs)
    own, taken = told(trace, bounder, runtime, jobs)
    costs = {"mean": round(1e3 * float(taken.mean()), 3), "p99": round(1e3 * float(np.quantile(taken, 0.99)), 3)}
    for queue, found in sorted(own.items(), key=lambda item: -1 if item[0] is None else item[0]):
        if queue is None or len(found.waits) >= WINDOW:
            named = {"log": trace, "queue": "all" if queue is None else queue, "bound": bounder, "runtime": runtime}
            yield named | figures(plain[queue], found) | ({"milliseconds": costs} if queue is None else {})


def figures(plain: Told, own: Told) -> dict[str, Any]:
    """Return the figures of the jobs of one queue, or of all."""
    waits, level = own.waits, max((each for each in own.levels if each <= 0.95), default=0.95)
    both = set(plain.numbers) & set(own.numbers)
    of_plain, of_own = (np.array([number in both for number in each.numbers]) for each in (plain, own))
    tighter = above(plain.waits[of_plain], plain.levels[0.95][of_plain]) / above(
        waits[of_own], own.levels[level][of_own]
    )
    found: dict[str, Any] = {
        "jobs": len(waits),
        "covered": {each: round(float(np.mean(waits <= told)), 4) for each, told in own.levels.items()},
        "windows": {each: round(windows(waits <= told, each), 3) for each, told in own.levels.items()},
        "tighter": round(tighter, 3),
    }
    if 0.5 in own.levels:
        median = own.levels[0.5]
        ratio = np.maximum(median, 1.0) / np.maximum(waits, 1.0)
        found["median"] = {
            "within a factor 2": round(float(np.mean((ratio >= 0.5) & (ratio <= 2.0))), 3),
            "within ten minutes": round(float(np.mean(np.abs(median - waits) <= 600.0)), 3),
        }
    return found


def main(
    traces: Annotated[list[str] | None, typer.Argument(metavar=f"[{METAVAR}]…", help=HELP)] = None,
    wait_bound: Annotated[str, typer.Option(metavar="SPEC", help="What is beside `plain`.")] = "futures",
    runtime: Annotated[str, typer.Option(metavar="SPEC", help="What predicts run times.")] = "experts",
    jobs: Annotated[int | None, typer.Option(metavar="N", min=1, help="The first so many only.")] = None,
) -> None:
    """Print one JSON line per log and queue."""
    each: Sequence[str] = traces or TRACES
    for trace in each:
        for row in rows(trace, wait_bound, runtime, jobs):
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    run_app(application(main))
