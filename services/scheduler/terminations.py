"""When the running jobs of a pass, and its candidates, may end."""

from functools import cache
from typing import NamedTuple

import numpy as np

from shadowtime.services.scheduler.conditioning import condition
from shadowtime.services.scheduler.release_walk import by_time
from shadowtime.shared.arrays import Floats, FloatTable, Integers
from shadowtime.shared.kernel import kernel
from shadowtime.shared.run_time_bins import BINS, RATIO


@cache
def refined_edges(points: int) -> Floats:
    """Return the edges of the common grid with each bin cut into `points` of equal logarithm; bin 0 stays whole.

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
    """Of each running job, shape (jobs,): size, start, and when it ends.

    That is the expected end for a job without a distribution; else the slot of its distribution, and the upper end of
    that in seconds from the start.
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

    A job without a distribution ends at its expected end; any other as `condition` has it, in bins as fine as the
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
    """Return the terminations of running jobs before `horizon`, as `walk` takes them. O(n log n), n of jobs * bins."""
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
