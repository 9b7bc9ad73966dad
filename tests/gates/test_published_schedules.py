"""EASY with actual run times starts every job of two full logs at the published second."""

import numpy as np
import pytest

from tests.gates.archive import needs_archive, plan, published, start_times

pytestmark = [pytest.mark.archive, needs_archive]


@pytest.mark.parametrize(("trace", "processors", "jobs"), [("KTH", 100, 28_481), ("CTC", 338, 77_199)])
def test_every_start_is_as_published(trace: str, processors: int, jobs: int) -> None:
    run, reference = plan(trace, processors, "easy", "actual"), published(trace)
    assert len(run.workload) == len(reference.start) == jobs
    assert np.array_equal(run.workload.columns["submit_time"], reference.submit)
    assert np.array_equal(run.workload.columns["processors"], reference.processors)
    different = np.flatnonzero(start_times(run) != reference.start)
    assert len(different) == 0, f"job numbers {run.workload.columns['job_number'][different][:10].tolist()}"
