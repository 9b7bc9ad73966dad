"""What can become of a job as trees tell it: an end in a bin of run times, or at its request."""

import math

from shadowtime.services.runtime_distribution.remembered_jobs import UNKNOWN
from shadowtime.shared.arrays import Floats
from shadowtime.shared.kernel import kernel
from shadowtime.shared.run_time_bins import BINS, EDGES, Masses, bin_of


@kernel
def bin_masses(outcomes: Floats, limit: float) -> Masses:
    """Return the distribution over bins that gives each outcome its mass; the request bears what lies beyond it.

    Parameters
    ----------
    outcomes
        Mass of an end in each bin, and last of one at the limit; shape (BINS + 1,).
    limit
        The request in seconds; infinity where there is none.

    >>> import numpy as np
    >>> outcomes = np.zeros(BINS + 1)
    >>> outcomes[[1, 2, -1]] = 0.5, 0.2, 0.3
    >>> masses = bin_masses(outcomes, 1.8**1.5)
    >>> masses[:4].round(3).tolist()
    [0.0, 0.5, 0.4, 0.1]
    """
    masses = outcomes[:BINS].copy()
    if limit < EDGES[BINS]:
        last = bin_of(limit)
        beyond = masses[last + 1 :].sum() + outcomes[BINS]
        masses[last + 1 :] = 0.0
        below = 1.0 if last == 0 else math.log(limit / EDGES[last]) / math.log(EDGES[last + 1] / EDGES[last])
        taken = beyond if below <= 0.0 else min(beyond, masses[last] * (1.0 / below - 1.0))
        masses[last] += taken  # of what lies in the bin of the request, a part lies beyond the request
        masses[min(last + 1, BINS - 1)] += beyond - taken
    masses /= masses.sum()
    return masses


def scale(requested_time: int) -> float:
    """Return what run times are shares of, in seconds: the request, or an hour where there is none."""
    return 3600.0 if requested_time == UNKNOWN else float(requested_time)


def outcome(run_time: int, requested_time: int) -> int:
    """Return the bin in which a job ended, or `BINS` at its request; times in seconds.

    >>> outcome(1000, 3600), outcome(3600, 3600) == BINS
    (12, True)
    """
    return BINS if UNKNOWN != requested_time <= run_time else bin_of(max(run_time, 1))
