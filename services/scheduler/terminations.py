"""When the running jobs of a pass, and its candidates, may end."""

from functools import cache

import numpy as np

from shadowtime.services.scheduler.conditioning import condition
from shadowtime.services.scheduler.expected_end import Column
from shadowtime.services.scheduler.release_walk import Floats, Table, in_order
from shadowtime.shared.kernel import kernel
from shadowtime.shared.run_time_bins import BINS, RATIO


@cache
def refined_edges(points: int) -> Floats:
    """Return the edges of the common grid with each bin cut into `points` of equal logarithm; bin 0 stays whole.

    >>> refined_edges(2)[:5].round(3).tolist()
    [0.0, 1.0, 1.342, 1.8, 2.415]
    """
    return np.array([0.0, *(RATIO ** (j / points) for j in range((BINS - 1) * points + 1))])


@kernel(
    "Tuple((float64[::1], float64[::1]))(int64, int64, int64, int64, int64, float64[:, ::1], float64[::1], boolean)"
)
def ends_of(
    now: int,
    start_time: int,
    expected_end: int,
    requested_time: int,
    slot: int,
    histograms: Table,
    edges: Floats,
    censor: bool,
) -> tuple[Floats, Floats]:
    """Return the times at which a job may end, rising, and their probabilities.

    A job without a distribution ends at its expected end; any other as `condition` has it, in bins as fine as the
    `edges`. O(bins).
    """
    if slot < 0:
        return np.array([float(expected_end)]), np.array([1.0])
    masses, bins = histograms[slot], histograms.shape[1]
    points = (len(edges) - 2) // (bins - 1)
    if points > 1:
        fine = np.empty(len(edges) - 1)
        fine[0] = masses[0]
        for j in range(1, bins):
            fine[(j - 1) * points + 1 : j * points + 1] = masses[j] / points
        masses = fine
    times, probabilities = condition(masses, edges, float(now - start_time), float(requested_time), censor)
    return start_time + times, probabilities


@kernel(
    "Tuple((float64[::1], int64[::1], float64[::1]))"
    "(int64, float64, int64[::1], int64[::1], int64[::1], int64[::1], float64[:, ::1], float64[::1], boolean)"
)
def terminations(
    now: int,
    horizon: float,
    start_times: Column,
    expected: Column,
    requested_times: Column,
    slots: Column,
    histograms: Table,
    edges: Floats,
    censor: bool,
) -> tuple[Floats, Column, Floats]:
    """Return the terminations of running jobs before `horizon`, as `walk` takes them. O(n log n), n of jobs * bins."""
    jobs = len(start_times)
    most = jobs * len(edges)
    times, who, probabilities = np.empty(most), np.empty(most, dtype=np.int64), np.empty(most)
    count = 0
    for job in range(jobs):
        ends, weights = ends_of(
            now, start_times[job], expected[job], requested_times[job], slots[job], histograms, edges, censor
        )
        for k in range(len(ends)):
            if ends[k] >= horizon:
                break
            times[count], who[count], probabilities[count] = ends[k], job, weights[k]
            count += 1
    return in_order(times[:count], who[:count], probabilities[:count])
