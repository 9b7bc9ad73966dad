"""The prefilter of candidates in a pass that guards its head: possible ones, and safe ones."""

import numpy as np

from shadowtime.shared.kernels import Flags, Integers, IntegerTable, has_room, kernel


@kernel
def filter_candidates(
    now: int,
    rows: Integers,
    sizes: IntegerTable,
    requested_times: Integers,
    shadow_time: int,
    extra: Integers,
    plain: bool,
) -> tuple[Integers, Flags]:
    """Return the candidates that are left, and of each whether it is safe: as EASY has it, on the requests. O(rows).

    Parameters
    ----------
    rows
        Candidates, as rows of the queue, of which all are left but where the pass goes on as plain EASY.
    sizes, requested_times
        Of the whole queue.
    shadow_time, extra
        Of the head, on the requests.
    plain
        Whether only those that are safe are left.

    >>> left, safe = filter_candidates(
    ...     0, np.array([1, 0]), np.array([[2], [1]]), np.array([60, 900]), 60, np.array([0]), plain=False
    ... )
    >>> left.tolist(), safe.tolist()
    ([1, 0], [False, True])
    """
    left, safe = np.empty_like(rows), np.empty(len(rows), dtype=np.bool_)
    count = 0
    for row in rows:
        is_safe = now + requested_times[row] <= shadow_time or has_room(extra, sizes[row])
        if is_safe or not plain:
            left[count], safe[count] = row, is_safe
            count += 1

    return left[:count], safe[:count]


@kernel
def room_by(deadline: float, beside: Integers, held: IntegerTable, ends: Integers) -> Integers:
    """Return what is left of each resource beside the head when all that end by a deadline have. O(jobs).

    >>> room_by(60.0, np.array([-3]), np.array([[3], [2]]), np.array([60, 61])).tolist()
    [0]
    """
    room = beside.copy()
    for job in range(len(ends)):
        if ends[job] <= deadline:
            room += held[job]
    return room


@kernel
def sift_by_deadline(
    now: int,
    rows: Integers,
    sizes: IntegerTable,
    requested_times: Integers,
    shadow_time: int,
    extra: Integers,
    deadline: float,
    beside: Integers,
    held: IntegerTable,
    ends: Integers,
) -> tuple[Integers, Flags]:
    """Return the same where the head must find room by a deadline, should all jobs run to their requests.

    Memory and GPUs go by requests in any case. O(rows + running jobs).

    Parameters
    ----------
    beside
        What is idle of each resource, less what the head needs.
    held, ends
        Of the running jobs, at their requests.

    >>> jobs = np.array([0, 1]), np.array([[2], [1]]), np.array([900, 900])
    >>> running = np.array([[2]]), np.array([60])
    >>> left, safe = sift_by_deadline(0, *jobs, 60, np.array([0]), 600.0, np.array([-1]), *running)
    >>> left.tolist(), safe.tolist()
    ([1], [False])
    """
    room = room_by(deadline, beside, held, ends)
    left, safe = np.empty_like(rows), np.empty(len(rows), dtype=np.bool_)
    count = 0
    for row in rows:
        ends = now + requested_times[row]
        in_time = ends <= shadow_time
        is_safe = in_time or has_room(extra, sizes[row])
        kept = is_safe or ends <= deadline or has_room(room, sizes[row])
        if kept and (in_time or has_room(extra[1:], sizes[row, 1:])):
            left[count], safe[count] = row, is_safe
            count += 1

    return left[:count], safe[:count]
