"""Accounting files of Torque, which have the form of PBS but other sizes and exit statuses."""

from pathlib import Path

import pytest

from shadowtime.replayer.logs.formats import read_trace
from shadowtime.replayer.logs.workload import Workload, prepare
from shadowtime.shared.accounting.pbs_records import numbered
from shadowtime.shared.cluster import KILLED, LIMIT

TIMES = "ctime=1506952800 qtime=1506952800 etime=1506952800 start=1506952860 owner=u1@login"
ENDED = "session=2 end=1506956475 resources_used.walltime=01:00:15"


def record(job: str, attributes: str, kind: str = "E") -> str:
    return f"10/02/2017 11:01:15;{kind};{job};user=u1 group=g1 jobname=a queue=batch {attributes}\n"


def read(tmp_path: Path, text: str) -> Workload:
    path = tmp_path / "20171002"
    path.write_text(text)
    return prepare(read_trace(path), recorded=True)


@pytest.mark.parametrize(
    ("sized", "processors", "nodes", "gpus"),
    [
        ("exec_host=c1/0-15+c2/0-15 Resource_List.nodes=2:ppn=16 total_execution_slots=32", 32, 2, None),
        ("exec_host=c3/0-1,5,11 Resource_List.nodect=1 Resource_List.nodes=1:ppn=4", 4, 1, None),
        ("exec_host=c3/11 Resource_List.nodect=1", 1, 1, None),
        ("exec_host=c3/0+c3/1+c4/0+c4/1 Resource_List.nodes=2:ppn=2", 4, 2, None),
        ("exec_host=2/0-31+3/0-31", 64, None, None),  # names of hosts may be numbers
        ("exec_host=c3/0-2 total_execution_slots=3 Resource_List.ncpus=8", 3, None, None),
        ("exec_host=c1+c2 Resource_List.nodes=2:ppn=16", 32, 2, None),  # hosts without slots
        ("Resource_List.nodes=1:ppn=28:gpus=1:default Resource_List.nodect=1", 28, 1, 1),
        ("Resource_List.nodes=2:ppn=4:gpus=2+c7:ppn=8#shared", 16, 3, 4),
        ("Resource_List.neednodes=c1:ppn=2+c3:ppn=2", 4, 2, None),
        ("Resource_List.procs=64", 64, None, None),
        ("total_execution_slots=12 unique_node_count=3", 12, None, None),
        # a Cray, where `exec_host` is the node that starts the job
        ("exec_host=nid00007/24 Resource_List.mppwidth=512 Resource_List.mppnppn=16", 512, 32, None),
        ("exec_host=login1/0 Resource_List.mppwidth=32 Resource_List.mppdepth=4 Resource_List.nodect=1", 128, 1, None),
        ("exec_host=login1/0 Resource_List.size=1200", 1200, None, None),
    ],
)
def test_sizes(tmp_path: Path, sized: str, processors: int, nodes: int | None, gpus: int | None) -> None:
    job = read(tmp_path, record("501.head", f"{TIMES} {sized} Resource_List.walltime=02:00:00 {ENDED}"))[0]
    assert (job.processors, job.nodes, job.gpus, job.run_time) == (processors, nodes, gpus, 3615)


@pytest.mark.parametrize(
    ("code", "of", "status"),
    [
        (-11, "owner=u1@login", LIMIT),
        (-10, "owner=u1@login", 0),
        (-12, "owner=u1@login", 0),
        (-13, "owner=u1@login", KILLED),
        (-29, "owner=u1@login", 0),
        (-11, "exec_host=c1/0-3", LIMIT),
        (-11, "Resource_List.nodes=1:ppn=4", LIMIT),
        (-11, "Resource_List.nodes=1:ppn=4 Resource_List.place=free", KILLED),
        (-11, "exec_host=n1/0*4", KILLED),
        (-11, "project=_pbs_project_default", KILLED),
        (-10, "exec_host=n1/0*4", 0),
        (-29, "exec_host=n1/0*4", LIMIT),
    ],
)
def test_exit_statuses_mean_what_the_system_means(tmp_path: Path, code: int, of: str, status: int) -> None:
    times = TIMES.removesuffix(" owner=u1@login")
    text = record("501.head", f"{times} {of} Resource_List.ncpus=4 Resource_List.walltime=1:00:00 Exit_status={code}")
    assert read(tmp_path, text.replace("Exit_status", f"{ENDED} Exit_status"))[0].status == status


@pytest.mark.parametrize("of", ["owner=u1@login", "exec_host=n1/0*4"])
@pytest.mark.parametrize("code", [265, 271])
@pytest.mark.parametrize(("limit", "status"), [("1:00:00", LIMIT), ("2:00:00", 5), ("none", 5)])
def test_a_signal_after_the_limit_has_passed(tmp_path: Path, of: str, code: int, limit: str, status: int) -> None:
    """Moab, and PBS before version 14, end a job at its limit by a signal, as a user does."""
    times = TIMES.removesuffix(" owner=u1@login")
    walltime = "" if limit == "none" else f"Resource_List.walltime={limit}"
    text = record("501.head", f"{times} {of} Resource_List.ncpus=4 {walltime} {ENDED} Exit_status={code}")
    assert read(tmp_path, text)[0].status == status


def test_a_record_lists_the_hosts_of_a_large_machine(tmp_path: Path) -> None:
    """A line of more than 64 kB had refused the whole file."""
    hosts = "+".join(f"r{rack}i{node}n0/0*36" for rack in range(100) for node in range(70))
    vnodes = "+".join(f"(r{rack}i{node}n0:ncpus=36)" for rack in range(100) for node in range(70))
    text = record("501.head", f"{TIMES} exec_host={hosts} exec_vnode={vnodes} Resource_List.walltime=02:00:00 {ENDED}")
    assert len(text) > 2**17
    assert read(tmp_path, text)[0].processors == 7000 * 36


def test_differing_sizes_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "20171002"
    path.write_text(record("501.head", f"{TIMES} exec_host=c1/0-3 Resource_List.nodes=1:ppn=16 {ENDED}"))
    trace = read_trace(path)
    assert "1 job held another number" not in "".join(trace.notes)  # without the server's count the larger counts
    path.write_text(
        record("501.head", f"{TIMES} exec_host=c1/0-3 Resource_List.nodes=1:ppn=16 total_execution_slots=4 {ENDED}")
    )
    assert any("1 job held another number" in note and "501.head, line 1" in note for note in read_trace(path).notes)


def test_tasks_of_old_arrays_have_numbers_of_their_own(tmp_path: Path) -> None:
    sized = f"{TIMES} exec_host=c1/0-3 {ENDED}"
    workload = read(tmp_path, record("600-4.head", sized) + record("600[5].head", sized) + record("600[].head", sized))
    assert [job.job_number for job in workload] == [500_000_600, 600_000_600]
    assert numbered("600-4.head") == (600, 4)


@pytest.mark.parametrize("kind", ["K", "A", "D", "U", "B"])
@pytest.mark.parametrize("number", ["R12.head", "S12.head", "M3.head", "R12"])
def test_records_of_reservations_are_left_out(tmp_path: Path, kind: str, number: str) -> None:
    path = tmp_path / "20171002"
    path.write_text(record("501.head", f"{TIMES} exec_host=c1/0-3 {ENDED}") + record(number, "requestor=x", kind))
    trace = read_trace(path)
    assert len(trace.table) == 1
    assert trace.left_out["about a reservation"] == (1, "line 2")


def test_times_of_0_are_missing(tmp_path: Path) -> None:
    """A job that was run while it was held has no time of eligibility, and one that never ran has no start."""
    sized = f"exec_host=c1/0-3 Resource_List.walltime=02:00:00 {ENDED}"
    held, never = TIMES.replace("etime=1506952800", "etime=0"), TIMES.replace("start=1506952860", "start=0")
    queued = record("501.head", held.partition(" start=")[0], "Q")  # as PBS Pro writes each job
    jobs = read(tmp_path, queued + record("501.head", f"{held} {sized}") + record("502.head", f"{never} {sized}"))
    assert [(job.submit_time, job.wait_time) for job in jobs] == [(0, 60), (0, None)]


def test_a_running_job_that_the_server_aborts_without_an_end_is_named(tmp_path: Path) -> None:
    sized = f"{TIMES} exec_host=c1/0-3 Resource_List.walltime=02:00:00"
    text = record("501.head", f"{sized} {ENDED}") + record("502.head", sized, "S") + record("502.head", sized, "A")
    assert read(tmp_path, text).skipped == {"deleted while it ran; the file has no record of its end": 1}


def test_what_select_leaves_to_defaults_is_no_difference(tmp_path: Path) -> None:
    """As PBS Pro writes a job of `-l select=2:mpiprocs=36`, if a chunk has 36 processors unless it states another."""
    path = tmp_path / "20171002"
    sized = "exec_host=r1/0*36+r2/0*36 Resource_List.ncpus=72 Resource_List.select=2:mpiprocs=36"
    path.write_text(record("501.head", f"{TIMES} {sized} {ENDED}"))
    assert read_trace(path).notes == ()


@pytest.mark.parametrize(
    ("hours", "text"), [(-7, ", although the dates of ended jobs are 7 h behind UTC;"), (0, "UTC;")]
)
def test_a_clock_that_is_not_utc_is_noted(tmp_path: Path, hours: int, text: str) -> None:
    """Only the dates of deletions count, but each record of an end has its date and its Unix time."""
    path = tmp_path / "20171002"
    path.write_text(
        "10/02/2017 10:00:00;Q;502.head;queue=batch\n10/02/2017 10:05:00;D;502.head;requestor=eve@head\n"
        + record("501.head", f"{TIMES} exec_host=c1/0-3 end={1506942077 - 3600 * hours}")
    )
    (note,) = read_trace(path).notes
    assert text in note


def test_a_cray_of_pbs_pro_has_no_differing_sizes(tmp_path: Path) -> None:
    sized = "exec_host=nid7/24 Resource_List.mppwidth=512 Resource_List.ncpus=1 Resource_List.select=1"
    path = tmp_path / "20171002"
    path.write_text(record("501.sdb", f"{TIMES} {sized} Resource_List.place=pack {ENDED}"))
    trace = read_trace(path)
    assert (prepare(trace, recorded=True)[0].processors, trace.notes) == (512, ())


def test_times_with_fractions_as_cobalt_writes_them(tmp_path: Path) -> None:
    times = "ctime=1506952800.62 etime=1506952801.0 start=1506952860.9 end=1506956475.5"
    sized = 'exec_host="0-31,40-71" Resource_List.ncpus=4096 Resource_List.nodect=64 Resource_List.walltime=1:00:00'
    job = read(tmp_path, record("501", f"{times} {sized} resources_used.walltime=1:00:15"))[0]
    assert (job.submit_time, job.wait_time, job.run_time, job.processors) == (1, 59, 3615, 4096)
