"""Jobs whose waits depend on the interval of their requested time, to test what clusters recover.

Brevik 2006, section 3.5, describes such a trace by its intervals alone. Its results reveal the number of jobs. No
cluster has fewer than 59 jobs, and the last cluster has 7 values. So the trace had about nine jobs for each value.
"""

from collections.abc import Sequence

import numpy as np
from numpy.random import PCG64, Generator

from shadowtime.shared.kernels import Integers

ENDS = (100, 200, 300, 400, 500)
"""Upper ends of the intervals of requested time, in seconds."""

LOG_MEANS = (4.0, 6.0, 5.0, 8.0, 7.0)
"""Mean logarithm of the waits in each interval. They are ours: the paper does not print its own."""

LOG_SPREAD = 1.0
JOBS = 4_500
NEAR = 3
"""Maximum distance, in seconds, of a recovered end from the true one: the largest of the paper's four."""


def interval_waits(seed: int, jobs: int = JOBS) -> tuple[Integers, Integers]:
    """Return requested times from 1 to 500 s and log-normal waits in seconds, both of shape (jobs,).

    >>> requests, waits = interval_waits(seed=1, jobs=3)
    >>> len(requests), int(requests.min()) >= 1, int(waits.min()) >= 0
    (3, True, True)
    """
    chance = Generator(PCG64([seed, jobs]))
    requests = chance.integers(1, ENDS[-1] + 1, jobs)
    means = np.array(LOG_MEANS)[np.searchsorted(ENDS, requests)]
    return requests, chance.lognormal(means, LOG_SPREAD).astype(np.int64)


def recovered(ends: Sequence[int]) -> int:
    """Return how many of the four true ends have one of these ends within `NEAR`.

    >>> recovered([39, 40, 100, 197, 300, 398, 492, 493])
    4
    """
    return sum(any(abs(end - true) <= NEAR for end in ends) for true in ENDS[:-1])
