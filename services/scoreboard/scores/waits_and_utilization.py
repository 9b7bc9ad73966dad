"""Utilization of the machine, and running sums of the waits, responses and slowdowns of ended jobs."""

import math
from math import exp
from typing import Any

import numpy as np

from shadowtime.services.scoreboard.batch import Batched
from shadowtime.shared.bounds import MAX_TIME, restored, storable
from shadowtime.shared.kernels import Floats, IntegerTable, kernel
from shadowtime.shared.statistics import RUN_TIME_FLOOR

WAIT_FLOOR = 10
"""Least wait in the geometric mean, in seconds. It replaces shorter waits (Nissimov 2007, section 5)."""


SUBMIT, START, END, PROCESSORS, REQUESTED, RUN_TIME = range(6)
"""First columns of the row of an ended job. Times in seconds."""


@kernel
def add_jobs(jobs: IntegerTable, sums: Floats) -> None:
    """Add jobs, one after another, to `sums` in place. O(jobs). `sums` has the entries of `WaitScores.FLOATS`.

    Slowdowns follow `bounded_slowdown`, `unclamped_slowdown` and `slowdown`. Before its logarithm is taken, a wait is
    raised to `WAIT_FLOOR`. The priority is WFP's: (wait / requested time)³ · processors (Tang 2013, section 6.1).
    """
    for job in range(len(jobs)):
        wait = jobs[job, START] - jobs[job, SUBMIT]
        sums[0] += math.log(max(wait, WAIT_FLOOR))
        slowdown = (jobs[job, END] - jobs[job, SUBMIT]) / max(jobs[job, RUN_TIME], RUN_TIME_FLOOR)
        sums[1] += max(slowdown, 1.0)
        sums[2] += slowdown
        priority = math.pow(wait / jobs[job, REQUESTED], 3.0) * jobs[job, PROCESSORS]
        sums[3] += priority
        sums[4] += priority * wait
        sums[5] += (jobs[job, END] - jobs[job, SUBMIT]) / max(jobs[job, RUN_TIME], 1)
        sums[6] += float(wait) * float(wait)


class WaitScores(Batched):
    """Running sums over ended jobs; memory is constant. Whole numbers are summed exactly."""

    FLOATS = (
        "log_wait",
        "slowdown",
        "slowdown_unclamped",
        "priority",
        "prioritised_wait",
        "slowdown_unbounded",
        "squared_wait",
    )

    def __init__(self) -> None:
        super().__init__()
        self.jobs = 0
        self.wait = 0
        self.log_wait = 0.0
        self.max_wait = 0
        self.zero_waits = 0
        self.response = 0
        self.slowdown = 0.0
        self.slowdown_unclamped = 0.0
        self.priority = 0.0
        self.prioritised_wait = 0.0
        self.slowdown_unbounded = 0.0
        self.squared_wait = 0.0
        self.processor_seconds = 0
        self.first_submit: int | None = None
        self.last_end = -MAX_TIME

    def add(
        self,
        submit_time: int,
        start_time: int,
        end_time: int,
        processors: int,
        requested_time: int,
        own_run_time: int,
        suspended: int = 0,
    ) -> None:
        """Add a job that has ended for good. Times in seconds.

        Slowdown is relative to the job's own run time, on the processors that it requested
        (docs/algorithms.md#own-run-time). The job held its processors from start to end, less the `suspended` seconds.
        """
        self._keep((submit_time, start_time, end_time, processors, requested_time, own_run_time, suspended))

    def _take_in(self, rows: list[tuple[Any, ...]]) -> None:
        jobs = np.array(rows, dtype=np.int64)
        sums = np.array([getattr(self, name) for name in self.FLOATS])
        add_jobs(jobs, sums)
        for name, total in zip(self.FLOATS, sums.tolist(), strict=True):
            setattr(self, name, total)
        waits = jobs[:, START] - jobs[:, SUBMIT]
        self.jobs += len(rows)
        self.wait += int(waits.sum())
        self.max_wait = max(self.max_wait, int(waits.max()))
        self.zero_waits += int(np.count_nonzero(waits == 0))
        self.response += int((jobs[:, END] - jobs[:, SUBMIT]).sum())
        self.processor_seconds += sum([row[3] * (row[2] - row[1] - row[6]) for row in rows])
        first_submit, last_end = int(jobs[:, SUBMIT].min()), int(jobs[:, END].max())
        if self.first_submit is not None:
            first_submit, last_end = min(first_submit, self.first_submit), max(last_end, self.last_end)
        self.first_submit, self.last_end = first_submit, last_end

    def summary(self, capacity: int) -> dict[str, Any]:
        """Return the fields of `PolicyScores` that follow from these sums.

        `capacity` is the number of processor-seconds that the machine had from the first submission to the last end.
        """
        self.fold()
        makespan = 0 if self.first_submit is None else self.last_end - self.first_submit
        jobs = self.jobs
        return {
            "jobs": jobs,
            "mean_wait": self.wait / jobs if jobs else None,
            "geometric_mean_wait": exp(self.log_wait / jobs) if jobs else None,
            "max_wait": self.max_wait if jobs else None,
            "zero_wait_share": self.zero_waits / jobs if jobs else None,
            "mean_bounded_slowdown": self.slowdown / jobs if jobs else None,
            "mean_bounded_slowdown_unclamped": self.slowdown_unclamped / jobs if jobs else None,
            "mean_slowdown": self.slowdown_unbounded / jobs if jobs else None,
            "mean_response": self.response / jobs if jobs else None,
            "weighted_mean_wait": self.prioritised_wait / self.priority if self.priority else None,
            "wait_weighted_mean_wait": self.squared_wait / self.wait if self.wait else None,
            "utilization": self.processor_seconds / capacity if jobs and capacity else None,
            "makespan": makespan,
        }

    def snapshot(self) -> dict[str, Any]:
        """Return the sums."""
        return storable(self._sums())

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        vars(self).update(restored(state))
