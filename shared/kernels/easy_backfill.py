"""EASY backfilling over arrays: whether a job fits, the time at which it can start, one pass.

The size of a job is a vector: processors first, then further resources, such as memory and GPUs. A job that needs none
of a resource is not limited by it, even if the free amount is negative. Times are in seconds.
"""

import numpy as np

from shadowtime.shared.kernels.arrays import Integers, IntegerTable
from shadowtime.shared.kernels.decorator import inlined, kernel

BEYOND = 1 << 60
"""A time beyond any other: the shadow time of a head that cannot start."""


@inlined
def has_room(free: Integers, size: Integers) -> bool:
    """Return whether a job of this size fits into the free amount of each resource.

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
def ascending(values: Integers) -> Integers:
    """Return the values in ascending order, in O(n log n). numba's quicksort takes O(n²) for some orders of values.

    >>> ascending(np.array([3, 1, 2])).tolist()
    [1, 2, 3]
    """
    return values[np.argsort(values, kind="mergesort")]


@kernel
def place_of(
    needed: Integers, earliest: int, free: Integers, sizes: IntegerTable, ends: Integers, by_end: Integers
) -> tuple[int, Integers]:
    """Return the first time from `earliest` on at which a job fits, and what remains free beside it. O(running).

    Running jobs hold `sizes` until `ends`; `by_end` has their rows in order of their ends. All jobs that end by the
    returned time have released their resources. If the job never fits, the time is `BEYOND`, and the remaining amounts
    are those of the machine without running jobs.

    >>> running = np.array([[4], [4]]), np.array([100, 200]), np.array([0, 1])
    >>> [place_of(np.array([6]), time, np.array([2]), *running)[0] for time in (0, 150)]
    [100, 150]
    """
    time, ended = earliest, 0
    left = free.copy()
    while ended < len(by_end) and (not has_room(left, needed) or ends[by_end[ended]] <= time):
        row = by_end[ended]
        for resource in range(len(left)):  # a slice of a table costs ten times as much
            left[resource] += sizes[row, resource]
        time = max(time, ends[row])
        ended += 1

    return (time, left - needed) if has_room(left, needed) else (BEYOND, left)


@kernel
def shadow_of(needed: Integers, free: Integers, sizes: IntegerTable, ends: Integers) -> tuple[int, Integers]:
    """Return the shadow time of a job of size `needed`, and the extra amount of each resource at that time.

    See `place_of`. If the job fits already, the time is -`BEYOND`. O(n log n) in the running jobs.

    >>> time, extra = shadow_of(np.array([6]), np.array([2]), np.array([[4], [4]]), np.array([100, 200]))
    >>> time, extra.tolist()
    (100, [0])
    """
    return place_of(needed, -BEYOND, free, sizes, ends, np.argsort(ends, kind="mergesort"))


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
    """Return the candidates that can start without delaying the head, as rows in the order of trial. O(candidates).

    A returned candidate fits into the free amounts that the candidates accepted before it leave. In addition, the
    candidate ends by the shadow time or fits into the extra amounts that are left.

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
    """Return the number of jobs that start from the queue's head, the blocked head's shadow, and the backfilled rows.

    Parameters
    ----------
    now
        The time of the pass.
    free
        Free amount of each resource.
    sizes, run_times, order
        For each waiting job, in order of the queue: its need of each resource, its expected run time in seconds, and
        its rank among the candidates. The lowest rank is tried first, ties in order of the queue. An empty `order`
        stands for the order of the queue.
    held, ends
        For each running job: its amount of each resource, and its expected end.

    Returns
    -------
    heads, shadow_time, extra_processors, rows
        `rows` are rows of the queue in the order in which they are accepted. Shadow time and extra processors are 0 if
        no candidate fits. The shadow time is `BEYOND` if the head does not even fit on the idle machine.
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
    # A candidate that fails now also fails later in the pass, since free and extra amounts only shrink: drop it.
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
