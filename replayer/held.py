"""What jobs that run at one time hold together."""

import numpy as np

from shadowtime.shared.arrays import Integers


def held_at_starts(start: Integers, end: Integers, processors: Integers) -> Integers:
    """Return of each job how many processors are held once it has started. O(jobs log jobs).

    At a second, jobs end before others start, and of those that start together the smallest comes first.

    Parameters
    ----------
    start, end, processors
        Of each job, shape (jobs,); times in seconds.

    >>> held_at_starts(np.array([0, 5, 5]), np.array([5, 9, 9]), np.array([4, 3, 2])).tolist()
    [4, 5, 2]
    """
    changes = np.concatenate((processors, -processors))
    order = np.lexsort((changes, np.concatenate((start, end))))
    held = np.empty_like(changes)
    held[order] = np.cumsum(changes[order])
    at_starts: Integers = held[: len(start)]
    return at_starts
