"""The scores of runs as a table, one row per cluster and policy or predictor, and schedules as files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from shadowtime.replayer.comparison.plan import RunPlan, RunResult
from shadowtime.replayer.comparison.records import Schedule
from shadowtime.replayer.logs import table_of, write_columns, write_jobs
from shadowtime.services.catalogue import spelled_out
from shadowtime.shared.kernels import Integers


def result_columns(results: Sequence[RunResult]) -> dict[str, list[Any]]:
    """Return the scores of runs as columns, by name. Times are in seconds, shares from 0 to 1, missing values None."""
    rows = [result_row(result) for result in results]
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def result_row(result: RunResult) -> dict[str, Any]:
    """Return the scores of a run as one row. Keys of prediction scores have a prefix, as in `run_time_crps`."""
    plan, scores = result.plan, result.scores
    predictions = {
        "run_time": scores.run_time.model_dump(exclude={"jobs", "pit"}),
        "adjustment": scores.adjustment.model_dump(),
        "wait_forecast": scores.wait_forecast.model_dump() if scores.wait_forecast else {},
    }
    return {
        "cluster": plan.cluster,
        "trace": plan.workload.name,
        "processors": plan.workload.processors,
        "mode": plan.mode,
        "seed": plan.seed,
        "policy": plan.label,
        "configuration": str(spelled_out(plan.configuration)),
        **scores.policy.model_dump(),
        **{f"{kind}_{name}": value for kind, of_kind in predictions.items() for name, value in of_kind.items()},
        "elapsed_seconds": result.elapsed_seconds,
        "cpu_seconds": result.cpu_seconds,
    }


# Schedules as files: comma-separated values, Parquet, or a log that can be replayed.


def write_schedule(file: BinaryIO, path: Path, plan: RunPlan, schedule: Schedule) -> None:
    """Write the schedule of a run to an open file, in the format of its name `path`.

    The format is a log for .swf and .swf.gz, Parquet for .parquet, and else comma-separated values.
    """
    ran = schedule.table()
    columns: dict[str, Sequence[Any]] = dict(zip(Schedule.HEADER.decode().strip().split(","), ran.T, strict=True))
    if ids := plan.workload.job_ids:
        columns["job_id"] = [ids.get(number, str(number)) for number in map(int, columns["job_number"])]
    if path.name.endswith((".swf", ".swf.gz")):
        write_jobs(file, _header(plan, len(ran)), _table(plan, ran), compressed=path.name.endswith(".gz"))
    elif ids or path.name.endswith(".parquet"):
        write_columns(file, path, columns)
    else:
        schedule.write(file)


def _header(plan: RunPlan, jobs: int) -> dict[str, str]:
    workload = plan.workload
    start = {} if workload.unix_start_time is None else {"UnixStartTime": str(workload.unix_start_time)}
    replayed = f"replayed under {spelled_out(plan.configuration)}" if plan.obeyed else "as recorded"
    return {
        "Version": "2.2",
        "Conversion": "Shadowtime",
        "MaxJobs": str(jobs),
        "MaxRecords": str(jobs),
        "Preemption": "No",
        **start,
        "MaxProcs": str(workload.processors),
        "Note": f"jobs of {workload.name}, {replayed}, seed {plan.seed}",
    }


def _table(plan: RunPlan, ran: Integers) -> Integers:
    """Return the ended jobs as (n, 18), columns as in `replayer.logs.swf.FIELDS`, in order of submission.

    A job that was restarted, or ran on another number of processors, appears once, with its last run.
    """
    columns = plan.workload.columns
    order = np.argsort(columns["job_number"])
    rows = order[np.searchsorted(columns["job_number"], ran[:, 0], sorter=order)]
    _, submit_time, start_time, end_time, processors, status = ran.T
    known = {name: column[rows] for name, column in {**columns, **plan.workload.unused}.items()} | {
        "wait_time": start_time - submit_time,
        "run_time": end_time - start_time,
        "allocated_processors": processors,
        "requested_processors": columns["processors"][rows],
        "status": status,
    }
    table = table_of(known)
    return table[np.lexsort((table[:, 0], table[:, 1]))]
