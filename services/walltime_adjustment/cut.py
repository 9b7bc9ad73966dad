"""Requests cut to a share of themselves: whole seconds, rounded up, not below a threshold."""

import math
from functools import lru_cache

import numpy as np

from shadowtime.shared.kernels import Floats, Integers

ROUNDED = 1e-6
"""Rounding error in seconds by which a floating-point product may exceed the exact whole number."""


def cut(requested_time: int, share: float, threshold: float) -> int:
    """Return a request in seconds, cut to a share of itself. `threshold` is the least share.

    >>> cut(3600, 0.8, 0.5), cut(3600, 0.2, 0.5)
    (2880, 1800)
    """
    return max(math.ceil(requested_time * max(share, threshold) - ROUNDED), 1)


def cuts(requested_time: int, shares: Floats, threshold: float) -> Integers:
    """Return the result of `cut` for each of these shares, in the shape of `shares`.

    >>> cuts(3600, np.array([0.8, 0.2]), 0.5).tolist()
    [2880, 1800]
    """
    seconds = np.ceil(requested_time * np.maximum(shares, threshold) - ROUNDED)
    return np.maximum(seconds, 1).astype(np.int64)


@lru_cache(maxsize=4096)
def positions(count: int, percentiles: tuple[int, ...], rank: str) -> tuple[int, ...]:
    """Return the positions, counted from 0, of rising percentiles among `count` sorted values.

    `nearest` is the nearest rank: at least that many per cent of the values are no larger. `cobalt` is the index of the
    Cobalt scheduler, which is one higher if the percentile falls on a whole number of values
    (docs/algorithms.md#percentile-adjustment).

    >>> positions(10, (50, 85), "nearest"), positions(10, (50, 85), "cobalt")
    ((4, 8), (5, 8))
    """
    if rank == "cobalt":
        return tuple(min(percentile * count // 100, count - 1) for percentile in percentiles)
    return tuple(-(-percentile * count // 100) - 1 for percentile in percentiles)
