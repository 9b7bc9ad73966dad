"""The beginning of a published schedule: fast enough for every run of the tests."""

import numpy as np

from shadowtime.replayer.comparison.plan import RunPlan
from shadowtime.services.catalogue import configure
from tests.gates.archive import needs_archive, published, start_times, workload

JOBS = 3000


@needs_archive
def test_first_jobs_of_kth_start_as_published() -> None:
    """A start depends only on earlier submissions, so those before job 3,001 arrives are those of the full log."""
    prefix = workload("KTH", 100, "actual", JOBS)
    starts = start_times(RunPlan("easy", "KTH", prefix, configure("easy")))
    reference = published("KTH")
    assert np.array_equal(prefix.columns["submit_time"], reference.submit[:JOBS])
    assert np.array_equal(prefix.columns["processors"], reference.processors[:JOBS])
    known = reference.start[:JOBS] < reference.submit[JOBS]
    assert known.sum() > 0.99 * JOBS
    assert np.array_equal(starts[known], reference.start[:JOBS][known])
