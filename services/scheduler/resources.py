"""What jobs take of each resource, as vectors: processors first, then further ones, such as memory and GPUs.

A job that takes nothing of a resource is not limited by it, also where less than nothing is free.
"""

import numpy as np

from shadowtime.services.scheduler.columns import SIZE
from shadowtime.shared.arrays import Flags, Integers, IntegerTable
from shadowtime.shared.kernel import inlined, kernel


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
def fitting_together(free: Integers, sizes: IntegerTable) -> int:
    """Return how many of the first jobs fit beside each other; the next does not. O(those).

    >>> import numpy as np
    >>> fitting_together(np.array([8]), np.array([[4], [4], [1]]))
    2
    """
    left = free.copy()
    for job in range(len(sizes)):
        if not has_room(left, sizes[job]):
            return job
        left -= sizes[job]
    return len(sizes)


@kernel
def front(free: int, table: IntegerTable, waiting: int) -> tuple[int, Integers]:
    """Return how many jobs fit beside each other from the head on, and the rows of those behind the next that fit too.

    By processors alone, of the table of waiting jobs, in order of submission; behind the last that fits are none.
    O(waiting).
    """
    sizes = table[SIZE, :waiting]
    heads, left = 0, free
    while heads < waiting and sizes[heads] <= max(left, 0):
        left -= sizes[heads]
        heads += 1
    fitting = 0
    for row in range(heads + 1, waiting):
        fitting += sizes[row] <= max(left, 0)
    rows = np.empty(fitting, dtype=np.int64)
    found = 0
    for row in range(heads + 1, waiting):
        if sizes[row] <= max(left, 0):
            rows[found] = row
            found += 1
    return heads, rows


@kernel
def fits_each(free: Integers, sizes: IntegerTable, rows: Integers) -> Flags:
    """Return of each of these rows whether its job, by itself, fits. O(rows).

    >>> import numpy as np
    >>> fits_each(np.array([3]), np.array([[4], [3], [1]]), np.array([2, 0, 1])).tolist()
    [True, False, True]
    """
    found = np.empty(len(rows), dtype=np.bool_)
    for at in range(len(rows)):
        found[at] = has_room(free, sizes[rows[at]])
    return found
