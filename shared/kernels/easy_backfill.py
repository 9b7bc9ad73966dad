"""EASY backfilling over arrays: room for a job, the time at which it can start, one pass.

What jobs take of each resource are vectors: processors first, then further ones, such as memory and GPUs. A job that
takes nothing of a resource is not limited by it, also where less than nothing is free.
"""

import numpy as np

from shadowtime.shared.kernels.arrays import Integers, IntegerTable
from shadowtime.shared.kernels.decorator import inlined, kernel

BEYOND = 1 << 60
"""A time beyond any other: the shadow time of a head that cannot start."""


@inlined
def has_room(free: Integers, size: Integers) -> bool:
    """Return whether a job of this size fits into what is free of each resource.

    >>> import numpy as np
    >>> free = np.array([4, -1])
    >>> has_room(free, np.array([4, 0])), has_room(free, np.array([4, 1])), has_room(free, np.array([5, 0]))
    (True, False, False)
    """
    for resource in range(len(free)):  # noqa: SIM110 - no generator is compiled
        if size[resource] > max(free[resource], 0):
            return False
    return True


@kernel
def place_of(
    needed: Integers, earliest: int, free: Integers, sizes: IntegerTable, ends: Integers, by_end: Integers
) -> tuple[int, Integers]:
    """Return when a job fits from `earliest` on, and what is left of each resource beside it then. O(running).

    Running jobs hold `sizes` until `ends`, which `by_end` sorts; every job that ends by that time counts. If the job
    never fits, the time is `BEYOND` and everything is left.

    >>> running = np.array([[4], [4]]), np.array([100, 200]), np.array([0, 1])
    >>> [place_of(np.array([6]), time, np.array([2]), *running)[0] for time in (0, 150)]
    [100, 150]
    """
    time, ended = earliest, 0
    left = free.copy()
    while ended < len(by_end) and (not has_room(left, needed) or ends[by_end[ended]] <= time):
        left += sizes[by_end[ended]]
        time = max(time, ends[by_end[ended]])
        ended += 1

    return (time, left - needed) if has_room(left, needed) else (BEYOND, left)


@kernel
def shadow_of(needed: Integers, free: Integers, sizes: IntegerTable, ends: Integers) -> tuple[int, Integers]:
    """Return the shadow time of a job that needs so much of each resource, and what is extra of each at that time.

    As of `place_of`, from the first end on. O(n log n) in the running jobs.

    >>> time, extra = shadow_of(np.array([6]), np.array([2]), np.array([[4], [4]]), np.array([100, 200]))
    >>> time, extra.tolist()
    (100, [0])
    """
    return place_of(needed, 0, free, sizes, ends, np.argsort(ends))


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
    held: IntegerTable,
    ends: Integers,
) -> tuple[int, int, int, Integers]:
    """Return how many jobs start from the head of the queue, the blocked head's shadow, and the backfilled rows.

    Parameters
    ----------
    free
        What is free of each resource.
    sizes, run_times, order
        Of each waiting job, in order of the queue: what it takes of each resource, expected run time in seconds, and
        the rank by which candidates are tried (least first, ties in order of the queue); no ranks: as the queue.
    held, ends
        Of each running job: what it holds of each resource, and when it is expected to end.

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
    count = 0
    for row in range(heads + 1, waiting):
        if has_room(left, sizes[row]):
            rows[count] = row
            count += 1

    if count == 0:
        return heads, 0, 0, rows[:0]
    held = np.concatenate((held, sizes[:heads]))
    ends = np.concatenate((ends, now + run_times[:heads]))
    shadow_time, extra = shadow_of(sizes[heads], left, held, ends)
    # What fails now fails later in the pass too, for what is free and extra only shrinks: sort the rest alone.
    able = 0
    for row in rows[:count]:
        if now + run_times[row] <= shadow_time or has_room(extra, sizes[row]):
            rows[able] = row
            able += 1

    candidates = rows[:able]
    if len(order):
        candidates = candidates[np.argsort(order[candidates], kind="mergesort")]
    rows = backfilled_rows(now, left, shadow_time, extra, sizes, run_times, candidates)
    return heads, shadow_time, extra[0], rows
