"""The logarithms of waits. Quantiles of waits are shifted and mixed as logarithms."""

import numpy as np

from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.kernels import Floats

NEAR = 60.0
"""Seconds that are added to waits before their logarithms are taken."""


def seconds_of(logs: Floats) -> Floats:
    """Return the waits with these logarithms of (wait + `NEAR`): whole seconds from 0 to `MAX_DURATION`.

    >>> seconds_of(np.log([10.0, 100.4, 660.0])).tolist()
    [0.0, 40.0, 600.0]
    """
    return np.maximum(np.rint(np.exp(np.minimum(logs, np.log(MAX_DURATION))) - NEAR), 0.0)
