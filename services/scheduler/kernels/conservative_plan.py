"""The plan of conservative backfilling: a reservation for every waiting job, carried from pass to pass."""

from typing import NamedTuple

import numpy as np

from shadowtime.services.scheduler.kernels.profile import EACH_STEP, FOREVER, begin, earliest, fits, merged, take
from shadowtime.services.scheduler.tables import RunningJobs, expected_ends
from shadowtime.shared.kernels import IntegerCube, Integers, IntegerTable, kernel

UNPLANNED = -1

NUMBER, SUBMIT, STARTS, FIRST, SHAPE = range(5)
"""Columns of the reservations: job number, submit time, planned start, start by the first plan, and index of the
planned shape."""

COLUMNS = SHAPE + 1


@kernel
def carried(reservations: IntegerTable, job_numbers: Integers, submit_times: Integers) -> IntegerTable:
    """Return the reservations of the jobs that wait now. New jobs are `UNPLANNED`. O(jobs before and now).

    Both the old and the new jobs are in order of (submit time, job number).

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
    """Write a plan into the reservations. Return the jobs that start now, the other planned jobs, and a total need.

    The other planned jobs start later, or never fit. Both are indices of columns of `reservations`, in the given order.
    The need is the total amount of each resource for the jobs that start now. `starts` and `shapes` are results of
    `plan`, `sizes` is its argument. O(jobs).

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
    """The result of `plan`, whose docstring describes the fields."""

    starts: Integers
    shapes: Integers
    times: Integers
    free: IntegerTable
    steps: int
    left: int


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
    """Plan every waiting job. O(shapes * jobs * (jobs + running jobs)), but at most some multiple of `most` steps.

    A job takes the shape in which it ends first; if two shapes end at the same time, the first shape. Promised starts
    are checked first, in order of time, and kept if possible. A promise may fail because a running job has outlived its
    expected run time, or because the machine has shrunk. Its job is then planned anew. With `compress`, each job then
    moves, in the given order, to the start and shape with which it ends first, but never to a later start. Finally,
    jobs without a start are planned, in the same order.

    Parameters
    ----------
    now, idle
        The time in seconds, and the free amount of each resource.
    running_sizes, running_ends
        The amounts that each running job holds, shape (jobs, resources), and its expected end in seconds.
    sizes, run_times
        Sizes of each waiting job in each shape, shape (shapes, jobs, resources), and its run times in seconds, shape
        (shapes, jobs). A size of 0 processors means that the job does not have this shape.
    promised, promised_shapes
        Promised starts in seconds, and their shapes. The start of a job without a promise is `UNPLANNED`.
    order
        Waiting jobs, first to last. Jobs that are left out keep their promises and do not move.
    keep
        Whether promises are kept at all. If not, planning stops once no idle processor is left, since the plan does not
        outlast the pass.
    most
        Limit of the work, in steps over the profile.

    Returns
    -------
    starts, shapes
        Planned start of each waiting job in seconds, and its planned shape. The start is `FOREVER` if the job never
        fits, and `UNPLANNED` if it was not planned.
    times, free, steps
        The profile after the plan, with space to take out and put back each waiting job twice more.
    left
        Number of promises not checked, jobs not moved and jobs not planned, because the limit of work was reached.
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


# One pass over arrays in which every job that cannot start gets a reservation.


@kernel
def reserve_pass(
    now: int,
    free: Integers,
    sizes: IntegerTable,
    run_times: Integers,
    running: RunningJobs,
    most: int,
) -> tuple[Integers, int, int]:
    """Return the rows that start, in order of the queue, the number of jobs handled, and the steps taken.

    O(queue * (queue + running)), but planning stops after `most` steps over the profile.

    Each job in turn gets the earliest time at which it fits beside the jobs before it. It starts if that time is now.
    Once no remaining job fits into the idle processors, nothing more is reserved, since reservations do not outlast the
    pass.

    Parameters
    ----------
    free
        Free amount of each resource.
    sizes, run_times
        Size and expected run time in seconds of each waiting job, in order of the queue.
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
        work += EACH_STEP * steps
        at = earliest(times, left, steps, sizes[job], run_times[job], FOREVER)
        if at < FOREVER:
            steps = take(times, left, steps, at, at + run_times[job], sizes[job])
        if at == now:
            rows[starting] = job
            starting += 1
            idle -= sizes[job, 0]

    return rows[:starting], planned, work
