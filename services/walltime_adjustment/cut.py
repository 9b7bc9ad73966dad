"""The cut of a request to a share of it: whole seconds, rounded up, not below a threshold."""

import math

import numpy as np

from shadowtime.shared.arrays import Floats, Integers

ROUNDED = 1e-6
"""Seconds that a product of floating-point numbers may lie above the whole number that it should be."""


def cut(requested_time: int, share: float, threshold: float) -> int:
    """Return a request cut to this share of it.

    >>> cut(3600, 0.8, 0.5), cut(3600, 0.2, 0.5)
    (2880, 1800)
    """
    return max(math.ceil(requested_time * max(share, threshold) - ROUNDED), 1)


def cuts(requested_time: int, shares: Floats, threshold: float) -> Integers:
    """Return a request cut to each of these shares of it.

    >>> cuts(3600, np.array([0.8, 0.2]), 0.5).tolist()
    [2880, 1800]
    """
    seconds = np.ceil(requested_time * np.maximum(shares, threshold) - ROUNDED)
    return np.maximum(seconds, 1).astype(np.int64)
