"""HTCondor's history. The texts of `PRINTED` are as the ClassAd library of HTCondor 25.14 prints them."""

from pathlib import Path

import pytest

from shadowtime.replayer.logs.formats import read_trace
from shadowtime.shared.accounting import UNKNOWN, Reading
from shadowtime.shared.accounting.systems import htcondor
from shadowtime.shared.cluster import LIMIT

AD = (
    'Owner = "ann"\nQDate = 1600000000\nProcId = 1\nClusterId = 17\nJobStatus = 4\nCompletionDate = 1600003610\n'
    'JobCurrentStartDate = 1600000010\nEnvironment = "A=\\"x y\\" B=\'{z}\'"\nRequestCpus = 4\nExitBySignal = false\n'
    'ExitCode = 0\nRequirements = (TARGET.Arch == "X86_64") && (TARGET.Memory >= RequestMemory)\n'
    "RequestMemory = ifthenelse(MemoryUsage =!= undefined,MemoryUsage,1024)\nRemoteWallClockTime = 3600.0\n"
)
JSON = """[
{
  "Owner": "ann",
  "QDate": 1600000000,
  "ProcId": 1,
  "ClusterId": 17,
  "JobStatus": 4,
  "CompletionDate": 1600003610,
  "JobCurrentStartDate": 1600000010,
  "Environment": "A=\\"x y\\" B='{z}'",
  "RequestCpus": 4,
  "ExitBySignal": false,
  "Requirements": "\\/Expr((TARGET.Arch == \\"X86_64\\") && (TARGET.Memory >= RequestMemory))\\/",
  "RequestMemory": "\\/Expr(ifthenelse(MemoryUsage isnt undefined,MemoryUsage,1024))\\/",
  "RemoteWallClockTime": 3600.0
}
]
"""
PRINTED = {
    "long": AD + "\n",
    "history": AD + '*** Offset = 0 ClusterId = 17 ProcId = 1 Owner = "ann" CompletionDate = 1600003610\n',
    "schedd": "\n\n-- Schedd: submit.site : <10.0.0.1:9618?...\n" + AD,
    "json": JSON,
    "carriage returns": AD.replace("\n", "\r\n") + "\r\n",
}


def read(tmp_path: Path, text: str) -> dict[str, int]:
    path = tmp_path / "history"
    path.write_text(text)
    rows = htcondor.read(path, Reading())
    names = ("job_number", "submit", "start", "end", "processors", "memory", "status")
    assert (len(rows), rows.odd.count) == (1, 0)
    assert list(rows.words("job_id").values) == ["17.1"]
    return {name: int(rows.column(name)[0]) for name in names}


@pytest.mark.parametrize("text", PRINTED.values(), ids=PRINTED)
def test_each_way_of_printing_is_read(tmp_path: Path, text: str) -> None:
    assert htcondor.begins(text.encode())
    assert read(tmp_path, text) == {
        "job_number": 200_000_017,
        "submit": 1_600_000_000,
        "start": 1_600_000_010,
        "end": 1_600_003_610,
        "processors": 4,
        "memory": UNKNOWN,
        "status": 1,
    }


REMOVED = AD.replace("JobStatus = 4", "JobStatus = 3\nEnteredCurrentStatus = 1600005000").replace(
    "CompletionDate = 1600003610", "CompletionDate = 0"
)


@pytest.mark.parametrize(
    ("text", "end", "status"),
    [
        (AD.replace("ExitCode = 0", "ExitCode = 1"), 1_600_003_610, 0),
        (AD.replace("ExitBySignal = false", "ExitBySignal = true"), 1_600_003_610, 0),
        (REMOVED + "LastJobStatus = 2\n", 1_600_005_000, 5),
        (REMOVED + "LastJobStatus = 5\n", 1_600_003_610, 5),  # held after its run, then removed
        (REMOVED + "LastJobStatus = 5\nHoldReasonCode = 47\n", 1_600_003_610, LIMIT),
        (AD.replace("JobStatus = 4", "JobStatus = 2"), UNKNOWN, 1),
    ],
)
def test_how_jobs_ended(tmp_path: Path, text: str, end: int, status: int) -> None:
    job = read(tmp_path, text)
    assert (job["end"], job["status"]) == (end, status)


def test_what_a_job_got_stands_in_for_expressions(tmp_path: Path) -> None:
    text = AD.replace("RequestCpus = 4", "RequestCpus = max({2, 3})\nCpusProvisioned = 3\nMemoryProvisioned = 2048")
    job = read(tmp_path, text)
    assert (job["processors"], job["memory"]) == (3, 2048)


@pytest.mark.parametrize(("universe", "machines"), [(11, 3), (5, 1)])
def test_a_parallel_job_has_its_request_on_each_machine(tmp_path: Path, universe: int, machines: int) -> None:
    path = tmp_path / "history"
    path.write_text(AD + f"JobUniverse = {universe}\nMaxHosts = 3\nMemoryProvisioned = 2048\nRequestGPUs = 2\n")
    rows = htcondor.read(path, Reading())
    held = {name: int(rows.column(name)[0]) for name in ("processors", "memory", "gpus")}
    assert held == {"processors": 4 * machines, "memory": 2048 * machines, "gpus": 2 * machines}


@pytest.mark.parametrize(
    ("universe", "reason"), [(7, "runs on the submit host"), (9, "runs on another system (universe grid)")]
)
def test_jobs_outside_of_the_pool_are_left_out_and_several_runs_are_noted(
    tmp_path: Path, universe: int, reason: str
) -> None:
    path = tmp_path / "history"
    dag = AD.replace("ClusterId = 17", "ClusterId = 18") + f"JobUniverse = {universe}\n"
    path.write_text(AD + "NumJobStarts = 3\n\n" + dag)
    rows = htcondor.read(path, Reading())
    assert (len(rows), rows.left_out) == (1, {reason: (1, "line 17")})
    assert any("1 job ran more than once" in note for note in rows.notes)
    assert any("it states no allowed duration" in note for note in rows.notes)


def test_allowed_durations_are_limits(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_text(AD + "AllowedJobDuration = 7200\nAllowedExecuteDuration = 3600\n")
    assert htcondor.read(path, Reading()).column("limit").tolist() == [3600]


def test_names_of_attributes_are_spelled_in_any_case(tmp_path: Path) -> None:
    """HTCondor writes RequestGPUs and GPUsProvisioned."""
    path = tmp_path / "history"
    for text in (JSON.replace('"QDate"', '"RequestGPUs": 2,\n "QDate"'), AD + "RequestGPUs = 2\n"):
        path.write_text(text)
        assert htcondor.read(path, Reading()).column("gpus").tolist() == [2]


def test_jobs_of_several_schedds_have_numbers_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "history"
    ads = [AD + f'GlobalJobId = "{schedd}#17.1#1600000000"\n\n' for schedd in ("a.site", "b.site", "a.site")]
    path.write_text("".join(ads[:2]) + ads[2].replace("ProcId = 1", "ProcId = 2"))
    trace = read_trace(path)
    assert sorted(trace.job_ids.values()) == ["17.1", "17.1@b.site", "17.2"]
    assert any("of 2 schedds" in note and "all but 'a.site'" in note for note in trace.notes)
