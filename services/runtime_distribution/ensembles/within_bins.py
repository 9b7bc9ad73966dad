"""Distributions of run times within bins, from the user's last jobs, and near the request from all users' jobs.

Within a bin the logarithm of a run time is not uniform. For example, one job ends after 917 to 965 s each time, while
the bin is 643 to 1,157 s. Many jobs end in the last hundredth of their request. So each bin is cut into `PARTS`
parts. The bin of the request is cut at the `SHARES` of the request. All other bins are cut into parts of equal width in
logarithms.

The last bin is that of the request. Without a request, it is the last bin of the grid.

- `parts`, shape (last bin + 1, PARTS): the share of each part in its bin, rows adding up to 1;
- `fine`, shape (2 + PARTS · last bin,): masses of one second, of each part of bin 1 and up, and of the request.
"""

import math
from typing import Any, Final

import numpy as np

from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.distributions import EDGES, RATIO, bin_of, occupied_time
from shadowtime.shared.kernels import Floats, FloatTable, IntegerTable, kernel

PARTS: Final = 8

SHARES: Final = np.array([0.0, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 1.0])
"""Shares of the request at which the parts of its bin begin, and the last one ends. Parts below the bin are empty."""

POWERS: Final = np.array([RATIO ** (k / PARTS) for k in range(PARTS + 1)])
"""Beginning of each part of any other bin as a multiple of the bin's beginning, and the end of the last one."""

EVEN: Final = 0.5
"""Pseudo-counts in each bin, spread uniformly over the logarithm of the run time."""

NEAR: Final = 0.5
"""Pseudo-counts in the bin of the request, distributed like all users' jobs."""

RECENCY: Final = 0.8
"""Factor on the weight of a job for each later ended job of the user."""

KEPT: Final = 0.999
"""Factor on the counts of all users' jobs with each job, so that about the last 1,000 count."""


@kernel
def part_of(share: float) -> int:
    """Return the part of the request's bin, 0 to PARTS - 1, that contains a run time with this share of the request.

    >>> part_of(0.5), part_of(0.7), part_of(0.71), part_of(0.999)
    (0, 0, 1, 7)
    """
    k = 0
    while k < PARTS - 1 and share > SHARES[k + 1]:
        k += 1
    return k


@kernel
def edge(j: int, k: int, last: int, limit: float) -> float:
    """Return the beginning of part `k` of bin `j`, in seconds, which is the end of part k - 1.

    `last` is the bin of `limit`, the request in seconds, infinity without one.

    >>> edge(14, 4, 14, 3600.0), round(edge(14, 4, 14, np.inf))
    (3420.0, 2794)
    """
    if j == last and limit < math.inf:
        return float(max(SHARES[k] * limit, EDGES[j]))
    return float(EDGES[j] * POWERS[k])


@kernel
def parts_of(jobs: IntegerTable, near: Floats, limit: float) -> FloatTable:
    """Return the `parts` for a job whose request is `limit` seconds; O(jobs + bins).

    Parameters
    ----------
    jobs
        The user's last jobs, see `weighted_jobs.Jobs`. In the bin of the request a job counts by its run time as a
        share of its own request, in any other bin by its run time. A job that reached its request does not count.
    near
        Number of all users' jobs that ended in each part of the bin of their request; shape (PARTS,).

    >>> near, limit = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]), 3600.0
    >>> parts = parts_of(np.array([[920, 1800, 1, 7]] * 9), near, limit)
    >>> parts.shape, parts[12].round(2).tolist()
    ((15, 8), [0.01, 0.01, 0.01, 0.01, 0.91, 0.01, 0.01, 0.01])
    >>> parts[14].round(2).tolist()
    [0.17, 0.12, 0.11, 0.05, 0.03, 0.01, 0.0, 0.5]
    """
    last = bin_of(limit)
    bounded = limit < math.inf
    parts = np.full((last + 1, PARTS), EVEN / PARTS)
    if bounded and last > 0:
        whole = math.log(limit / EDGES[last])
        there = 0.0
        for k in range(PARTS):
            width = math.log(edge(last, k + 1, last, limit) / edge(last, k, last, limit))
            parts[last, k] = EVEN * width / whole if whole > 0.0 else EVEN / PARTS
            there += near[k] if width > 0.0 else 0.0

        for k in range(PARTS):
            if SHARES[k + 1] * limit > EDGES[last] and there > 0.0:
                parts[last, k] += NEAR * near[k] / there

    weight = 1.0
    for age in range(len(jobs)):
        run_time, request = float(jobs[age, 0]), float(jobs[age, 1])
        if run_time > 1.0 and (request < 0.0 or run_time < request):
            j = bin_of(run_time)
            if j < last or not bounded:
                into = PARTS * math.log(run_time / EDGES[j]) / math.log(RATIO)
                parts[j, min(max(math.ceil(into) - 1, 0), PARTS - 1)] += weight
            share = run_time / (limit if request < 0.0 else request)
            if bounded and last > 0 and share < 1.0 and share * limit > EDGES[last]:
                parts[last, part_of(share)] += weight

        weight *= RECENCY

    for j in range(last + 1):
        parts[j] /= parts[j].sum()
    return parts


@kernel
def spread(outcomes: Floats, parts: FloatTable) -> Floats:
    """Return the `fine` masses: the probability of each bin in `outcomes`, distributed over the parts of the bin.

    >>> spread(np.array([0.1, 0.8, 0.1]), np.array([[1.0] + [0.0] * 7, [0.5, 0.5] + [0.0] * 6])).round(1).tolist()
    [0.1, 0.4, 0.4, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.1]
    """
    last = len(parts) - 1
    fine = np.empty(2 + PARTS * last)
    fine[0], fine[-1] = outcomes[0], outcomes[last + 1]
    for j in range(1, last + 1):
        for k in range(PARTS):
            fine[1 + PARTS * (j - 1) + k] = outcomes[j] * parts[j, k]
    return fine


@kernel
def gathered(fine: Floats) -> Floats:
    """Return the probabilities of the outcomes from `fine` masses: the inverse of `spread`.

    >>> gathered(np.array([0.1, 0.4, 0.4, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.1])).round(1).tolist()
    [0.1, 0.8, 0.1]
    """
    last = (len(fine) - 2) // PARTS
    outcomes = np.empty(last + 2)
    outcomes[0], outcomes[-1] = fine[0], fine[-1]
    for j in range(1, last + 1):
        outcomes[j] = fine[1 + PARTS * (j - 1) : 1 + PARTS * j].sum()
    return outcomes


@kernel
def transformed_within(fine: Floats, run_time: float, limit: float) -> tuple[float, float]:
    """Return the probability integral transform of a run time from `fine` masses: the ends of an interval.

    The ends are equal unless the run time is an atom: one second or the limit.

    >>> fine = np.array([0.1] + [0.8] + [0.0] * 7 + [0.1])
    >>> [round(value, 3) for time in (1.0, 1.26**0.5, 1.5, 1.8) for value in transformed_within(fine, time, 1.8)]
    [0.0, 0.1, 0.5, 0.5, 0.9, 0.9, 0.9, 1.0]
    """
    time, last = occupied_time(run_time, limit), (len(fine) - 2) // PARTS
    if time >= limit:
        return min(fine[:-1].sum(), 1.0), 1.0
    j = bin_of(time)
    if j == 0:
        return 0.0, min(fine[0], 1.0)
    k = 0
    while k < PARTS - 1 and time > edge(j, k + 1, last, limit):
        k += 1
    low, high, at = edge(j, k, last, limit), edge(j, k + 1, last, limit), 1 + PARTS * (j - 1) + k
    within = min(max(math.log(time / low) / math.log(high / low), 0.0), 1.0) if low < high else 1.0
    begin = min(fine[:at].sum() + within * fine[at], 1.0)
    return begin, begin


@kernel
def quantiles_of(fine: Floats, limit: float, levels: Floats) -> Floats:
    """Return the quantiles of the run time in seconds, at most the limit, shape (levels,); O(parts).

    `levels` has the probabilities of the quantiles, ascending.

    >>> quantiles_of(np.array([0.1] + [0.8] + [0.0] * 7 + [0.1]), 1.8, np.array([0.05, 0.5, 0.95])).round(3).tolist()
    [1.0, 1.122, 1.8]
    """
    last, seconds = (len(fine) - 2) // PARTS, np.empty(len(levels))
    reached, at = fine[0], 0
    for level in range(len(levels)):
        while at < len(fine) - 1 and reached < levels[level]:
            at += 1
            reached += fine[at]
        if at == 0:
            seconds[level] = 1.0
        elif at == len(fine) - 1:
            seconds[level] = min(limit, float(MAX_DURATION))
        else:
            j, k = 1 + (at - 1) // PARTS, (at - 1) % PARTS
            low, high = edge(j, k, last, limit), edge(j, k + 1, last, limit)
            time = low * (high / low) ** (1.0 - (reached - levels[level]) / fine[at])
            seconds[level] = min(time, float(MAX_DURATION))

    return seconds


@kernel
def count_near(counts: Floats, run_time: float, limit: float) -> None:
    """Count a run time as `NearRequest.learn`, in place; `counts` has shape (PARTS,)."""
    if 1.0 < run_time < limit < math.inf and bin_of(run_time) == bin_of(limit):
        counts *= KEPT
        counts[part_of(run_time / limit)] += 1.0


class NearRequest:
    """Counts of all users' jobs that ended in each part of the bin of their request, with forgetting.

    >>> near = NearRequest()
    >>> for _ in range(1_000):
    ...     near.learn(3590, 3600.0)
    >>> int(near.counts.argmax())
    7
    """

    def __init__(self) -> None:
        self.counts = np.full(PARTS, 2.0)

    def learn(self, run_time: int, limit: float) -> None:
        """Count a run time in seconds if it is in the bin of its request, but below the request."""
        count_near(self.counts, float(run_time), limit)

    def snapshot(self) -> Any:
        """Return the counts."""
        return self.counts.tolist()

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self.counts = np.array(state)


# The share of jobs that reach their request, among the jobs that reach the bin of the request.
#
# A histogram cannot express this share: it puts mass on either side of the request as if the logarithm of a run time
# were uniform in that bin. The share is estimated from the user's last jobs, and from all users' jobs if the user has
# few.


@kernel
def share_at_request(jobs: IntegerTable, everybody: float, limit: float) -> float:
    """Return the probability that a job reaches its limit, given that it reaches the bin of the limit; O(jobs).

    Parameters
    ----------
    jobs
        The user's last jobs, see `weighted_jobs.Jobs`. Each counts by its run time as a share of its own request.
    everybody
        The same probability among all users' jobs, with the weight of `NEAR` jobs.
    limit
        The request in seconds, infinity without one.

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


@kernel
def apart_at_request(outcomes: Floats, jobs: IntegerTable, counts: Floats, limit: float) -> Floats:
    """Return outcomes as `AtRequest.apart`; `counts` has all users' ends in the bin of the request, and at it."""
    if not 1.0 < limit < math.inf:
        return outcomes
    share = share_at_request(jobs, counts[1] / (counts[0] + counts[1]), limit)
    result, last = outcomes.copy(), outcomes[-2] + outcomes[-1]
    result[-2], result[-1] = last * (1.0 - share), last * share
    return result


@kernel
def count_reached(counts: Floats, run_time: float, limit: float) -> None:
    """Count a run time as `AtRequest.learn`, in place; `counts` is as for `apart_at_request`."""
    if limit < math.inf and (run_time >= limit or bin_of(run_time) == bin_of(limit)):
        counts *= KEPT
        counts[1 if run_time >= limit else 0] += 1.0


class AtRequest:
    """The share of jobs that reached their request, among all users' jobs that reached its bin, with forgetting.

    O(1) for each job.

    >>> everybody = AtRequest()
    >>> for _ in range(1_000):
    ...     everybody.learn(3600, 3600.0)
    ...     everybody.learn(60, 3600.0)
    >>> everybody.apart(np.array([0.5, 0.3, 0.2]), np.zeros((0, 4), np.int64), 1.5).round(3).tolist()
    [0.5, 0.001, 0.499]
    """

    def __init__(self) -> None:
        self.counts = np.full(2, 2.0)
        """Number of ends in the bin of the request before it, and at the request."""

    def apart(self, outcomes: Floats, jobs: IntegerTable, limit: float) -> Floats:
        """Return outcomes with the mass of the last two split by the share of the user's jobs that reach their request.

        Outcomes are probabilities as in `shared.distributions.outcomes`; `jobs` is as for `share_at_request`. Outcomes
        stay unchanged if there is no request, or if it is at most one second, which any job reaches.
        """
        parted: Floats = apart_at_request(outcomes, jobs, self.counts, limit)
        return parted

    def learn(self, run_time: int, limit: float) -> None:
        """Count a run time in seconds if it reached the bin of its request."""
        count_reached(self.counts, float(run_time), limit)

    def snapshot(self) -> Any:
        """Return the counts."""
        return self.counts.tolist()

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self.counts = np.array(state)
