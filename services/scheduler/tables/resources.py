"""Compiled tests whether jobs fit into the free amounts of all resources, together or each by itself."""

import numpy as np

from shadowtime.shared.kernels import Flags, Integers, IntegerTable, ascending, has_room, kernel


@kernel
def fitting_together(free: Integers, sizes: IntegerTable) -> int:
    """Return the number of jobs that fit together, from the first up to one that does not fit. O(that number).

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
def front(free: Integers, sizes: IntegerTable, served: Integers) -> tuple[int, Integers]:
    """Return the number of first jobs that fit together, and the rows of the candidates behind the blocked head.

    `served` lists the rows of `sizes` in the order of service. The first job that does not fit is the blocked head. A
    candidate is a later job that, by itself, fits beside the first jobs. Candidates are in order of submission.
    O(jobs log jobs).

    >>> import numpy as np
    >>> heads, rows = front(np.array([5]), np.array([[2], [9], [3], [4], [1]]), np.arange(5))
    >>> heads, rows.tolist()
    (1, [2, 4])
    """
    left = free.copy()
    heads = 0
    while heads < len(served) and has_room(left, sizes[served[heads]]):
        left -= sizes[served[heads]]
        heads += 1
    rows = np.empty_like(served)
    count = 0
    for at in range(heads + 1, len(served)):
        if has_room(left, sizes[served[at]]):
            rows[count] = served[at]
            count += 1

    return heads, ascending(rows[:count])


@kernel
def fits_each(free: Integers, sizes: IntegerTable, rows: Integers) -> Flags:
    """Return for each of these rows whether its job fits by itself. O(rows).

    >>> import numpy as np
    >>> fits_each(np.array([3]), np.array([[4], [3], [1]]), np.array([2, 0, 1])).tolist()
    [True, False, True]
    """
    fitting = np.empty(len(rows), dtype=np.bool_)
    for at in range(len(rows)):
        fitting[at] = has_room(free, sizes[rows[at]])
    return fitting
