"""How often a job that comes to the bin of its request comes to the request itself, which bins cannot tell.

The user's last jobs say it, and everybody's where these are few. Bins alone put mass on either side of the request as
if the logarithm of a run time were uniform there.
"""

import math
from typing import Any

import numpy as np

from shadowtime.services.runtime_distribution.within_bins import KEPT, NEAR, RECENCY
from shadowtime.shared.arrays import Floats, IntegerTable
from shadowtime.shared.kernel import kernel
from shadowtime.shared.run_time_bins import EDGES, bin_of


@kernel
def share_at_request(jobs: IntegerTable, everybody: float, limit: float) -> float:
    """Return with which probability a job that runs until the bin of `limit` begins comes to the limit; O(jobs).

    Parameters
    ----------
    jobs
        The last ones of its user, as `similar_jobs.Jobs`, each counted by its share of its own request.
    everybody
        The same of everybody's jobs, which is taken for granted of `NEAR` jobs.
    limit
        The request in seconds, infinity where there is none.

    >>> jobs = np.array([[3600, 3600, 1, 7], [900, 900, 1, 7], [3000, 3600, 1, 7], [60, 3600, 1, 7]])
    >>> round(share_at_request(jobs, 0.5, 3600.0), 2), share_at_request(jobs[:0], 0.25, 3600.0)
    (0.7, 0.25)
    """
    begin = EDGES[bin_of(limit)] / limit
    at, count, weight = NEAR * everybody, NEAR, 1.0
    for age in range(len(jobs)):
        run_time, request = float(jobs[age, 0]), float(jobs[age, 1])
        if request > 0.0 and run_time > begin * request:
            count += weight
            if run_time >= request:
                at += weight
        weight *= RECENCY
    return at / count


class AtRequest:
    """How often everybody's jobs came to their request, of those that came to its bin, with forgetting; O(1) a job.

    >>> everybody = AtRequest()
    >>> for _ in range(1_000):
    ...     everybody.learn(3600, 3600.0)
    ...     everybody.learn(60, 3600.0)
    >>> everybody.apart(np.array([0.5, 0.3, 0.2]), np.zeros((0, 4), np.int64), 1.5).round(3).tolist()
    [0.5, 0.001, 0.499]
    """

    def __init__(self) -> None:
        self._counts = np.full(2, 2.0)  # before it, and at it

    def apart(self, outcomes: Floats, jobs: IntegerTable, limit: float) -> Floats:
        """Return outcomes, as of `shared.run_time_outcomes`, whose last two are told apart by how often they came true.

        Those of a job without a request, and of one that can only come to it, stay as they are.
        """
        if not 1.0 < limit < math.inf:
            return outcomes
        share = share_at_request(jobs, self._counts[1] / self._counts.sum(), limit)
        found, last = outcomes.copy(), outcomes[-2:].sum()
        found[-2:] = last * (1.0 - share), last * share
        return found

    def learn(self, run_time: int, limit: float) -> None:
        """Count a run time in seconds, if it came to the bin of its request."""
        if limit < math.inf and (run_time >= limit or bin_of(run_time) == bin_of(limit)):
            self._counts = KEPT * self._counts
            self._counts[int(run_time >= limit)] += 1.0

    def snapshot(self) -> Any:
        """Return the counts."""
        return self._counts.tolist()

    def restore(self, state: Any) -> None:
        """Take on what `snapshot` returned."""
        self._counts = np.array(state)
