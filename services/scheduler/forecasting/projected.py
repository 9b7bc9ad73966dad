"""Tables of waiting and running jobs from which a backfilling policy is run ahead."""

from typing import NamedTuple

import numpy as np

from shadowtime.services.scheduler.forecasting.forecaster import forecast_ends
from shadowtime.services.scheduler.forecasting.kernels import END, ORDER, ROW
from shadowtime.services.scheduler.tables import (
    REQUESTED,
    SIZE,
    START,
    RunningTable,
    WaitingTable,
    columns_of,
    expected_ends,
)
from shadowtime.shared.kernels import BEYOND, Integers, IntegerTable, kernel


class ProjectedTables(NamedTuple):
    """Tables of the jobs in the system, as `run_until_start` takes them.

    `waiting` has shape (8, waiting jobs). `running` has shape (6, running jobs + waiting jobs): there is space for jobs
    that start. `ends` has the forecast and the expected ends of the running jobs, shape (2, running jobs). `soonest` is
    the first forecast end, or `BEYOND`. Times are in seconds.
    """

    waiting: IntegerTable
    running: IntegerTable
    ends: IntegerTable
    soonest: int


@kernel
def projected(
    now: int, queue: WaitingTable, held: RunningTable, order: Integers, on_requests: bool
) -> tuple[IntegerTable, IntegerTable, IntegerTable, int]:
    """Return the fields of `ProjectedTables`. O(jobs).

    Parameters
    ----------
    now
        The time in seconds.
    queue, held
        Tables of waiting and running jobs, whose planned times are predictions.
    order
        Rank of each waiting job as a candidate.
    on_requests
        Whether the policy plans with requests instead of predictions.
    """
    waits, runs = queue.jobs, held.jobs
    candidate = REQUESTED if on_requests else queue.planned
    running_as = REQUESTED if on_requests else held.planned

    waiting = np.empty((ROW + 1, waits), dtype=np.int64)
    for row, column in enumerate((SIZE, running_as, held.adjusted, REQUESTED, queue.planned, candidate)):
        waiting[row] = queue.table[column, :waits]
    for job in range(waits):
        waiting[ORDER, job], waiting[ROW, job] = order[job], job

    planned = columns_of(RunningTable(held.table, runs, running_as, held.adjusted, held.corrections))
    ends = np.empty((2, runs), dtype=np.int64)
    ends[0], ends[1] = forecast_ends(now, held), expected_ends(now, planned)
    running = np.empty((END + 1, runs + waits), dtype=np.int64)
    for row, column in enumerate((SIZE, running_as, held.adjusted, REQUESTED, START)):
        running[row, :runs] = held.table[column, :runs]
    running[END, :runs] = ends[0]

    soonest = BEYOND
    for end in ends[0]:
        soonest = min(soonest, end)
    return waiting, running, ends, soonest
