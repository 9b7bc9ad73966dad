"""Accounting files of OpenPBS."""

from pathlib import Path

import pytest

from shadowtime.replayer.logs.formats import read_trace
from shadowtime.replayer.logs.workload import Workload, prepare
from shadowtime.shared.accounting import Reading
from shadowtime.shared.errors import TraceError
from tests.support.pbs_sample import LOG


@pytest.fixture
def workload(tmp_path: Path) -> Workload:
    path = tmp_path / "20261122"
    path.write_text(LOG)
    return prepare(read_trace(path), recorded=True)


def test_each_life_is_a_job_as_it_was(workload: Workload) -> None:
    told = {job.job_number: (job.submit_time, job.wait_time, job.run_time, job.status) for job in workload}
    assert told == {
        7: (10, 70, 55, 1),
        400_000_008: (10, 70, 13, 5),
        9: (10, 70, 10, 101),
        1_000_000_009: (90, 10, 3605, 100),  # waits again from its rerun on
        10: (10, None, -1, 5),
    }


def test_what_a_job_asks_for_is_read(workload: Workload) -> None:
    job = workload[0]
    assert (job.processors, job.nodes, job.memory, job.requested_time, job.whole_nodes) == (8, 2, 8192, 3600, 1)
    assert job.handed_in == 0


def test_what_is_left_out_is_counted(workload: Workload) -> None:
    assert workload.skipped == {"still waiting": 1, "deleted; the file has no other record of the job": 1}


def test_a_line_that_is_no_record_is_left_out_and_named(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(LOG + "11/22/2026;what\n")
    trace = read_trace(path)
    assert len(trace.table) == 5
    assert trace.left_out["unreadable"] == (1, "line 17: not a record of PBS: '11/22/2026;what'")
    path.write_text(LOG + "11/22/2026;what\n" * 3)
    with pytest.raises(TraceError, match=r"3 of 19 rows cannot be read, more than a tenth: line 17: .*--lenient"):
        read_trace(path)
    assert len(read_trace(path, Reading(lenient=True)).table) == 5


def test_a_first_line_that_is_no_record_does_not_hide_the_format(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("copied from head\n" + LOG)
    assert len(read_trace(path).table) == 5
