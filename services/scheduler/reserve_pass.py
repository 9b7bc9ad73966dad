"""One pass over arrays in which every job that cannot start reserves its place."""

import numpy as np

from shadowtime.services.scheduler.expected_end import RunningJobs, expected_ends
from shadowtime.services.scheduler.profile import FOREVER, begin, earliest, take
from shadowtime.shared.arrays import Integers, IntegerTable
from shadowtime.shared.kernel import kernel

STEPS = 3
"""What one reservation costs for each step of the profile: looking for its place, cutting there and taking it."""


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
