"""Run times drawn from what was predicted of jobs, given how long each has run and what it requests."""

import numpy as np

from shadowtime.shared.distributions.histogram import EDGES
from shadowtime.shared.kernels import Floats, FloatTable, IntegerTable, kernel


@kernel
def sampled_times(
    masses: FloatTable, elapsed: Floats, limits: Floats, otherwise: Floats, draws: FloatTable
) -> IntegerTable:
    """Return a run time in whole seconds for each draw and job, shape (draws, jobs). O(draws * jobs * log bins).

    A draw is the share of the job's distribution that lies below its run time, of what is left of that once the job
    has run for so long: within a bin the logarithm of the run time is uniform, bin 0 stands for one second. What lies
    beyond the limit happens there, and a job runs for at least a second more.

    Parameters
    ----------
    masses
        Probability of each bin of `run_time_bins`, shape (jobs, bins); they need not add up to 1.
    elapsed, limits
        Seconds that each job has run, and may run at most, shape (jobs,).
    otherwise
        Seconds that a job runs of which nothing is predicted, or which has outlived its whole distribution.
    draws
        Numbers in [0, 1), shape (draws, jobs).

    Examples
    --------
    >>> none = np.zeros(2)
    >>> masses = np.array([[0.5, 0.0, 0.5], [0.0, 0.0, 0.0]])
    >>> sampled_times(masses, none, np.array([2.0, 90.0]), np.array([9.0, 60.0]), np.array([[0.2, 0.2], [0.9, 0.9]]))
    array([[ 1, 60],
           [ 2, 60]])

    References
    ----------
    docs/algorithms.md#sampled-futures.
    """
    samples, jobs = draws.shape
    times = np.empty((samples, jobs), dtype=np.int64)
    upto = np.empty(masses.shape[1])
    for job in range(jobs):
        ran, total = elapsed[job], 0.0
        for j in range(masses.shape[1]):
            low, high = EDGES[j], EDGES[j + 1]
            if high > ran:
                share = 1.0 if low >= ran or j == 0 else np.log(high / ran) / np.log(high / low)
                total += masses[job, j] * share
            upto[j] = total

        least = int(ran) + 1
        for sample in range(samples):
            if total > 0.0:
                wanted = draws[sample, job] * total
                first, last = 0, len(upto) - 1
                while first < last:  # the first bin that ends above what is wanted
                    middle = (first + last) // 2
                    if upto[middle] > wanted:
                        last = middle
                    else:
                        first = middle + 1

                before = upto[first - 1] if first > 0 else 0.0
                time = 1.0
                if first > 0:
                    begin, high = max(EDGES[first], ran), EDGES[first + 1]
                    time = begin * (high / begin) ** ((wanted - before) / (upto[first] - before))
            else:
                time = otherwise[job]

            times[sample, job] = max(round(min(time, limits[job])), least)

    return times
