"""Adjusted requests: how accurate each scheme is on a recorded log, and what each month gains by them.

`python -m tests.benchmarks.adjusted_requests accuracy|months [LOG…]`
"""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial
from itertools import islice, product
from typing import Annotated, Any

import numpy as np
import orjson
import typer

from shadowtime.replayer.comparison.plan import RunPlan, carry_out
from shadowtime.replayer.logs.workload import Workload
from shadowtime.replayer.simulation.recorded import Recorded
from shadowtime.services.catalogue import configure
from shadowtime.services.scoreboard.scores.request_accuracy import WalltimeAccuracy
from shadowtime.services.walltime_adjustment.handler import ADJUSTERS, Adjuster
from shadowtime.services.walltime_adjustment.keys import KEYS, MONTH, WINDOWS
from shadowtime.services.walltime_adjustment.percentile import Percentile
from shadowtime.shared.cli.command_line import application, run_app
from shadowtime.shared.messages.envelope import JobEnded, JobSubmitted
from shadowtime.shared.spec import parse
from tests.benchmarks.logs import HELP, METAVAR, log

PERCENTILES = (50, 70, 80, 85, 90, 95, 100)
LEVELS = (95, 85, 70)
USES = {"regular": "running=yes", "selective": "running=no"}


def family(key: str, window: str, fallback: str) -> dict[str, Percentile]:
    """Return a scheme for every percentile; all share one record, which the first of them keeps."""
    made: dict[str, Percentile] = {}
    for percentile in PERCENTILES:
        spec = f"percentile:key={key},window={window},fallback={fallback},percentile={percentile}"
        scheme = ADJUSTERS.build(parse(spec))
        assert isinstance(scheme, Percentile)
        if made:
            scheme.history = next(iter(made.values())).history
        made[spec] = scheme
    return made


def scored(workload: Workload, schemes: dict[str, Any]) -> tuple[dict[str, dict[str, Any]], int, float]:
    """Return the scores of schemes that share a record, the number of events, and the processor seconds they took."""
    source, keeper = Recorded(workload), next(iter(schemes.values()))
    instants = iter(source.next_instant, ())
    scores = {spec: WalltimeAccuracy() for spec in schemes}
    open_jobs: dict[int, tuple[JobSubmitted, list[int]]] = {}
    count, seconds = 0, 0.0
    while events := [event for instant in islice(instants, 1000) for event in instant]:
        count += len(events)
        ended = []
        began = time.process_time()
        for event in events:
            if isinstance(event, JobSubmitted):
                answers = [scheme.predict_one(event) for scheme in schemes.values()]
                open_jobs[event.job_number] = event, [each.adjusted_time for each in answers if each is not None]
            elif isinstance(event, JobEnded):
                ended.append((event, *open_jobs.pop(event.job_number)))
                keeper.learn_one(ended[-1][1], event)
            keeper.observe(event)
        seconds += time.process_time() - began
        for end, job, adjusted_times in ended:
            assert job.requested_time is not None
            for score, adjusted_time in zip(scores.values(), adjusted_times, strict=True):
                score.add(end.run_time, job.requested_time, adjusted_time)
    return {spec: score.scores().model_dump() for spec, score in scores.items()}, count, seconds


def accuracy(trace: str) -> Iterator[dict[str, Any]]:
    """Yield the scores of every fixed scheme on a recorded log, and of `auto`."""
    name, workload = log(trace)
    families: Iterator[dict[str, Any]] = (
        family(key, window, fallback)
        for key, window, fallback in product(KEYS, WINDOWS, ("none", "coarser"))
        if fallback == "none" or "+" in key
    )
    for schemes in (*families, {"auto": ADJUSTERS.build(parse("auto"))}):
        for spec, scores in scored(workload, schemes)[0].items():
            yield {"trace": name, "scheme": spec} | scores


def months_of(workload: Workload) -> Iterator[Workload]:
    """Yield the jobs of each 30 days as a log of their own."""
    submitted = workload.columns["submit_time"]
    months = (submitted - submitted[0]) // MONTH
    for month in np.unique(months):
        rows = months == month
        yield replace(
            workload,
            name=f"{workload.name}/{month + 1}",
            columns={name: column[rows] for name, column in workload.columns.items()},
        )


def months(trace: str, key: str) -> Iterator[dict[str, Any]]:
    """Yield what EASY in order of submission and by WFP make of each month, by level and use of adjusted requests."""
    name, workload = log(trace)
    spec = "percentile(key={},fallback=coarser,percentile={})"
    schemes = {f"p{level}": spec.format(key, level) for level in LEVELS} | {"auto": "auto"}
    pairs = {"none": ("", "none")} | {
        f"{use}, {name}": (f":{switch}", scheme) for name, scheme in schemes.items() for use, switch in USES.items()
    }
    for part in months_of(workload):
        for policy, (label, (keys, adjustment)) in product(("easy", "wfp"), pairs.items()):
            scores = carry_out(
                RunPlan(label, name, part, configure(policy + keys, adjustment=adjustment))
            ).scores.policy
            yield {
                "trace": part.name,
                "policy": policy,
                "adjustment": label,
                "jobs": len(part),
                "mean_wait": scores.mean_wait,
                "mean_bounded_slowdown": scores.mean_bounded_slowdown,
                "weighted_mean_wait": scores.weighted_mean_wait,
                "max_wait": scores.max_wait,
            }


def cost(spec: str) -> list[dict[str, Any]]:
    """Return microseconds for each event and the size of the state, at 10,000 jobs and at all of HPC2N."""
    rows = []
    for jobs in (10_000, None):
        name, workload = log("HPC2N", jobs)
        adjuster: Adjuster = ADJUSTERS.build(parse(spec))
        _, events, seconds = scored(workload, {spec: adjuster})
        snapshot = orjson.dumps(adjuster.snapshot())
        rows.append(
            {
                "trace": name,
                "scheme": spec,
                "jobs": len(workload),
                "events": events,
                "microseconds_per_event": round(seconds / events * 1e6, 1),
                "snapshot_bytes": len(snapshot),
            }
        )
    return rows


BENCHMARKS = {f"adjustment-cost-{name}": partial(cost, name) for name in ("percentile", "auto")}


class Table(StrEnum):
    """What can be tabulated."""

    ACCURACY = "accuracy"
    MONTHS = "months"


def main(
    table: Table,
    traces: Annotated[list[str] | None, typer.Argument(metavar=f"[{METAVAR}]…", help=HELP)] = None,
    key: Annotated[str, typer.Option(help="Key of the schemes that are scheduled by.")] = "user+project+request",
) -> None:
    """Print one JSON line per scheme, or per month and schedule."""
    chosen: Sequence[str] = traces or ("KTH", "SDSC-SP2", "CTC")
    for trace in chosen:
        rows = accuracy(trace) if table is Table.ACCURACY else months(trace, key)
        for row in rows:
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    run_app(application(main))
