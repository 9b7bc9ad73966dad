"""A bare replay in Python, without a scheduler or a message: what this machine takes for objects, dicts and a heap."""

import time
from heapq import heappop, heappush

from shadowtime.replayer.logs.workload import Workload
from shadowtime.shared.cluster.job import Job

REPEATED = 10


class _Run:
    """A job that runs."""

    def __init__(self, job: Job, began: int) -> None:
        self.job = job
        self.began = began
        self.ends = began + max(job.run_time, 1)


def bare_seconds(workload: Workload) -> float:
    """Return the least cpu seconds of several in which every job starts as it is submitted, and ends.

    It is to a replay what a fixed loop is to a machine: memory is a part of both, as it is not of multiplications.
    """
    jobs = list(workload.jobs_from(0))
    return min(_once(jobs) for _ in range(REPEATED))


def _once(jobs: list[Job]) -> float:
    began = time.process_time()
    running: dict[int, _Run] = {}
    told: dict[int, tuple[int, int]] = {}
    ends: list[tuple[int, int]] = []
    for job in jobs:
        while ends and ends[0][0] <= job.submit_time:
            over = running.pop(heappop(ends)[1])
            told[over.job.job_number] = over.began, over.ends
        run = running[job.job_number] = _Run(job, job.submit_time)
        heappush(ends, (run.ends, job.job_number))
    return time.process_time() - began
