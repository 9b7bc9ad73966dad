"""Possible ends of the running jobs and candidates of a pass, with their probabilities."""

from functools import cache
from typing import NamedTuple

import numpy as np

from shadowtime.services.scheduler.kernels.release_walk import by_time
from shadowtime.shared.distributions import BINS, RATIO
from shadowtime.shared.kernels import Floats, FloatTable, Integers, kernel

# The run-time distribution of a job, given its elapsed time and its request.


@kernel
def condition(masses: Floats, edges: Floats, elapsed: float, request: float, censor: bool) -> tuple[Floats, Floats]:
    """Return the possible ends of a job, in seconds after its start and rising, and their probabilities.

    Within a bin the logarithm of the run time is uniform. A bin that is cut keeps mass in proportion to its remaining
    logarithmic width. The masses left are scaled to add up to 1. In each bin, the job ends at the upper edge or at its
    request, if that is earlier. A job that has reached its request is taken to run for one more second. A job that has
    outlived its whole distribution ends at its request, or in one second if that is later
    (docs/algorithms.md#limits-of-a-prediction). O(bins).

    Parameters
    ----------
    masses
        Probability of each bin, shape (bins,); they need not add up to 1.
    edges
        Edges of the bins in seconds, shape (at least bins + 1,), rising.
    elapsed, request
        Seconds that the job has run, and has requested; infinity for a job without a request.
    censor
        Whether mass above the request counts as an end at the request, where the job is killed. If not, it is dropped.

    >>> edges = np.array([1.0, 10.0, 100.0, 1000.0, 10000.0])
    >>> times, probabilities = condition(np.array([0.4, 0.3, 0.2, 0.1]), edges, 1.0, 100.0, False)
    >>> times.tolist(), probabilities.round(4).tolist()
    ([10.0, 100.0], [0.5714, 0.4286])

    References: docs/algorithms.md#probabilistic-backfilling (Nissimov 2007, Algorithm 1; the guards are ours).
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


@cache
def refined_edges(points: int) -> Floats:
    """Return the edges of the common grid with each bin but bin 0 cut into `points` parts of equal logarithmic width.

    >>> refined_edges(2)[:5].round(3).tolist()
    [0.0, 1.0, 1.342, 1.8, 2.415]
    """
    return np.array([0.0, *(RATIO ** (j / points) for j in range((BINS - 1) * points + 1))])


class Distributions(NamedTuple):
    """Run-time distributions by slot, shape (slots, bins), on a grid with these `edges`; `censor` as in `condition`."""

    histograms: FloatTable
    edges: Floats
    censor: bool


class RunningEnds(NamedTuple):
    """Processors, start and possible end of each running job, shape (jobs,).

    A job without a distribution ends at its expected end. For any other job, `slots` has the slot of its distribution,
    and `limits` the distribution's upper end in seconds after the start.
    """

    processors: Integers
    start_times: Integers
    expected_ends: Integers
    limits: Integers
    slots: Integers


@kernel
def ends_of(
    now: int, start_time: int, expected_end: int, limit: int, slot: int, distributions: Distributions
) -> tuple[Floats, Floats]:
    """Return the times at which a job may end, rising, and their probabilities.

    A job without a distribution ends at its expected end. Any other job ends as `condition` returns, in bins as fine as
    `edges`. O(bins).
    """
    if slot < 0:
        return np.array([float(expected_end)]), np.array([1.0])
    masses, bins = distributions.histograms[slot], distributions.histograms.shape[1]
    edges = distributions.edges
    points = (len(edges) - 2) // (bins - 1)
    if points > 1:
        fine = np.empty(len(edges) - 1)
        fine[0] = masses[0]
        for j in range(1, bins):
            fine[(j - 1) * points + 1 : j * points + 1] = masses[j] / points
        masses = fine

    times, probabilities = condition(masses, edges, float(now - start_time), float(limit), distributions.censor)
    return start_time + times, probabilities


@kernel
def terminations(
    now: int, horizon: float, running: RunningEnds, distributions: Distributions
) -> tuple[Floats, Integers, Floats]:
    """Return the terminations of running jobs before `horizon`, arguments of `walk`. O(n log n), n = jobs * bins."""
    jobs = len(running.slots)
    most = jobs * len(distributions.edges)
    times, who, probabilities = np.empty(most), np.empty(most, dtype=np.int64), np.empty(most)
    count = 0
    for job in range(jobs):
        ends, weights = ends_of(
            now,
            running.start_times[job],
            running.expected_ends[job],
            running.limits[job],
            running.slots[job],
            distributions,
        )
        for k in range(len(ends)):
            if ends[k] >= horizon:
                break
            times[count], who[count], probabilities[count] = ends[k], job, weights[k]
            count += 1

    return by_time(times[:count], who[:count], probabilities[:count])
