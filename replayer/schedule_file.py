"""When each job ran, as a file: comma-separated values, Parquet, or a log that can be replayed."""

from pathlib import Path
from typing import BinaryIO

import numpy as np

from shadowtime.replayer.comparison import Plan
from shadowtime.replayer.frame_files import write_columns
from shadowtime.replayer.records import Schedule
from shadowtime.replayer.swf_text import table_of, write_jobs
from shadowtime.services.catalogue import spelled_out
from shadowtime.shared.arrays import Integers


def write_schedule(file: BinaryIO, path: Path, plan: Plan, schedule: Schedule) -> None:
    """Write when the jobs of a run ran, in the format that the name of the file asks for."""
    ran = schedule.table()
    if path.name.endswith((".swf", ".swf.gz")):
        write_jobs(file, _header(plan, len(ran)), _table(plan, ran), compressed=path.name.endswith(".gz"))
    elif path.name.endswith(".parquet"):
        write_columns(file, path, dict(zip(Schedule.HEADER.decode().strip().split(","), ran.T, strict=True)))
    else:
        schedule.write(file)


def _header(plan: Plan, jobs: int) -> dict[str, str]:
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


def _table(plan: Plan, ran: Integers) -> Integers:
    """Return the jobs that have ended as (n, 18), columns as in `replayer.swf.FIELDS`, in order of submission.

    A job that was run again, or on another size, appears once, as it last ran.
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
