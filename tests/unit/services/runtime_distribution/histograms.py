"""Counts of run times over the bins, done the plain way."""

import numpy as np

from shadowtime.shared.distributions.histogram import BINS, Masses, bin_of
from tests.unit.services.runtime_distribution.ended_jobs import WorkCancelled


def histogram(jobs: list[WorkCancelled], beyond: float, keep: float = 1.0) -> Masses:
    """Return the counts of jobs, oldest first."""
    counts = np.zeros(BINS)
    for job in jobs:
        counts *= keep
        if job.requested_time is not None and job.at_request:
            j = bin_of(job.requested_time)
            counts[j] += 1 - beyond
            counts[j + 1] += beyond
        else:
            counts[bin_of(job.run_time)] += 1
    return counts
