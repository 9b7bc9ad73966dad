"""The replay of one cell, in a process of the pool or in a worker on another machine."""

from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from shadowtime.replayer.campaign.grid import Cell
from shadowtime.replayer.campaign.logs import month_of, queue_names, workload_of
from shadowtime.replayer.comparison import (
    JobTimes,
    RunPlan,
    RunRecord,
    RunResult,
    carry_out,
    replay_schedule,
    wait_bound_rows,
)
from shadowtime.replayer.logs import SHAPES, Workload, columns_of_workload, described, perturbed
from shadowtime.replayer.report import by_user, tail_mean
from shadowtime.shared.errors import ReplayError, ShadowtimeError
from shadowtime.shared.messages import (
    TENTHS,
    Decided,
    Envelope,
    JobEnded,
    JobStarted,
    JobSubmitted,
    JobWithdrawn,
    Reserved,
    moment,
)

# Slowdown by job shape, and guaranteed delay against actual delay (Perković 2000).

SHARES = (15, 50, 85)
"""Percentiles of the ratio of guaranteed to actual delay."""


class Delays:
    """An observer that records each job's slowdown, and its guaranteed delay relative to its actual delay.

    Parameters
    ----------
    workload
        The jobs. Their median requested time and processors divide the shapes (Perković 2000, Table 2).
    """

    def __init__(self, workload: Workload) -> None:
        columns = workload.columns
        self._medians = float(np.median(columns["requested_time"])), float(np.median(columns["processors"]))
        self._open: dict[int, JobSubmitted] = {}
        self._started: dict[int, int] = {}
        self._guaranteed: dict[int, int] = {}
        self._slowdowns = {shape: array("d") for shape in SHAPES}
        self._ratios = array("d")

    def __call__(self, envelope: Envelope) -> None:
        """Record the event of an envelope."""
        event = envelope.event
        if isinstance(event, JobSubmitted):
            self._open[event.job_number] = event
        elif isinstance(event, JobWithdrawn):
            del self._open[event.job_number]
        elif isinstance(event, JobStarted):
            self._started[event.job_number] = moment(event)
        elif isinstance(event, Decided):
            for start in event.starts:
                if isinstance(start.reason, Reserved) and start.reason.guaranteed_start is not None:
                    self._guaranteed[start.job_number] = start.reason.guaranteed_start
        elif isinstance(event, JobEnded) and not event.requeued:
            self._ended(event)

    def _ended(self, event: JobEnded) -> None:
        job, started = self._open.pop(event.job_number), self._started.pop(event.job_number)
        guaranteed = self._guaranteed.pop(event.job_number, None)
        times, sizes = self._medians
        short = job.requested_time is not None and job.requested_time <= times
        shape = ("S" if short else "L") + ("N" if job.requested_processors <= sizes else "W")
        self._slowdowns[shape].append((moment(event) - job.since) / max(event.own_run_time, 10))
        if guaranteed is not None and started > job.since:
            self._ratios.append((guaranteed - job.since) / (started - job.since))

    def figures(self) -> dict[str, float | None]:
        """Return by key the mean slowdown and the jobs of each shape, and the ratios of guaranteed to actual delay.

        Slowdowns count a run time as at least 10 s, and may be below 1. Ratios of jobs that waited have a mean and the
        percentiles of `SHARES`. A mean or percentile without jobs is None.
        """
        values: dict[str, float | None] = {}
        for shape, slowdowns in self._slowdowns.items():
            values[f"slowdown.{shape}"] = float(np.mean(slowdowns)) if slowdowns else None
            values[f"jobs_of_shape.{shape}"] = len(slowdowns)
        ratios = self._ratios
        values["guaranteed_to_actual.mean"] = float(np.mean(ratios)) if ratios else None
        for share in SHARES:
            values[f"guaranteed_to_actual.{share}"] = float(np.quantile(ratios, share / 100)) if ratios else None
        return values


# The jobs of a log, and the ratios of run time to request in groups of similar jobs (Tang 2013, Tables 1 and 2).

SIMILAR: dict[str, tuple[str, ...]] = {
    "all": (),
    "project": ("group_id",),
    "user": ("user_id",),
    "user+project": ("user_id", "group_id"),
    "user+project+request": ("user_id", "group_id", "requested_time"),
}
"""Columns with equal values in a group of similar jobs, by the name of the grouping."""

LEAST_OF_GROUP = 10
"""Fewest jobs of a group that counts (Tang 2013, section 4.1)."""


def workload_figures(workload: Workload) -> Iterator[tuple[str, float | int | None]]:
    """Yield the keys and values of figures of the jobs that ran, as logged. Times are in seconds.

    `workload.ratio` is of R, the share of its request that a job ran, at most 1. `workload.groups.KEY` counts the
    groups of at least `LEAST_OF_GROUP` similar jobs. `workload.ratio_std.KEY` is the mean of the standard deviations of
    R in these groups; None without a group.
    """
    ran = workload.columns["run_time"] >= 0
    columns = {name: column[ran] for name, column in workload.columns.items()}
    for name, column in (("users", "user_id"), ("projects", "group_id")):
        yield f"workload.{name}", len(np.unique(columns[column][columns[column] >= 0])) or None
    yield "workload.mean_run_time", float(columns["run_time"].mean())
    yield "workload.mean_requested_time", float(columns["requested_time"].mean())
    ratio = np.minimum(columns["run_time"] / columns["requested_time"], 1.0)
    yield "workload.ratio.mean", float(ratio.mean())
    yield "workload.ratio.median", float(np.median(ratio))
    yield "workload.ratio.above_0.8", float((ratio > 0.8).mean())
    yield "workload.ratio.below_0.2", float((ratio < 0.2).mean())
    for key, names in SIMILAR.items():
        rows = np.stack([np.zeros(len(ratio), dtype=np.int64), *(columns[name] for name in names)])
        _, group, count = np.unique(rows, axis=1, return_inverse=True, return_counts=True)
        group = group.ravel()
        means = np.bincount(group, ratio) / count
        variances = np.bincount(group, (ratio - means[group]) ** 2) / count
        large = count >= LEAST_OF_GROUP
        yield f"workload.groups.{key}", int(large.sum())
        yield f"workload.ratio_std.{key}", float(np.sqrt(variances[large]).mean()) if large.any() else None


Figures = dict[str, Any]


class CellResult(NamedTuple):
    """The result of a cell: its row, and the times of its jobs if the cell keeps jobs."""

    row: Figures
    jobs: JobTimes | None


def carry_out_cell(cell: Cell) -> CellResult:
    """Replay a cell and return its result.

    Raise `ShadowtimeError` if the log is missing or differs from the campaign's log, if this machine has another
    version of Shadowtime or of a plug-in, or if the replay fails. The error names the cell.
    """
    try:
        if not cell.is_the_same_here:
            raise ReplayError(
                "this worker has another version of Shadowtime, or of a plug-in, than the campaign; "
                "install the same versions"
            )
        workload = perturbed(month_of(workload_of(cell.log), cell.month), cell.copy)
        chosen, log = cell.configuration, cell.log
        plan = RunPlan(
            cell.label, log.cluster, workload, chosen, cell.mode, cell.wait_bound, cell.seed, traits=cell.traits
        )
        own, result, record = _schedule_only(plan) if cell.compiled else _whole(cell, plan)
    except ShadowtimeError as error:
        raise type(error)(f"{cell.name}: {error}") from None

    row = {**_inputs(cell, plan), **own, **_outcomes(result, record.jobs)}
    return CellResult(row, record.jobs if cell.keeps_jobs else None)


def _whole(cell: Cell, plan: RunPlan) -> tuple[Figures, RunResult, RunRecord]:
    """Return the figures of a run and of its events, and its result and record."""
    record, delays = RunRecord(plan), Delays(plan.workload)
    result = carry_out(plan, [record, delays])
    of_events = {
        "decisions_sha256": record.decisions_sha256,
        **dict(figures(result, queue_names(Path(cell.log.path)))),
        **delays.figures(),
        **dict(workload_figures(plan.workload)),
        **{f"log.{name}": value for name, value in described(columns_of_workload(plan.workload)).items()},
    }
    return of_events, result, record


def _schedule_only(plan: RunPlan) -> tuple[Figures, RunResult, RunRecord]:
    """Return the same as `_whole`, but no figures of events. The compiled machine replays the run if possible."""
    result, record = replay_schedule(plan)
    return {"schedule_sha256": record.jobs.sha256, **dict(figures(result, {}))}, result, record


def _inputs(cell: Cell, plan: RunPlan) -> Figures:
    return {
        "log_sha256": cell.log.sha256,
        "cluster": cell.log.cluster,
        "processors": plan.workload.processors,
        **cell.configuration._asdict(),
        "wait_bound": cell.wait_bound,
        "mode": cell.mode,
        "seed": cell.seed,
        "copy": cell.copy,
        "month": cell.month,
    }


def _outcomes(result: RunResult, jobs: JobTimes) -> Figures:
    count = max(len(result.plan.workload), 1)
    return {
        "tail_mean_wait": tail_mean(jobs.wait),
        "users.longest_mean_wait": max(by_user(jobs.wait, jobs.user_id), default=None),
        "elapsed_seconds": result.elapsed_seconds,
        "cpu_seconds": result.cpu_seconds,
        "cpu_milliseconds_per_job": 1000 * result.cpu_seconds / count,
        "wait_bound_milliseconds_per_job": 1000 * (result.wait_bound_seconds or 0.0) / count,
    }


def figures(result: RunResult, queues: Mapping[int, str]) -> Iterator[tuple[str, float | int | None]]:
    """Yield the scores of a replay by key: `mean_wait`, `run_time.crps`, `wait_bounds.all.plain.coverage` and so on.

    `queues` has the names of queues by number. In the keys, these names replace the numbers.
    """
    scores = result.scores
    yield from scores.policy.model_dump().items()
    run_time = scores.run_time.model_dump(exclude={"pit"})
    mean, error = run_time["mean_run_time"], run_time["mean_absolute_error"]
    run_time["error_share"] = error / mean if mean and error is not None else None
    run_time["pit_distance"] = max((abs(share - 1 / TENTHS) for share in scores.run_time.pit), default=None)
    parts: dict[str, Figures] = {"run_time": run_time, "adjustment": scores.adjustment.model_dump()}
    if scores.wait_forecast is not None:
        parts["wait_forecast"] = scores.wait_forecast.model_dump()
    if scores.prediction_workload is not None:
        for name, errors in scores.prediction_workload.model_dump().items():
            parts[f"prediction_workload.{name}"] = errors
    if scores.calibration is not None:
        for name, table in scores.calibration.model_dump(exclude={"open_candidates"}, exclude_none=True).items():
            parts[f"calibration.{name}"] = {key: value for key, value in table.items() if key != "bins"}
    rows = wait_bound_rows(result)
    for row in rows:
        other = "" if row["quantile"] == rows[0]["quantile"] else f" {row['quantile']:g}"
        names = ("coverage", "over_rms", "ratio_to_plain", "predictions", "without", "windows", "windows_within")
        queue = queues.get(row["queue"], row["queue"])
        parts[f"wait_bounds.{queue}.{row['grouping']}{other}"] = {key: row[key] for key in names}

    for part, part_scores in parts.items():
        yield from ((f"{part}.{key}", value) for key, value in part_scores.items())
