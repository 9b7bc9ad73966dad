"""Adjusted requests: how accurate each scheme is on a recorded log.

`python -m tests.benchmarks.adjusted_requests [LOG…]`
"""

import json
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice, product
from typing import Annotated, Any

import orjson
import typer

from shadowtime.replayer.logs.workload import Workload
from shadowtime.replayer.simulation.recorded import Recorded
from shadowtime.services.scoreboard.scores.request_accuracy import WalltimeAccuracy
from shadowtime.services.walltime_adjustment.handler import ADJUSTERS, Adjuster
from shadowtime.services.walltime_adjustment.keys import KEYS, WINDOWS
from shadowtime.services.walltime_adjustment.percentile import Percentile
from shadowtime.shared.cli.command_line import application, run_app
from shadowtime.shared.messages.envelope import JobEnded, JobSubmitted
from shadowtime.shared.spec import parse
from tests.benchmarks.logs import HELP, METAVAR, log

PERCENTILES = (50, 70, 80, 85, 90, 95, 100)


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


def main(
    traces: Annotated[list[str] | None, typer.Argument(metavar=f"[{METAVAR}]…", help=HELP)] = None,
) -> None:
    """Print one JSON line per scheme."""
    chosen: Sequence[str] = traces or ("KTH", "SDSC-SP2", "CTC")
    for trace in chosen:
        for row in accuracy(trace):
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    run_app(application(main))
