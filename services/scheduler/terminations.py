"""When the running jobs of a pass, and its candidates, may end."""

import numpy as np

from services.scheduler.conditioning import condition
from services.scheduler.delay_probability import Floats, Table, in_order
from services.scheduler.expected_end import Column
from shared.kernel import kernel
from shared.run_time_bins import BINS

NO_REQUEST = 1 << 40
"""Requests from here on stand for none, as `job_table.NEVER` does."""


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

    A job without a distribution ends at its expected end; any other as `condition` has it. O(bins).
    """
    if slot < 0:
        return np.array([float(expected_end)]), np.array([1.0])
    request = float(requested_time) if requested_time < NO_REQUEST else np.inf
    times, probabilities = condition(histograms[slot], edges, float(now - start_time), request, censor)
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
    times, who, probabilities = np.empty(jobs * BINS), np.empty(jobs * BINS, dtype=np.int64), np.empty(jobs * BINS)
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
