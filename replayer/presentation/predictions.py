"""Scores of predictions against a log, as a table in the terminal."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from shadowtime.replayer.comparison import RunResult, is_worse, requests_as_run_times
from shadowtime.replayer.presentation.names import short_names
from shadowtime.replayer.presentation.policies import jobs_of, least, legend, under
from shadowtime.services.catalogue import DEFAULTS, spelled
from shadowtime.shared.cli import FittedTable
from shadowtime.shared.formatting import duration
from shadowtime.shared.spec import Spelled
from shadowtime.shared.text import Measure, TableColumn, numbers, seconds, shares, times

REQUESTS = "requests"
BASELINE = "requested times as predictions: a useful predictor has a smaller error"


class _Row(NamedTuple):
    """The row of a predictor and an adjustment; `runtime` is None in the row of the plain requests."""

    runtime: Spelled | None
    adjustment: Spelled
    error: float | None
    log_score: float | None = None
    crps: float | None = None
    accuracy: float | None = None
    bad: float | None = None
    predicted: str = "-"
    worse: bool = False
    """Whether the predictor is worse than the requests."""


def prediction_table(results: Sequence[RunResult], *, exact: bool = False) -> FittedTable:
    """Return a table with one row per predictor and adjustment, and one row for the plain requests, all of one log.

    Rows are sorted by the error of run times, then by the accuracy of adjusted requests. With `exact`, times are in
    seconds.
    """
    plan = results[0].plan
    asked = requests_as_run_times(plan)
    rows = [_row(result, asked) for result in results]
    if DEFAULTS["runtime"] not in (result.plan.configuration.runtime for result in results):
        jobs, ended = asked["jobs"], max(result.scores.run_time.jobs for result in results)
        known = f"{jobs:,} of {ended:,}" if jobs < ended else "-"
        adjustment = spelled("adjustment", DEFAULTS["adjustment"])
        rows.append(_Row(None, adjustment, asked["mean_absolute_error"], predicted=known))
    rows.sort(key=lambda row: (least(row.error), -(row.accuracy or 0)))
    adjusting = any(row.adjustment.name != DEFAULTS["adjustment"] for row in rows)

    short = short_names(row.runtime.short for row in rows if row.runtime)
    names = {"run times": [short[row.runtime.short] if row.runtime else REQUESTS for row in rows]}
    specs = [(name, row.runtime) for name, row in zip(names["run times"], rows, strict=True) if row.runtime]
    measure: Measure = seconds if exact else partial(times, like=[row.error for row in rows])
    columns = [
        measure("error", [row.error for row in rows]).meaning(
            "error: mean absolute error; where nothing was predicted, the request is the prediction"
        ),
        numbers("log score", [row.log_score for row in rows], 3).meaning("log score: in nats"),
        measure("CRPS", [row.crps for row in rows]).meaning("CRPS: continuous ranked probability score"),
        TableColumn("predicted", "jobs", [row.predicted for row in rows]),
    ]
    if adjusting:
        short = short_names(row.adjustment.short for row in rows)
        names["adjustment"] = [short[row.adjustment.short] for row in rows]
        specs += [(name, row.adjustment) for name, row in zip(names["adjustment"], rows, strict=True)]
        columns[3:3] = [
            shares("accuracy", [row.accuracy for row in rows]).meaning("accuracy: of requests as adjusted"),
            shares("too short", [row.bad for row in rows], best=min).meaning(
                "too short: jobs that ran at least 30 min longer than adjusted"
            ),
        ]

    meanings: dict[str, Spelled | str] = {**legend(specs)}
    if REQUESTS in names["run times"]:
        meanings[REQUESTS] = BASELINE
    worse = [name for name, row in zip(names["run times"], rows, strict=True) if row.worse]
    error = duration(asked["mean_absolute_error"])
    notes = [f"{name}: worse than the request, which is {error} off" for name in dict.fromkeys(worse)]
    return FittedTable(_title(results), names, columns, notes, meanings)


def _title(results: Sequence[RunResult]) -> str:
    result = results[0]
    plan, waits = result.plan, result.scores.policy
    if plan.obeyed:
        return f"{plan.cluster}, run times as predicted at submission{under(plan) if len(results) == 1 else ''}"
    return (
        f"{plan.cluster}, as recorded: {jobs_of(plan)}, mean run time {duration(result.scores.run_time.mean_run_time)}"
        f", mean wait {duration(waits.mean_wait)}, longest {duration(waits.max_wait)}"
    )


def _row(result: RunResult, asked: Mapping[str, Any]) -> _Row:
    run_time, adjustment = result.scores.run_time, result.scores.adjustment
    return _Row(
        spelled("runtime", result.plan.configuration.runtime),
        spelled("adjustment", result.plan.configuration.adjustment),
        run_time.mean_absolute_error,
        run_time.log_score,
        run_time.crps,
        adjustment.mean_accuracy,
        adjustment.bad,
        f"{run_time.predictions:,} of {run_time.jobs:,}",
        is_worse(run_time.model_dump(), asked),
    )
