"""Run times drawn from the predicted distributions of jobs, given each job's elapsed time and request."""

import numpy as np

from shadowtime.shared.distributions.histogram import EDGES
from shadowtime.shared.kernels import Floats, FloatTable, IntegerTable, kernel


@kernel
def sampled_times(
    masses: FloatTable, elapsed: Floats, limits: Floats, otherwise: Floats, draws: FloatTable
) -> IntegerTable:
    """Return a run time in whole seconds for each draw and job, shape (draws, jobs). O(draws * jobs * log bins).

    A draw is a probability level. The run time is the quantile at that level of the job's distribution, conditional on
    the time that the job has run. Within a bin the logarithm of the run time is uniform; bin 0 stands for one second.
    A run time beyond the limit becomes the limit, and each job runs for at least one more second.

    Parameters
    ----------
    masses
        Probability of each bin of `histogram.EDGES`, shape (jobs, bins); they need not add up to 1.
    elapsed, limits
        Seconds that each job has run, and may run at most, shape (jobs,).
    otherwise
        Run time in seconds of a job without a prediction, or one that has outlived its whole distribution,
        shape (jobs,).
    draws
        Probability levels in [0, 1), shape (draws, jobs).

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
                while first < last:  # find the first bin whose cumulative mass is above `wanted`
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
