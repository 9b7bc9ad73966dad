"""One pass of EASY backfilling over arrays: heads that fit, the shadow of the first that does not, candidates."""

import numpy as np

from shadowtime.services.scheduler.expected_end import RunningJobs, expected_ends
from shadowtime.shared.arrays import Integers
from shadowtime.shared.kernel import kernel

BEYOND = 1 << 60
"""A time beyond any other: the shadow time of a head that cannot start."""


@kernel
def shadow_of(needed: int, free: int, processors: Integers, ends: Integers) -> tuple[int, int]:
    """Return the shadow time of a job that needs `needed` processors, and the extra processors at that time.

    The shadow time is the earliest at which running jobs (holding `processors`, expected to end at `ends`) will have
    given back enough; every job that ends at that time counts. If all of them are not enough, the time is beyond any
    other and every processor is extra. O(n log n) in the running jobs.

    >>> shadow_of(6, 2, np.array([4, 4]), np.array([100, 200]))
    (100, 0)
    """
    by_end = np.argsort(ends)
    shadow_time, ended = 0, 0
    while free < needed and ended < len(ends):
        free += processors[by_end[ended]]
        shadow_time = ends[by_end[ended]]
        ended += 1
    if free < needed:
        return BEYOND, free
    while ended < len(ends) and ends[by_end[ended]] == shadow_time:
        free += processors[by_end[ended]]
        ended += 1
    return shadow_time, free - needed


@kernel
def backfilled_rows(
    now: int, free: int, shadow_time: int, extra: int, processors: Integers, run_times: Integers, candidates: Integers
) -> Integers:
    """Return the candidates, rows in the order in which they are tried, that delay no head. O(candidates).

    Each fits into what those before it leave free, and ends by the shadow time or takes no more than the extra
    processors.

    >>> sizes, times = np.array([2, 2, 2]), np.array([10, 99, 99])
    >>> backfilled_rows(0, 5, 10, 2, sizes, times, np.array([0, 1, 2])).tolist()
    [0, 1]
    """
    rows = np.empty_like(candidates)
    accepted = 0
    for row in candidates:
        if processors[row] > free:
            continue
        if now + run_times[row] > shadow_time:
            if processors[row] > extra:
                continue
            extra -= processors[row]
        free -= processors[row]
        rows[accepted] = row
        accepted += 1
    return rows[:accepted]


@kernel
def easy_pass(
    now: int,
    free: int,
    processors: Integers,
    run_times: Integers,
    order: Integers,
    running: RunningJobs,
) -> tuple[int, int, int, Integers]:
    """Return how many jobs start from the head of the queue, the blocked head's shadow, and the backfilled rows.

    Parameters
    ----------
    processors, run_times, order
        Of each waiting job, in order of the queue: size, expected run time in seconds, and the rank by which
        candidates are tried (least first, ties in order of the queue).

    Returns
    -------
    heads, shadow_time, extra_processors, rows
        Rows of the queue in the order in which they are accepted.
    """
    waiting = len(processors)
    heads = 0
    while heads < waiting and processors[heads] <= free:
        free -= processors[heads]
        heads += 1
    rows = np.empty(waiting - heads, dtype=np.int64)
    fitting = 0
    for row in range(heads + 1, waiting):
        if processors[row] <= free:
            rows[fitting] = row
            fitting += 1
    if fitting == 0:
        return heads, 0, 0, rows[:0]
    sizes = np.concatenate((running.processors, processors[:heads]))
    ends = np.concatenate((expected_ends(now, running), now + run_times[:heads]))
    shadow_time, extra = shadow_of(processors[heads], free, sizes, ends)
    # What fails now fails later in the pass too, for free and extra processors only shrink: sort the rest alone.
    able = 0
    for row in rows[:fitting]:
        if now + run_times[row] <= shadow_time or processors[row] <= extra:
            rows[able] = row
            able += 1
    candidates = rows[:able]
    candidates = candidates[np.argsort(order[candidates], kind="mergesort")]
    return heads, shadow_time, extra, backfilled_rows(now, free, shadow_time, extra, processors, run_times, candidates)
