"""Accounting files of OpenPBS."""

from pathlib import Path

import pytest

from shadowtime.replayer.logs.formats import read_trace
from shadowtime.replayer.logs.workload import Workload, prepare
from shadowtime.shared.errors import TraceError

ASKED = (
    'user=eve group=users account="phys 1" project=_pbs_project_default jobname=sim queue=workq ctime=1795325400 '
    "qtime=1795325400 etime=1795325410 Resource_List.mem=8gb Resource_List.ncpus=8 Resource_List.nodect=2 "
    "Resource_List.place=pack:excl Resource_List.walltime=01:00:00"
)
RAN = f"{ASKED} start=1795325480 exec_host=n1/0*4+n2/0*4"
LOG = f"""11/22/2026 05:30:00;Q;7.head;queue=workq
11/22/2026 05:31:20;S;7.head;{RAN}
11/22/2026 05:32:20;E;7.head;{RAN} session=9 end=1795325540 Exit_status=0 resources_used.walltime=00:00:55 run_count=1
11/22/2026 05:40:00;L;license;floating license hour:3 day:3 month:3 max:10
11/22/2026 05:31:20;S;8[3].head;{RAN}
11/22/2026 05:31:30;D;8[3].head;requestor=root@head
11/22/2026 05:31:33;E;8[].head;{RAN} end=1795325493 Exit_status=0
11/22/2026 05:31:33;E;8[3].head;{RAN} end=1795325493 Exit_status=271 resources_used.walltime=00:00:13
11/22/2026 05:31:20;S;9.head;{RAN}
11/22/2026 05:31:30;R;9.head;{RAN} Exit_status=-11
11/22/2026 05:31:40;S;9.head;{RAN.replace("start=1795325480", "start=1795325500")}
11/22/2026 06:31:45;E;9.head;{RAN.replace("start=1795325480", "start=1795325500")} end=1795329105 Exit_status=-29
11/22/2026 05:30:00;Q;10.head;{ASKED}
11/22/2026 05:30:50;D;10.head;requestor=eve@head
11/22/2026 05:30:00;Q;11.head;queue=workq
11/22/2026 05:30:00;D;12.head;requestor=eve@head
"""


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
    assert workload.skipped == {"still waiting": 1, "deleted, and nothing else told": 1}


def test_a_line_that_is_no_record_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(LOG + "11/22/2026;what\n")
    with pytest.raises(TraceError, match="line 17: no record of PBS"):
        read_trace(path)
