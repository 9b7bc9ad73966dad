"""Prefilter of the candidates of a pass: drop those that cannot start, mark those that are safe for the head."""

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
    """Return the candidates that remain, and for each whether it is safe. O(rows).

    A candidate is safe if EASY with requested times would start it.

    Parameters
    ----------
    rows
        Candidates, as rows of the queue.
    sizes, requested_times
        Columns of the whole queue.
    shadow_time, extra
        Shadow time and extra amounts of the head, by requested times.
    plain
        Whether only safe candidates remain, because the pass goes on as plain EASY. If not, all candidates remain.

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
    """Return the amount of each resource left beside the head once all jobs due by a deadline have ended. O(jobs).

    The parameters are those of `sift_by_deadline`.

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
    """Return the same as `filter_candidates`, for a head that must find room by a deadline.

    The head must find room even if all jobs run to their requests. The memory and GPUs of candidates are always judged
    by the requests. O(rows + running jobs).

    Parameters
    ----------
    deadline
        Time in seconds by which the head must find room.
    beside
        Idle amount of each resource, less the amount that the head needs.
    held, ends
        Sizes of the running jobs, and their ends by their requests.

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
