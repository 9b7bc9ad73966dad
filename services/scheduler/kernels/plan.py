"""The plan of conservative backfilling: a place for every waiting job, carried from pass to pass."""

from typing import NamedTuple

import numpy as np

from shadowtime.services.scheduler.kernels.profile import FOREVER, begin, earliest, fits, merged, take
from shadowtime.services.scheduler.tables import RunningJobs, expected_ends
from shadowtime.shared.kernels import IntegerCube, Integers, IntegerTable, kernel

UNPLANNED = -1

NUMBER, SUBMIT, STARTS, FIRST, SHAPE = range(5)
"""Columns of the reservations: whose, and since when it waits; when it starts by the plan, and by the first plan;
which of its shapes is planned."""

COLUMNS = SHAPE + 1


@kernel
def carried(reservations: IntegerTable, job_numbers: Integers, submit_times: Integers) -> IntegerTable:
    """Return the reservations of the jobs that wait now, those of new jobs yet `UNPLANNED`. O(jobs before and now).

    Jobs are in order of (submit time, job number), then and now.

    >>> reservations = np.array([[1, 2], [0, 0], [90, 50], [90, 60], [0, 0]])
    >>> carried(reservations, np.array([2, 3]), np.array([0, 7]))[STARTS].tolist()
    [50, -1]
    """
    now = np.full((COLUMNS, len(job_numbers)), UNPLANNED)
    old = 0
    for job in range(len(job_numbers)):
        number, submit = job_numbers[job], submit_times[job]
        while old < reservations.shape[1] and (
            reservations[SUBMIT, old] < submit
            or (reservations[SUBMIT, old] == submit and reservations[NUMBER, old] < number)
        ):
            old += 1

        if old < reservations.shape[1] and reservations[SUBMIT, old] == submit and reservations[NUMBER, old] == number:
            now[:, job] = reservations[:, old]
        else:
            now[NUMBER, job], now[SUBMIT, job], now[SHAPE, job] = number, submit, 0

    return now


@kernel
def settled(
    now: int, reservations: IntegerTable, starts: Integers, shapes: Integers, order: Integers, sizes: IntegerCube
) -> tuple[Integers, Integers, Integers]:
    """Write a plan into the reservations of the waiting jobs; return which start now, which later, and what those hold.

    `starts`, `shapes` and `sizes` are those of `plan`; jobs come in the given order. O(jobs).

    >>> reservations = np.array([[1, 2], [0, 7], [-1, 50], [-1, 60], [0, 0]])
    >>> shapes, order, sizes = np.zeros(2, int), np.arange(2), np.array([[[4], [3]]])
    >>> now, later, held = settled(7, reservations, np.array([7, 40]), shapes, order, sizes)
    >>> now.tolist(), later.tolist(), held.tolist(), reservations[STARTS:].tolist()
    ([0], [1], [4], [[7, 40], [7, 60], [0, 0]])
    """
    now_rows, later_rows = np.empty_like(order), np.empty_like(order)
    held = np.zeros(sizes.shape[2], dtype=np.int64)
    starting = waiting = 0
    for job in order:
        start, shape = starts[job], shapes[job]
        reservations[STARTS, job], reservations[SHAPE, job] = start if start < FOREVER else UNPLANNED, shape
        if reservations[FIRST, job] == UNPLANNED and start < FOREVER:
            reservations[FIRST, job] = start
        if start == now:
            now_rows[starting] = job
            starting += 1
            held += sizes[shape, job]
        elif start > now:
            later_rows[waiting] = job
            waiting += 1

    return now_rows[:starting], later_rows[:waiting], held


class PlannedStarts(NamedTuple):
    """The result of `plan`."""

    starts: Integers
    shapes: Integers
    times: Integers
    free: IntegerTable
    steps: int
    left: int


EACH_STEP = 3
"""Cost of a place for each step of the profile: search, cut and use."""


@kernel
def plan(
    now: int,
    idle: Integers,
    running_sizes: IntegerTable,
    running_ends: Integers,
    sizes: IntegerCube,
    run_times: IntegerTable,
    promised: Integers,
    promised_shapes: Integers,
    order: Integers,
    compress: bool,
    keep: bool,
    most: int,
) -> tuple[Integers, Integers, Integers, IntegerTable, int, int]:
    """Plan every waiting job. O(shapes * jobs * (jobs + running jobs)), but for at most some multiple of `most` steps.

    Of its shapes a job takes the one in which it ends first; the earlier one of two alike. Jobs with a promise keep
    it, earliest first; one whose promise cannot be kept (a running job has outlived what was expected of it, or the
    machine has shrunk) is planned anew. With `compress` each then moves, in the given order, to a place that is no
    later and in which it ends earlier. At last those without a promise are planned, in the same order.

    Parameters
    ----------
    idle, running_sizes
        What is free of each resource, and what each running job holds of it, shape (jobs, resources).
    sizes, run_times
        Of each shape and waiting job what it takes of each resource, shape (shapes, jobs, resources), and for how long;
        no processors where a job has no such shape.
    promised, promised_shapes
        Planned starts in seconds, and in which shape; `UNPLANNED` for a job that has none.
    order
        Waiting jobs, first to last; those that are left out keep their promises and do not move.
    keep
        Whether promises are kept at all. If not, what cannot start now is not planned further once no processor that
        is free now is left: nothing of the plan outlasts the pass.

    Returns
    -------
    starts, shapes
        When each waiting job starts by the plan, in seconds; `UNPLANNED` or `FOREVER` where it does not; and how.
    times, free, steps
        The profile that the plan leaves, with room to take out and put in each waiting job twice more.
    left
        Jobs of which the promise was not looked at, that were not moved, or not planned.
    """
    alternatives, waiting, resources = sizes.shape
    times = np.empty(6 * waiting + len(running_ends) + 2, dtype=np.int64)
    free = np.empty((resources, len(times)), dtype=np.int64)
    steps = begin(times, free, now, idle, running_sizes, running_ends)
    starts, shapes = np.full(waiting, UNPLANNED), promised_shapes.copy()
    idle_left, work, left = idle[0], 0, 0

    # 1. Keep promises that can be kept, earliest first.
    if keep:
        for job in np.argsort(promised, kind="mergesort"):
            start, shape = promised[job], shapes[job]
            if start < now:
                continue
            if work > most:
                left += 1
                continue
            work += EACH_STEP * steps
            size, run_time = sizes[shape, job], run_times[shape, job]
            if fits(times, free, steps, size, start, start + run_time):
                starts[job] = start
                steps = take(times, free, steps, start, start + run_time, size)

    # 2. Move jobs, in order, to places where they end earlier and start no later.
    if compress and keep:
        moving = 0
        for job in order:
            start, shape = starts[job], shapes[job]
            if start == UNPLANNED or (start == now and alternatives == 1):
                continue
            if moving > most:
                left += 1
                continue
            moving += EACH_STEP * (2 + alternatives) * steps
            end = start + run_times[shape, job]
            steps = take(times, free, steps, start, end, -sizes[shape, job])
            for other in range(alternatives):
                if sizes[other, job, 0] > 0:
                    at = earliest(times, free, steps, sizes[other, job], run_times[other, job], starts[job] + 1)
                    if at <= starts[job] and at + run_times[other, job] < end:
                        start, shape, end = at, other, at + run_times[other, job]

            starts[job], shapes[job] = start, shape
            steps = take(times, free, steps, start, end, sizes[shape, job])
            steps = merged(times, free, steps)

    # 3. Plan the jobs without a place, in the same order.
    for job in order:
        if starts[job] != UNPLANNED:
            continue
        if not keep and idle_left <= 0:
            break
        if 2 * work > most:
            left += 1
            continue
        work += EACH_STEP * alternatives * steps
        start, shape, end = FOREVER, 0, 2 * FOREVER
        for other in range(alternatives):
            if sizes[other, job, 0] > 0:
                at = earliest(times, free, steps, sizes[other, job], run_times[other, job], FOREVER)
                if at + run_times[other, job] < end:
                    start, shape, end = at, other, at + run_times[other, job]

        starts[job], shapes[job] = start, shape
        if start < FOREVER:
            steps = take(times, free, steps, start, end, sizes[shape, job])
        if start == now:
            idle_left -= sizes[shape, job, 0]

    return starts, shapes, times, free, steps, left


# One pass over arrays in which every job that cannot start reserves its place.

STEPS = 3
"""Cost of a reservation for each step of the profile: search, cut and use."""


@kernel
def reserve_pass(
    now: int,
    free: Integers,
    sizes: IntegerTable,
    run_times: Integers,
    running: RunningJobs,
    most: int,
) -> tuple[Integers, int, int]:
    """Return the rows of the queue that start, in order of arrival; how many got their turn, and the steps it took.

    O(queue * (queue + running)), but no more is planned once it has taken `most` steps over the profile.

    Each job in turn gets the earliest time at which it fits beside those before it; those whose time has come start.
    Once none that is left is small enough for the processors that are free, no further place is reserved: it would
    outlast nothing.

    Parameters
    ----------
    free
        What is free of each resource.
    sizes, run_times
        Of each waiting job, in order of the queue: what it takes of each, and expected run time in seconds.
    """
    waiting, idle = len(sizes), free[0]
    smallest = np.empty(waiting + 1, dtype=np.int64)
    smallest[waiting] = FOREVER
    for job in range(waiting - 1, -1, -1):
        smallest[job] = min(sizes[job, 0], smallest[job + 1])
    rows = np.empty(waiting, dtype=np.int64)
    if smallest[0] > idle:
        return rows[:0], waiting, waiting
    ends = expected_ends(now, running)
    work = waiting + len(ends)
    times = np.empty(2 * waiting + len(ends) + 2, dtype=np.int64)
    left = np.empty((len(free), len(times)), dtype=np.int64)
    steps = begin(times, left, now, free, running.sizes, ends)
    starting, planned = 0, waiting
    for job in range(waiting):
        if smallest[job] > idle:
            break
        if work > most:
            planned = job
            break
        work += STEPS * steps
        at = earliest(times, left, steps, sizes[job], run_times[job], FOREVER)
        if at < FOREVER:
            steps = take(times, left, steps, at, at + run_times[job], sizes[job])
        if at == now:
            rows[starting] = job
            starting += 1
            idle -= sizes[job, 0]

    return rows[:starting], planned, work
