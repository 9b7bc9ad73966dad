"""The availability profile: the free amount of each resource as a step function of time.

docs/algorithms.md#availability-profile.
"""

import numpy as np

from shadowtime.shared.kernels import Integers, IntegerTable, inlined, kernel

FOREVER = 1 << 61
"""A time after all others; `shared.kernels.easy_backfill.BEYOND` lies before it."""


EACH_STEP = 3
"""Work of one reservation for each step of the profile: to search, cut and take."""


@inlined
def has_room_at(free: IntegerTable, step: int, size: Integers) -> bool:
    """Return whether a job with at least one processor fits at a step, as `shared.kernels.has_room` does."""
    if size[0] > free[0, step]:
        return False
    for resource in range(1, len(size)):  # noqa: SIM110 - no generator is compiled
        if size[resource] > max(free[resource, step], 0):
            return False
    return True


@kernel
def begin(times: Integers, free: IntegerTable, now: int, idle: Integers, sizes: IntegerTable, ends: Integers) -> int:
    """Write the profile that running jobs leave, and return its number of steps.

    Step k has `free[:, k]` of the resources from `times[k]` until the next step. The last step has no end. O(n log n)
    for n jobs.

    Parameters
    ----------
    times, free
        Arrays to write to, shapes (steps,) and (resources, steps). Each later reservation needs two more steps.
    idle
        Free amount of each resource now; below zero if running jobs hold more than the capacity.
    sizes, ends
        Amounts that each running job holds, shape (jobs, resources), and its expected end, which is after now.

    >>> import numpy as np
    >>> times, free = np.zeros(9, dtype=np.int64), np.zeros((1, 9), dtype=np.int64)
    >>> steps = begin(times, free, 0, np.array([4]), np.array([[3], [2], [1]]), np.array([50, 90, 50]))
    >>> times[:steps].tolist(), free[0, :steps].tolist()
    ([0, 50, 90], [4, 8, 10])
    """
    times[0], free[:, 0] = now, idle
    steps = 1
    for job in np.argsort(ends, kind="mergesort"):
        if ends[job] > times[steps - 1]:
            times[steps] = ends[job]
            for resource in range(len(idle)):
                free[resource, steps] = free[resource, steps - 1]
            steps += 1

        for resource in range(len(idle)):
            free[resource, steps - 1] += sizes[job, resource]

    return steps


@kernel
def earliest(times: Integers, free: IntegerTable, steps: int, size: Integers, run_time: int, limit: int) -> int:
    """Return the earliest start at which a job fits for its whole run time, in seconds.

    The result is `limit` if there is no such start before `limit`. O(steps).
    """
    step = 0
    while step < steps and times[step] < limit:
        start = times[step]
        at = step
        while at < steps and times[at] < start + run_time and has_room_at(free, at, size):
            at += 1
        if at == steps or times[at] >= start + run_time:
            return int(start)
        step = at + 1  # the job does not fit before this step is over

    return limit


@kernel
def fits(times: Integers, free: IntegerTable, steps: int, size: Integers, start: int, end: int) -> bool:
    """Return whether `size` is free from `start` to `end`. `start` must not be before the profile. O(steps).

    >>> import numpy as np
    >>> times, free = np.array([0, 50, 90]), np.array([[4, 8, 2]])
    >>> fits(times, free, 3, np.array([4]), 20, 90), fits(times, free, 3, np.array([4]), 20, 91)
    (True, False)
    """
    step = int(np.searchsorted(times[:steps], start, side="right")) - 1
    while step < steps and times[step] < end:
        if not has_room_at(free, step, size):
            return False
        step += 1
    return True


@kernel
def cut_at(times: Integers, free: IntegerTable, steps: int, time: int) -> int:
    """Make `time` the beginning of a step, and return the number of steps. O(steps)."""
    at = int(np.searchsorted(times[:steps], time))
    if at < steps and times[at] == time:
        return steps
    for step in range(steps, at, -1):
        times[step] = times[step - 1]
    times[at] = time
    for resource in range(len(free)):
        for step in range(steps, at - 1, -1):
            free[resource, step] = free[resource, step - 1]
    return steps + 1


@kernel
def take(times: Integers, free: IntegerTable, steps: int, start: int, end: int, size: Integers) -> int:
    """Take `size` out of the profile between two times, or add it if negative. Return the number of steps. O(steps).

    >>> import numpy as np
    >>> times, free = np.array([0, 50, 0, 0, 0]), np.array([[4, 8, 0, 0, 0]])
    >>> steps = take(times, free, 2, 20, 70, np.array([3]))
    >>> times[:steps].tolist(), free[0, :steps].tolist()
    ([0, 20, 50, 70], [4, 1, 5, 8])
    """
    steps = cut_at(times, free, steps, start)
    steps = cut_at(times, free, steps, end)
    first, last = np.searchsorted(times[:steps], start), np.searchsorted(times[:steps], end)
    for resource in range(len(size)):
        for step in range(first, last):
            free[resource, step] -= size[resource]
    return steps


@kernel
def merged(times: Integers, free: IntegerTable, steps: int) -> int:
    """Merge neighbouring steps with equal free amounts, and return the number of steps left. O(steps)."""
    kept = 1
    for step in range(1, steps):
        resource = 0
        while resource < len(free) and free[resource, step] == free[resource, kept - 1]:
            resource += 1
        if resource < len(free):
            times[kept], free[0, kept] = times[step], free[0, step]
            for further in range(1, len(free)):
                free[further, kept] = free[further, step]
            kept += 1

    return kept
