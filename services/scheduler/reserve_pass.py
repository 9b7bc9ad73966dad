"""One pass over arrays in which every job that cannot start reserves its place."""

import numpy as np

from shadowtime.services.scheduler.expected_end import RunningJobs, expected_ends
from shadowtime.services.scheduler.profile import FOREVER, begin, earliest, take
from shadowtime.shared.arrays import Integers
from shadowtime.shared.kernel import kernel

STEPS = 3
"""What one reservation costs for each step of the profile: looking for its place, cutting there and taking it."""


@kernel
def reserve_pass(
    now: int,
    free: int,
    processors: Integers,
    run_times: Integers,
    running: RunningJobs,
    most: int,
) -> tuple[Integers, int, int]:
    """Return the rows of the queue that start, in order of arrival; how many got their turn, and the steps it took.

    O(queue * (queue + running)), but no more is planned once it has taken `most` steps over the profile.

    Each job in turn gets the earliest time at which it fits beside those before it; those whose time has come start.
    Once none that is left is small enough for what is free, no further place is reserved: it would outlast nothing.

    Parameters
    ----------
    processors, run_times
        Of each waiting job, in order of the queue: size, and expected run time in seconds.
    """
    waiting = len(processors)
    smallest = np.empty(waiting + 1, dtype=np.int64)
    smallest[waiting] = FOREVER
    for job in range(waiting - 1, -1, -1):
        smallest[job] = min(processors[job], smallest[job + 1])
    rows = np.empty(waiting, dtype=np.int64)
    if smallest[0] > free:
        return rows[:0], waiting, waiting
    ends = expected_ends(now, running)
    work = waiting + len(ends)
    times = np.empty(2 * waiting + len(ends) + 2, dtype=np.int64)
    idle = np.empty_like(times)
    steps = begin(times, idle, now, free, running.processors, ends)
    starting, planned = 0, waiting
    for job in range(waiting):
        if smallest[job] > free:
            break
        if work > most:
            planned = job
            break
        work += STEPS * steps
        at = earliest(times, idle, steps, processors[job], run_times[job], FOREVER)
        if at < FOREVER:
            steps = take(times, idle, steps, at, at + run_times[job], processors[job])
        if at == now:
            rows[starting] = job
            starting += 1
            free -= processors[job]
    return rows[:starting], planned, work
