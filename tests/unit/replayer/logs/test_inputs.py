"""Small invented files of each kind that was once refused or misread, with the right values."""

import pytest

from shadowtime.replayer.logs.formats import read_trace
from shadowtime.replayer.logs.workload import prepare
from shadowtime.replayer.options import Requests
from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.errors import TraceError

INPUTS = ROOT / "tests" / "support" / "samples" / "inputs"

RIGHT = {
    "torque_ranges.txt": [
        (501, 60, 3600, 32, 7200, 1, None),
        (502, 60, 3615, 4, 3600, 100, None),
        (503, 60, 3615, 28, 345_600, 1, 1),
    ],
    "pbs_reservation_removed.txt": [(7, 1, 60, 4, 3600, 1, None)],
    "lsb_acct.txt": [(1001, 10, 3600, 4, MAX_DURATION, 1, None)],
    "sge_accounting.txt": [(4711, 10, 3600, 4, 7200, 1, None)],
    "jobcomp_filetxt.txt": [(4711, 6, 1800, 32, 3600, 1, None)],
    "swf_no_header.txt": [(1, 65, 600, 1, 900, 0, None), (2, 0, 60, 4, 900, 0, None)],
    "swf_no_requests.txt": [(1, None, 600, 1, 600, 1, None), (2, None, 60, 4, 60, 1, None)],
    "swf_partial_executions.txt": [(1, 10, 300, 4, 600, 1, None), (2, 0, 60, 2, 600, 1, None)],
}
"""Number, wait, run time, processors, requested time, status and GPUs of each job."""


@pytest.mark.parametrize("name", RIGHT)
def test_each_input_has_the_right_values(name: str) -> None:
    requests: Requests = "actual" if name == "swf_no_requests.txt" else "as-logged"
    workload = prepare(read_trace(INPUTS / name), requests=requests)
    assert [
        (job.job_number, job.wait_time, job.run_time, job.processors, job.requested_time, job.status, job.gpus)
        for job in workload
    ] == RIGHT[name]


def test_a_log_without_requests_names_the_options() -> None:
    with pytest.raises(TraceError, match=r"--requests actual .* --requests queue-maximum"):
        prepare(read_trace(INPUTS / "swf_no_requests.txt"))
