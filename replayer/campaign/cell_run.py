"""One cell, carried out: in a process of the pool, or in a worker on another machine."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from shadowtime.dashboards.report.statistics import by_user
from shadowtime.replayer.campaign.delays import Delays
from shadowtime.replayer.campaign.grid import Cell
from shadowtime.replayer.campaign.logs import workload_of
from shadowtime.replayer.campaign.perturbed import perturbed
from shadowtime.replayer.comparison import Plan, Result, carry_out
from shadowtime.replayer.comparison_json import wait_bound_rows
from shadowtime.replayer.run_record import JobTimes, RunRecord
from shadowtime.shared.errors import ReplayError, ShadowtimeError
from shadowtime.shared.scores import TENTHS

Figures = dict[str, Any]


class Outcome(NamedTuple):
    """What came of a cell: its row, and when its jobs ran if that is kept."""

    row: Figures
    jobs: JobTimes | None


def carry_out_cell(cell: Cell) -> Outcome:
    """Replay a cell, and return what came of it.

    Raises
    ------
    ShadowtimeError
        If its log is missing there, or another, or so is what replays it, or the replay cannot go on; names the cell.
    """
    try:
        if not cell.is_the_same_here:
            raise ReplayError("this worker has another version of Shadowtime, or of a plug-in, than the campaign")
        workload = perturbed(workload_of(cell.log), cell.copy)
        chosen, log = cell.configuration, cell.log
        plan = Plan(
            cell.label, log.cluster, workload, chosen, cell.mode, cell.wait_bound, cell.seed, traits=cell.traits
        )
        record, delays = RunRecord(plan), Delays(workload)
        result = carry_out(plan, [record, delays])
    except ShadowtimeError as error:
        raise type(error)(f"{cell.name}: {error}") from None
    row = {
        "log_sha256": log.sha256,
        "cluster": log.cluster,
        "processors": workload.processors,
        **chosen._asdict(),
        "wait_bound": cell.wait_bound,
        "mode": cell.mode,
        "seed": cell.seed,
        "copy": cell.copy,
        "decisions_sha256": record.decisions_sha256,
        **dict(figures(result)),
        **delays.figures(),
        "users.longest_mean_wait": max(by_user(record.jobs.wait, record.jobs.user_id), default=None),
        "elapsed_seconds": result.elapsed_seconds,
        "cpu_seconds": result.cpu_seconds,
        "cpu_milliseconds_per_job": 1000 * result.cpu_seconds / max(len(workload), 1),
    }
    return Outcome(row, record.jobs if cell.keeps_jobs else None)


def figures(result: Result) -> Iterator[tuple[str, float | int | None]]:
    """Yield the scores of a replay by key: `mean_wait`, `run_time.crps`, `wait_bounds.all.plain.coverage`."""
    scores = result.scores
    yield from scores.policy.model_dump().items()
    run_time = scores.run_time.model_dump(exclude={"pit"})
    mean, error = run_time["mean_run_time"], run_time["mean_absolute_error"]
    run_time["error_share"] = error / mean if mean and error is not None else None
    run_time["pit_distance"] = max((abs(share - 1 / TENTHS) for share in scores.run_time.pit), default=None)
    parts: dict[str, Figures] = {"run_time": run_time, "adjustment": scores.adjustment.model_dump()}
    if scores.wait_forecast is not None:
        parts["wait_forecast"] = scores.wait_forecast.model_dump()
    if scores.calibration is not None:
        for name, table in scores.calibration.model_dump(exclude={"open_candidates"}, exclude_none=True).items():
            parts[f"calibration.{name}"] = {key: value for key, value in table.items() if key != "bins"}
    rows = wait_bound_rows(result)
    for row in rows:
        other = "" if row["quantile"] == rows[0]["quantile"] else f" {row['quantile']:g}"
        told = ("coverage", "over_rms", "ratio_to_plain", "predictions", "without", "windows", "windows_within")
        parts[f"wait_bounds.{row['queue']}.{row['grouping']}{other}"] = {key: row[key] for key in told}
    for part, found in parts.items():
        yield from ((f"{part}.{key}", value) for key, value in found.items())
