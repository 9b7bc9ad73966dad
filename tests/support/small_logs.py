"""Small logs for tests: a few jobs by hand, or generated."""

from pathlib import Path

import numpy as np

from shadowtime.replayer.comparison.plan import RunPlan
from shadowtime.replayer.logs.swf import FIELDS, write_swf
from shadowtime.replayer.logs.trace import Trace
from shadowtime.replayer.logs.workload import Workload, prepare
from shadowtime.replayer.options import Requests
from shadowtime.replayer.synthetic.generator import generate
from shadowtime.services.catalogue import configure


def job(
    job_number: int,
    submit_time: int = 0,
    *,
    processors: int = 1,
    run_time: int = 60,
    requested_time: int = 100,
    wait_time: int = -1,
    user_id: int = 1,
    status: int = 1,
    queue_number: int = -1,
) -> dict[str, int]:
    """Return the fields of an ordinary job, by name."""
    return dict.fromkeys(FIELDS, -1) | {
        "job_number": job_number,
        "submit_time": submit_time,
        "wait_time": wait_time,
        "run_time": run_time,
        "requested_processors": processors,
        "requested_time": requested_time,
        "status": status,
        "user_id": user_id,
        "queue_number": queue_number,
    }


def trace_of(*jobs: dict[str, int], processors: int = 4, name: str = "small") -> Trace:
    """Return a log of these jobs, in order of submit time and job number as a log is read."""
    in_order = sorted(jobs, key=lambda each: (each["submit_time"], each["job_number"]))
    table = np.array([[each[field] for field in FIELDS] for each in in_order], dtype=np.int64)
    return Trace(name, {"MaxProcs": str(processors)}, table)


def workload_of(*jobs: dict[str, int], processors: int = 4, requests: Requests = "as-logged") -> Workload:
    """Return what a replay uses of these jobs."""
    return prepare(trace_of(*jobs, processors=processors), requests=requests)


def generated(jobs: int = 60, processors: int = 16, seed: int = 1, load: float = 4.0) -> Workload:
    """Return a generated workload, under so much load that jobs wait."""
    return prepare(Trace("generated", *generate(jobs, processors, seed, load)))


def plan_of(workload: Workload, policy: str = "easy", runtime: str = "requested", seed: int = 0) -> RunPlan:
    """Return a closed run."""
    return RunPlan(policy, workload.name, workload, configure(policy, runtime), seed=seed)


def write_log(folder: Path, *jobs: dict[str, int], processors: int = 4, name: str = "small.swf") -> Path:
    """Write a log of these jobs and return its path."""
    trace = trace_of(*jobs, processors=processors)
    write_swf(folder / name, trace.header, trace.table)
    return folder / name
