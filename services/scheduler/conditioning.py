"""What is left of a run-time distribution for a job that has run for a while and has a request."""

import numpy as np

from shadowtime.shared.arrays import Floats
from shadowtime.shared.kernel import kernel
from shadowtime.shared.run_time_bins import EDGES, Masses


@kernel
def condition(masses: Floats, edges: Floats, elapsed: float, request: float, censor: bool) -> tuple[Floats, Floats]:
    """Return when a job may end, in seconds after its start and rising, and with which probabilities.

    Within a bin the logarithm of the run time is uniform, so a bin that is cut keeps the share of its logarithm; what
    is left is scaled to 1. Each bin ends the job at its upper edge, cut at the request. A job that has reached its
    request is taken to run for one more second, and one that has outlived its whole distribution to end at that limit
    (docs/algorithms.md#limits-of-a-prediction). O(bins).

    Parameters
    ----------
    masses
        Probability of each bin, shape (bins,); they need not add up to 1.
    edges
        Edges of the bins in seconds, shape (at least bins + 1,), rising.
    elapsed, request
        Seconds that the job has run, and asked for; infinity for a job without request.
    censor
        Whether what lies above the request happens at the request, where the job is killed; else it is left out.

    Examples
    --------
    >>> edges = np.array([1.0, 10.0, 100.0, 1000.0, 10000.0])
    >>> times, probabilities = condition(np.array([0.4, 0.3, 0.2, 0.1]), edges, 1.0, 100.0, False)
    >>> times.tolist(), probabilities.round(4).tolist()
    ([10.0, 100.0], [0.5714, 0.4286])

    References
    ----------
    docs/algorithms.md#probabilistic-backfilling (Nissimov 2007, Algorithm 1; the guards are ours).
    """
    upper = max(request, elapsed + 1.0)
    times = np.empty(len(masses))
    left = np.empty(len(masses))
    count, total = 0, 0.0
    for j in range(len(masses)):
        low, high = edges[j], edges[j + 1]
        if masses[j] <= 0.0 or high <= elapsed:
            continue
        if low >= upper:
            share = 1.0 if censor else 0.0
        elif low == 0.0:
            share = 1.0
        else:
            cut = high if censor else min(high, upper)
            share = np.log(cut / max(low, elapsed)) / np.log(high / low)
        if share > 0.0:
            end = min(high, upper)
            if count == 0 or times[count - 1] < end:
                times[count] = end
                left[count] = 0.0
                count += 1
            left[count - 1] += masses[j] * share
            total += masses[j] * share
    if total <= 0.0:
        return np.array([upper]), np.array([1.0])
    return times[:count].copy(), left[:count] / total


def conditional(masses: Masses, elapsed: float, request: float, *, censor: bool = False) -> tuple[Masses, Masses]:
    """Return `condition` on the common grid of run times.

    >>> times, probabilities = conditional(np.array([0.0, 0.5, 0.0, 0.5]), 2.0, 3600.0)
    >>> times.round(3).tolist(), probabilities.tolist()
    ([5.832], [1.0])
    """
    return condition(np.asarray(masses, dtype=np.float64), EDGES, elapsed, request, censor)
