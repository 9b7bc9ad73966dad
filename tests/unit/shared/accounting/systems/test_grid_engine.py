"""The accounting file of Grid Engine, one of them written by Son of Grid Engine 8.1.9 of Debian 12."""

import json
from pathlib import Path

import pytest

from shadowtime.replayer.logs.formats import format_of, read_trace
from shadowtime.replayer.logs.swf import FIELDS
from shadowtime.replayer.logs.workload import prepare
from shadowtime.shared.accounting import Reading
from shadowtime.shared.accounting.systems import sge
from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.cluster import KILLED, LIMIT

REAL = ROOT / "tests" / "support" / "samples" / "gridengine-8.1.9.txt"


def line(
    *, failed: int = 0, code: int = 0, category: str = "-l h_rt=3600,h_vmem=2G,gpu=1 -pe mpi 4", task: str = "NONE"
) -> str:
    return (
        f"all.q:n01:phys:ann:run.sh:4711:sge:0:1600000000:1600000010:1600003610:{failed}:{code}:3600:3500.0:1.0:1000.0:"
        f"0:0:0:0:100:0:0:0.0:0:0:0:0:10:10:climate:defaultdepartment:mpi:4:0:14000.0:10.0:0.0:{category}:0.0:{task}:"
        "1000000.0:0:0\n"
    )


def test_a_real_file() -> None:
    workload = prepare(read_trace(REAL), recorded=True)
    runs = {job.job_number: (job.processors, job.wait_time, job.run_time, job.status) for job in workload}
    assert runs[7] == (4, 183, 3, 1)  # qsub -l h_rt=60 -pe mpi 4 sleep 3
    assert runs[5] == (1, 291, 6, LIMIT)  # qsub -l h_rt=0:0:5 sleep 30
    assert runs[6] == (1, 290, 0, 0)  # qsub false
    assert {200_000_003, 300_000_003, 400_000_003} <= runs.keys()  # qsub -t 1-3
    assert {job.job_number: job.requested_time for job in workload}[7] == 60
    assert len(workload) == 10
    assert not workload.skipped


def test_a_line_is_a_job(tmp_path: Path) -> None:
    path = tmp_path / "accounting"
    path.write_text("# Version: 8.6\n" + line())
    job = prepare(read_trace(path), recorded=True)[0]
    assert (job.processors, job.requested_time, job.memory, job.gpus) == (4, 3600, 8192, 4)
    assert (job.wait_time, job.run_time, job.status) == (10, 3600, 1)


@pytest.mark.parametrize(("category", "told"), [("-l h_rt=3600,gpu=2 -pe mpi 4", 1), ("-l h_rt=3600", 0)])
def test_a_note_says_that_gpus_count_for_each_slot(tmp_path: Path, category: str, told: int) -> None:
    path = tmp_path / "accounting"
    path.write_text(line(category=category))
    notes = [note for note in read_trace(path).notes if "for each slot" in note]
    assert [note.partition(",")[0] for note in notes] == ["1 job of several slots request GPUs"] * told


@pytest.mark.parametrize(
    ("failed", "code", "category", "status"),
    [
        (0, 1, "NONE", 0),
        (100, 137, "-l h_rt=3600", LIMIT),
        (100, 137, "-l h_rt=1:00:00", LIMIT),
        (37, 137, "-l h_rt=3600", LIMIT),
        (37, 137, "-l h_cpu=60", 0),
        (100, 137, "-l h_rt=7200", 5),
        (100, 143, "NONE", 5),
        (25, 0, "NONE", KILLED),
        (26, 1, "NONE", 0),
    ],
)
def test_how_jobs_ended(tmp_path: Path, failed: int, code: int, category: str, status: int) -> None:
    path = tmp_path / "accounting"
    path.write_text(line(failed=failed, code=code, category=category))
    assert sge.read(path, Reading()).column("status").tolist() == [status]


def test_tasks_of_parallel_jobs_and_damaged_lines_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "accounting"
    path.write_text(line() + line(task="1.n02") + line()[:200] + "\n" + line().replace("4711", "47l1"))
    rows = sge.read(path, Reading())
    assert (len(rows), rows.left_out, rows.odd.count) == (1, {"task of a parallel job": (1, "line 2")}, 2)


def test_no_limit_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "accounting"
    path.write_text(line(category="NONE"))
    trace = read_trace(path)
    assert trace.table[0, 8] == MAX_DURATION
    assert any("it states no run time limit (qsub -l h_rt)" in note for note in trace.notes)


def test_a_line_of_version_6_is_shorter(tmp_path: Path) -> None:
    path = tmp_path / "accounting"
    path.write_text(line().removesuffix(":0:0\n") + "\n")
    form = format_of(path)
    assert form is not None
    assert form.NAME == "Grid Engine"
    assert len(sge.read(path, Reading())) == 1


def test_a_line_of_gridware_is_json(tmp_path: Path) -> None:
    written = [line(), line(failed=100, code=137), line(task="1.n01"), line().replace(":4711:", ":4712:")]
    jobs: list[dict[str, object]] = []
    for text in written:
        values = dict(zip((*sge.FIELDS, "category", "iow", "pe_taskid"), text.split(":"), strict=False))
        numbers = {name: int(values[name]) for name in ("job_number", "task_number", "slots", "failed", "exit_status")}
        instants = {name: int(values[name]) * 10**6 + 415 for name in ("submission_time", "start_time", "end_time")}
        words = {name: values[name] for name in ("qname", "hostname", "owner", "job_name", "category", "pe_taskid")}
        jobs.append(numbers | instants | words | {"usage": {"rusage": {"ru_wallclock": 0}}})
    del jobs[0]["pe_taskid"]
    lines, json_lines = tmp_path / "accounting", tmp_path / "accounting.jsonl"
    lines.write_text("".join(written))
    json_lines.write_text("".join(f"{json.dumps(job)}\n" for job in jobs) + '{"job_number": 1\n')
    old, new = read_trace(lines), read_trace(json_lines, Reading(lenient=True))
    assert format_of(json_lines) is sge
    without_project = [at for at, name in enumerate(FIELDS) if name != "group_id"]
    assert new.table[:, without_project].tolist() == old.table[:, without_project].tolist()
    assert {name: column.tolist() for name, column in new.more.items()} == {
        name: column.tolist() for name, column in old.more.items()
    }
    assert [new.left_out[reason][0] for reason in ("task of a parallel job", "unreadable")] == [1, 1]
