"""Run times predicted from similar jobs: how far off, what they cost, and what a search for templates finds.

`python -m tests.benchmarks.similar_jobs errors|search [LOG…]`
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from functools import partial
from typing import Annotated, Any

import numpy as np
import orjson
import typer

from shadowtime.replayer.analysis.template_search import errors_on
from shadowtime.replayer.logs.workload import Workload
from shadowtime.replayer.simulation.recorded import Recorded
from shadowtime.services.runtime_distribution.handler import PREDICTORS
from shadowtime.services.runtime_distribution.templates.predictor import TemplatesSettings
from shadowtime.services.runtime_distribution.templates.search import Genes, search
from shadowtime.services.runtime_distribution.templates.template import DEFAULT, templates_of
from shadowtime.services.scoreboard.scores.run_time_errors import RunTimeErrors
from shadowtime.shared.cli.command_line import application, run_app
from shadowtime.shared.messages.envelope import JobEnded, JobSubmitted
from shadowtime.shared.spec import parse
from tests.benchmarks.logs import HELP, METAVAR, log

SIMPLE = (
    *("requested", "queue-maximum", "last-two", "class-p90", "class-mean-sigma", "gibbons", "gibbons(degree=2)"),
    *("downey-mean", "downey-median"),
)
TRAINING = 10_000


def followed(workload: Workload, spec: str) -> dict[str, Any]:
    """Return how a predictor fares on a recorded log, and the time that it takes."""
    predictor, source, scores = PREDICTORS.build(parse(spec)), Recorded(workload), RunTimeErrors()
    open_jobs: dict[int, tuple[JobSubmitted, float | None]] = {}
    spent = {"predict": 0, "learn": 0}
    for events in iter(source.next_instant, ()):
        for event in events:
            began = time.process_time_ns()
            if isinstance(event, JobSubmitted):
                prediction = predictor.predict_one(event)
                spent["predict"] += time.process_time_ns() - began
                open_jobs[event.job_number] = event, None if prediction is None else prediction.point
            elif isinstance(event, JobEnded):
                job, predicted_time = open_jobs.pop(event.job_number)
                predictor.learn_one(job, event.run_time)
                spent["learn"] += time.process_time_ns() - began
                scores.add(predicted_time, job.requested_time, event.run_time)
            predictor.observe(event)
    found = scores.scores()
    assert found.mean_absolute_error is not None
    assert found.mean_run_time is not None
    return {
        "predictor": spec,
        "jobs": found.jobs,
        "predictions": found.predictions,
        "error": round(found.mean_absolute_error / found.mean_run_time, 4),
        "microseconds_per_prediction": round(spent["predict"] / found.jobs / 1000, 1),
        "microseconds_per_learning_step": round(spent["learn"] / found.jobs / 1000, 1),
        "snapshot_bytes": len(orjson.dumps(predictor.snapshot(), option=orjson.OPT_SERIALIZE_NUMPY)),
    }


def errors(trace: str) -> Iterator[dict[str, Any]]:
    """Yield the mean absolute error of every predictor as a share of the mean run time."""
    name, workload = log(trace)
    for spec in (*SIMPLE, "templates", "boosted"):
        yield {"trace": name} | followed(workload, spec)


def searched(trace: str, generations: int = 30, seed: int = 0) -> dict[str, Any]:
    """Return what the search finds on the beginning of a log, how it fares on the rest, and how long it takes."""
    seconds = {}
    for workers in (1, 2):
        with ThreadPoolExecutor(workers) as pool:
            training = errors_on(log(trace, TRAINING)[1], pool, TemplatesSettings())
            began = time.perf_counter()
            *_, best = search(Genes(training.characteristics), training, 40, generations, seed)
            seconds[workers] = round(time.perf_counter() - began, 1)
    name, workload = log(trace)
    with ThreadPoolExecutor() as pool:
        whole = errors_on(workload, pool, TemplatesSettings())
        run_times = workload.columns["run_time"]
        rest = {}
        for name, templates in (("found", best.templates), ("default", templates_of(DEFAULT))):
            points = whole.points([whole.estimates(each) for each in templates])
            rest[name] = round(float(np.abs(points - run_times)[TRAINING:].sum() / run_times[TRAINING:].sum()), 4)
    return {
        "trace": name,
        "training": round(best.error, 4),
        "rest": rest,
        "seconds": seconds,
        "set": ";".join(map(str, best.templates)),
    }


def cost() -> list[dict[str, Any]]:
    """Return what templates cost per job, at 10,000 jobs and at all of HPC2N."""
    rows = []
    for jobs in (10_000, None):
        name, workload = log("HPC2N", jobs)
        rows.append({"trace": name} | followed(workload, "templates"))
    return rows


BENCHMARKS: dict[str, Callable[[], Any]] = {"templates-cost": cost, "template-search": partial(searched, "KTH")}


class Table(StrEnum):
    """What can be tabulated."""

    ERRORS = "errors"
    SEARCH = "search"


TABLES: dict[Table, Callable[[str], Iterable[dict[str, Any]]]] = {
    Table.ERRORS: errors,
    Table.SEARCH: lambda trace: [searched(trace)],
}


def main(
    table: Table, traces: Annotated[list[str] | None, typer.Argument(metavar=f"[{METAVAR}]…", help=HELP)] = None
) -> None:
    """Print one JSON line per predictor or search."""
    for trace in traces or ("KTH", "SDSC-SP2", "CTC"):
        for row in TABLES[table](trace):
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    run_app(application(main))
