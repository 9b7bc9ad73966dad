"""What can become of a job, as far as a histogram tells: outcomes that exclude each other, one of which occurs.

A job takes up the machine for its run time, ended at `limit`, its request (infinity where it has none); a run of no
time counts as one second. With the limit in bin b, outcome j <= b is an end in bin j before the limit, and outcome
b + 1 is the limit itself, an atom that bears all mass above it. Bins are those of `shared.run_time_bins`.
"""

import math

import numpy as np

from shadowtime.shared.arrays import Floats
from shadowtime.shared.kernel import kernel
from shadowtime.shared.run_time_bins import EDGES, bin_of


@kernel
def occupied_time(run_time: float, limit: float) -> float:
    """Return how long a job takes up the machine, in seconds.

    >>> occupied_time(0, 3600), occupied_time(4000, 3600)
    (1.0, 3600.0)
    """
    return max(min(run_time, limit), 1.0)


@kernel
def outcome_of(run_time: float, limit: float) -> int:
    """Return which outcome this run time was.

    >>> outcome_of(1000, 3600), outcome_of(3599, 3600), outcome_of(3600, 3600)
    (12, 14, 15)
    """
    time = occupied_time(run_time, limit)
    return bin_of(limit) + 1 if time >= limit else bin_of(time)


@kernel
def outcome_masses(masses: Floats, limit: float) -> Floats:
    """Return the mass of each outcome; shape (bin of the limit + 2,). Their sum is that of the masses.

    >>> outcome_masses(np.array([0.0, 0.0, 0.0, 0.5, 0.25, 0.25]), 1.8**3.5).round(9).tolist()
    [0.0, 0.0, 0.0, 0.5, 0.125, 0.375]
    """
    last = bin_of(limit)
    outcomes = np.zeros(last + 2)
    for j in range(len(masses)):
        outcomes[min(j, last + 1)] += masses[j]
    if limit < EDGES[last + 1] or last == 0:
        below = 0.0 if last == 0 else math.log(limit / EDGES[last]) / math.log(EDGES[last + 1] / EDGES[last])
        outcomes[last + 1] += (1.0 - below) * outcomes[last]
        outcomes[last] *= below
    return outcomes
