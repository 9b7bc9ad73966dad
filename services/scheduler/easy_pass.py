"""One pass of EASY backfilling over arrays: heads that fit, the shadow of the first that does not, candidates."""

import numpy as np

from shadowtime.services.scheduler.expected_end import RunningJobs, RunningTable, WaitingTable, expected_ends
from shadowtime.services.scheduler.job_table import REQUESTED, SIZE, START
from shadowtime.services.scheduler.resources import has_room
from shadowtime.shared.arrays import Integers, IntegerTable
from shadowtime.shared.kernel import kernel

BEYOND = 1 << 60
"""A time beyond any other: the shadow time of a head that cannot start."""


@kernel
def shadow_of(needed: Integers, free: Integers, sizes: IntegerTable, ends: Integers) -> tuple[int, Integers]:
    """Return the shadow time of a job that needs so much of each resource, and what is extra of each at that time.

    The shadow time is the earliest at which running jobs (holding `sizes`, expected to end at `ends`) will have given
    back enough of all; every job that ends at that time counts. If all of them are not enough, the time is beyond any
    other and everything is extra. O(n log n) in the running jobs.

    >>> time, extra = shadow_of(np.array([6]), np.array([2]), np.array([[4], [4]]), np.array([100, 200]))
    >>> time, extra.tolist()
    (100, [0])
    """
    by_end = np.argsort(ends)
    left = free.copy()
    shadow_time, ended = 0, 0
    while ended < len(ends) and not has_room(left, needed):
        left += sizes[by_end[ended]]
        shadow_time = ends[by_end[ended]]
        ended += 1
    if not has_room(left, needed):
        return BEYOND, left
    while ended < len(ends) and ends[by_end[ended]] == shadow_time:
        left += sizes[by_end[ended]]
        ended += 1
    return shadow_time, left - needed


@kernel
def backfilled_rows(
    now: int,
    free: Integers,
    shadow_time: int,
    extra: Integers,
    sizes: IntegerTable,
    run_times: Integers,
    candidates: Integers,
) -> Integers:
    """Return the candidates, rows in the order in which they are tried, that delay no head. O(candidates).

    Each fits into what those before it leave free, and ends by the shadow time or takes no more than what is extra.

    >>> sizes, times = np.array([[2], [2], [2]]), np.array([10, 99, 99])
    >>> backfilled_rows(0, np.array([5]), 10, np.array([2]), sizes, times, np.array([0, 1, 2])).tolist()
    [0, 1]
    """
    free, extra = free.copy(), extra.copy()
    rows = np.empty_like(candidates)
    accepted = 0
    for row in candidates:
        if not has_room(free, sizes[row]):
            continue
        if now + run_times[row] > shadow_time:
            if not has_room(extra, sizes[row]):
                continue
            extra -= sizes[row]
        free -= sizes[row]
        rows[accepted] = row
        accepted += 1
    return rows[:accepted]


@kernel
def easy_pass(
    now: int,
    free: Integers,
    sizes: IntegerTable,
    run_times: Integers,
    order: Integers,
    running: RunningJobs,
) -> tuple[int, int, int, Integers]:
    """Return how many jobs start from the head of the queue, the blocked head's shadow, and the backfilled rows.

    Parameters
    ----------
    free
        What is free of each resource.
    sizes, run_times, order
        Of each waiting job, in order of the queue: what it takes of each resource, expected run time in seconds, and
        the rank by which candidates are tried (least first, ties in order of the queue); no ranks: as the queue.

    Returns
    -------
    heads, shadow_time, extra_processors, rows
        Rows of the queue in the order in which they are accepted.
    """
    waiting = len(sizes)
    left = free.copy()
    heads = 0
    while heads < waiting and has_room(left, sizes[heads]):
        left -= sizes[heads]
        heads += 1
    rows = np.empty(waiting - heads, dtype=np.int64)
    fitting = 0
    for row in range(heads + 1, waiting):
        if has_room(left, sizes[row]):
            rows[fitting] = row
            fitting += 1
    if fitting == 0:
        return heads, 0, 0, rows[:0]
    held = np.concatenate((running.sizes, sizes[:heads]))
    ends = np.concatenate((expected_ends(now, running), now + run_times[:heads]))
    shadow_time, extra = shadow_of(sizes[heads], left, held, ends)
    # What fails now fails later in the pass too, for what is free and extra only shrinks: sort the rest alone.
    able = 0
    for row in rows[:fitting]:
        if now + run_times[row] <= shadow_time or has_room(extra, sizes[row]):
            rows[able] = row
            able += 1
    candidates = rows[:able]
    if len(order):
        candidates = candidates[np.argsort(order[candidates], kind="mergesort")]
    rows = backfilled_rows(now, left, shadow_time, extra, sizes, run_times, candidates)
    return heads, shadow_time, extra[0], rows


@kernel
def pass_as_submitted(
    now: int, free: int, waiting: WaitingTable, running: RunningTable
) -> tuple[int, int, int, Integers]:
    """Return what `easy_pass` does, of the tables of jobs as they are, in order of submission, by processors alone.

    One call takes two arrays in the place of ten, each of which costs as much as a short pass.
    """
    count, jobs = waiting.jobs, running.jobs
    processors = waiting.table[SIZE, :count]
    of_running = RunningJobs(
        running.table[SIZE, :jobs].copy().reshape((jobs, 1)),
        running.table[START, :jobs].copy(),
        running.table[running.planned, :jobs].copy(),
        running.table[running.adjusted, :jobs].copy(),
        running.table[REQUESTED, :jobs].copy(),
        running.corrections,
    )
    run_times = waiting.table[waiting.planned, :count].copy()
    return easy_pass(now, np.array([free]), processors.copy().reshape((count, 1)), run_times, run_times[:0], of_running)
