"""Slurm's text file of completed jobs."""

from pathlib import Path

import pytest

from shadowtime.shared.accounting import UNKNOWN, Reading
from shadowtime.shared.accounting.systems import filetxt
from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.cluster import KILLED

LINE = (
    "JobId=4711 UserId=ann(1001) GroupId=phys(100) Name=run JobState=COMPLETED Partition=batch TimeLimit=60 "
    "StartTime=2014-03-09T00:00:15 EndTime=2014-03-09T00:30:15 NodeList=n[01-02] NodeCnt=2 ProcCnt=32 WorkDir=/x "
    "ReservationName= Gres= Account=phys QOS=normal WcKey= Cluster=c1 SubmitTime=2014-03-09T00:00:09 "
    "EligibleTime=2014-03-09T00:00:10 DerivedExitCode=0:0 ExitCode=0:0 \n"
)


def read(tmp_path: Path, text: str, time_zone: str | None = None) -> dict[str, int]:
    path = tmp_path / "jobcomp.log"
    path.write_text(text)
    rows = filetxt.read(path, Reading(time_zone=time_zone))
    assert (len(rows), rows.odd.count) == (1, 0)
    names = ("job_number", "submit", "eligible", "start", "end", "processors", "nodes", "gpus", "limit", "status")
    return {name: int(rows.column(name)[0]) for name in names}


def test_a_line_is_a_job(tmp_path: Path) -> None:
    assert read(tmp_path, LINE) == {
        "job_number": 4711,
        "submit": 1_394_323_209,
        "eligible": 1_394_323_210,
        "start": 1_394_323_215,
        "end": 1_394_325_015,
        "processors": 32,
        "nodes": 2,
        "gpus": UNKNOWN,
        "limit": 3600,
        "status": 1,
    }
    assert read(tmp_path, LINE, "Europe/Berlin")["submit"] == 1_394_323_209 - 3600


@pytest.mark.parametrize(
    ("old", "new", "field", "value"),
    [
        ("Name=run", "Name=my JobState=x Partition=y run", "processors", 32),
        ("WorkDir=/x", "WorkDir=/my files Account=none", "status", 1),
        ("TimeLimit=60", "TimeLimit=UNLIMITED", "limit", MAX_DURATION),
        ("Gres=", "Gres=gpu:a100:2", "gpus", 4),
        ("DerivedExitCode", "ArrayJobId=4700 ArrayTaskId=3 DerivedExitCode", "job_number", 400_004_700),
        ("StartTime=2014-03-09T00:00:15", "StartTime=Unknown", "start", UNKNOWN),
        ("COMPLETED", "CANCELLED", "status", 5),
        ("COMPLETED", "PENDING", "status", KILLED),  # as Slurm 22.05 and 25.11 write a life that a requeue ended
        ("COMPLETED", "PENDING", "end", 1_394_325_015),
    ],
)
def test_values(tmp_path: Path, old: str, new: str, field: str, value: int) -> None:
    assert read(tmp_path, LINE.replace(old, new, 1))[field] == value


def test_a_job_that_never_started_has_the_size_that_it_requests(tmp_path: Path) -> None:
    """As Slurm 22.05 writes it."""
    never = LINE.replace("n[01-02] NodeCnt=2 ProcCnt=32", "(null) NodeCnt=0 ProcCnt=0").replace("00:30:15", "00:00:15")
    job = read(tmp_path, never.replace("Gres=", "Tres=cpu=64,mem=57600M,node=1,billing=64"))
    assert (job["start"], job["processors"], job["nodes"]) == (UNKNOWN, 64, 1)


def test_lines_name_their_cluster(tmp_path: Path) -> None:
    path = tmp_path / "jobcomp.log"
    path.write_text(LINE + LINE.replace("Cluster=c1", "Cluster=c2"))
    assert list(filetxt.read(path, Reading()).words("cluster").values) == ["c1", "c2"]


def test_a_damaged_line_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "jobcomp.log"
    damaged = ("COMPLETED", "COMPLETE"), ("TimeLimit=60", "TimeLimit=soon"), ("00:30:15", "00:3O:15")
    path.write_text(LINE + LINE[:150] + "\n" + "".join(LINE.replace(*words) for words in damaged))
    rows = filetxt.read(path, Reading())
    assert (len(rows), rows.odd.count) == (1, 4)
    assert [(line, reason.partition(": 'JobId")[0]) for line, reason in rows.odd.first] == [
        (2, "not a record of jobcomp/filetxt"),
        (3, "unknown JobState 'COMPLETE'; expected a state of Slurm such as COMPLETED"),
        (4, "TimeLimit 'soon' is neither a duration nor UNLIMITED"),
    ]
