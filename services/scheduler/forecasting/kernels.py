"""Compiled forward simulation of a backfilling policy, pass by pass until a job starts. Only processors count."""

import numpy as np

from shadowtime.services.scheduler.kernels import reserve_pass
from shadowtime.services.scheduler.tables import RunningJobs, expected_ends
from shadowtime.services.scheduler.work_limits import AHEAD
from shadowtime.shared.kernels import BEYOND, Integers, IntegerTable, easy_pass, kernel

SIZE, PREDICTED, ADJUSTED, REQUESTED, START, END = range(6)
"""Rows of the table of running jobs: processors, the inputs of `expected_ends`, and the forecast end."""

RUN_TIME, PLANNED, ORDER, ROW = range(START, START + 4)
"""Rows of the table of waiting jobs: the first four as above, then forecast run time, planned time as a candidate, rank
as a candidate, and row in the queue."""

TOO_FAR = -1 << 60
"""Stands for an unknown start: the forecast would exceed its limit of steps."""

SEARCHING, PASSING = 4, 40
"""Steps counted for each job: at each instant of the simulation, and in each pass of EASY, which sorts."""


@kernel
def run_until_start(
    now: int,
    free: int,
    target: int,
    waiting: IntegerTable,
    waits: int,
    running: IntegerTable,
    runs: int,
    corrections: Integers,
    reserve: bool,
    most: int,
) -> tuple[int, int, int, int, int]:
    """Run ahead to the pass at which the waiting job `target` starts, if no other job arrives.

    There is a pass now and at each end. Passes use the planned times of jobs, but jobs run for their forecast times.
    O(passes * cost of a pass); there are at most as many passes as jobs that run or start.

    Parameters
    ----------
    now, free, target
        The time in seconds, the idle processors, and the row of the job in the queue.
    waiting, waits
        Table of `waits` waiting jobs, in order of the queue: processors, the three planned times once the job runs,
        forecast run time, planned time as a candidate, rank as a candidate, row. Changed in place.
    running, runs
        Table of `runs` running jobs: processors, their three planned times, start, forecast end, which is after now.
        The table has space for all waiting jobs. Changed in place.
    corrections
        As in `RunningJobs`.
    reserve
        Whether every job gets a reservation (`all-reserve`), or only the head (`easy`).
    most
        Maximum number of steps.

    Returns
    -------
    start, free, waits, runs, first
        Start of the job in seconds: `BEYOND` if it never starts, `TOO_FAR` if finding it takes more than `most` steps.
        Free processors and numbers of waiting and running jobs after that pass. First start of any job.
    """
    first, work = BEYOND, 0
    while True:
        work += SEARCHING * (waits + runs)
        if work > most:
            return TOO_FAR, free, waits, runs, first

        # 1. Decide by one pass, if any job fits.
        fits = False
        for job in range(waits):
            if waiting[SIZE][job] <= free:
                fits = True
                break

        is_found = False
        if fits:
            sizes, planned = waiting[SIZE][:waits].copy().reshape(-1, 1), waiting[PLANNED][:waits]
            idle = np.full(1, free)
            held = RunningJobs(
                running[SIZE][:runs].copy().reshape(-1, 1),
                running[START][:runs],
                running[PREDICTED][:runs],
                running[ADJUSTED][:runs],
                running[REQUESTED][:runs],
                corrections,
            )
            if reserve:
                heads = 0
                rows, turns, steps = reserve_pass(now, idle, sizes, planned, held, most - work)
                work += steps
                if turns < waits:
                    return TOO_FAR, free, waits, runs, first
            else:
                work += PASSING * (waits + runs)
                order = waiting[ORDER][:waits]
                ends = expected_ends(now, held)
                heads, _, _, rows = easy_pass(now, idle, sizes, planned, order, held.sizes, ends)

            # 2. Start what the pass chose.
            if heads + len(rows) > 0:
                stays = np.ones(waits, dtype=np.bool_)
                stays[:heads] = False
                stays[rows] = False
                for job in range(waits):
                    if not stays[job]:
                        is_found = is_found or waiting[ROW, job] == target
                        first = min(first, now)
                        free -= waiting[SIZE, job]
                        running[:START, runs] = waiting[:START, job]
                        running[START, runs] = now
                        running[END, runs] = now + waiting[RUN_TIME, job]
                        runs += 1

                for column in waiting:
                    left = 0
                    for job in range(waits):
                        if stays[job]:
                            column[left] = column[job]
                            left += 1

                waits -= heads + len(rows)

        # 3. Stop once the target has started, or can never start.
        if is_found:
            return now, free, waits, runs, first
        if runs == 0:
            return BEYOND, free, waits, runs, first

        # 4. Go on to the next end.
        now = running[END][:runs].min()
        for job in range(runs - 1, -1, -1):
            if running[END, job] == now:
                free += running[SIZE, job]
                runs -= 1
                running[:, job] = running[:, runs]  # running jobs are in no order


class ProjectedQueue:
    """Queue and running jobs at the time up to which the policy has been run ahead.

    Parameters
    ----------
    now, free
        The time in seconds, and the processors that are free.
    waiting, running, corrections, reserve
        As for `run_until_start`; `running` has exactly the space for all waiting jobs.
    """

    def __init__(
        self, now: int, free: int, waiting: IntegerTable, running: IntegerTable, corrections: Integers, *, reserve: bool
    ) -> None:
        self.now, self.free = now, free
        self.waits = waiting.shape[1]
        self.runs = running.shape[1] - self.waits
        self.waiting, self.running = waiting, running
        self.corrections, self.reserve = corrections, reserve
        self.first = BEYOND
        """First start of any waiting job, in seconds."""

    def add(self, job: Integers) -> None:
        """Append a waiting job to the queue."""
        if self.waits == self.waiting.shape[1]:
            self.waiting = np.concatenate((self.waiting, np.empty((len(job), self.waits + 1), dtype=np.int64)), axis=1)
        self.waiting[:, self.waits] = job
        self.waits += 1
        if self.runs + self.waits > self.running.shape[1]:
            self.running = np.concatenate((self.running, np.empty_like(self.running)), axis=1)

    def start_of(self, row: int) -> int:
        """Run ahead until the job with this row starts. Return its start, as `run_until_start` does."""
        self.now, self.free, self.waits, self.runs, first = run_until_start(
            self.now,
            self.free,
            row,
            self.waiting,
            self.waits,
            self.running,
            self.runs,
            self.corrections,
            self.reserve,
            AHEAD,
        )
        self.first = min(self.first, first)
        return self.now
