"""Flux, Slurm's documents of completed jobs, and the records of JSON."""

import json
from pathlib import Path
from typing import Any

import pytest

from shadowtime.replayer.logs.formats import read_trace
from shadowtime.shared.accounting import UNKNOWN, Reading
from shadowtime.shared.accounting.systems import elasticsearch, flux, json_records
from shadowtime.shared.accounting.systems.json_objects import WINDOW
from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.cluster import KILLED, LIMIT
from shadowtime.shared.errors import TraceError

FLUX = {
    "t_depend": 1600000000.3,
    "t_run": 1600000010.9,
    "t_cleanup": 1600003610.1,
    "t_inactive": 1600003611.5,
    "duration": 3600.0,
    "expiration": 1600003610.9,
    "name": "sim",
    "queue": "batch",
    "bank": "phys",
    "ntasks": 2,
    "ncores": 8,
    "nnodes": 2,
    "ranks": "[0-1]",
    "nodelist": "n[1-2]",
    "success": True,
    "result": "COMPLETED",
    "id": "\N{LATIN SMALL LETTER F WITH HOOK}3ETxsR9H",
    "t_submit": 1600000000.25,
    "state": "INACTIVE",
    "username": "ann",
}

DOCUMENT = {
    "jobid": 4711,
    "username": "ann",
    "@start": "2020-09-13T12:26:50",
    "@end": "2020-09-13T13:26:50",
    "elapsed": 3600,
    "partition": "batch",
    "nodes": "n[01-02]",
    "total_cpus": 32,
    "total_nodes": 2,
    "state": "COMPLETED",
    "@submit": "2020-09-13T12:26:40",
    "@eligible": "2020-09-13T12:26:45",
    "time_limit": 7200,
    "job_name": "sim",
    "account": "phys",
    "qos": "normal",
    "tres_req": "cpu=32,mem=64G,node=2,billing=32,gres/gpu=4",
    "tres_alloc": "cpu=32,mem=64G,node=2,billing=32,gres/gpu=4",
}


def numbers_of(reader: Any, path: Path, values: object) -> dict[str, int]:
    path.write_text(json.dumps(values))
    rows = reader.read(path, Reading())
    assert (len(rows), rows.odd.count) == (1, 0)
    names = (
        "job_number",
        "submit",
        "eligible",
        "start",
        "end",
        "processors",
        "nodes",
        "memory",
        "gpus",
        "limit",
        "status",
    )
    return {name: int(rows.column(name)[0]) for name in names}


def test_flux(tmp_path: Path) -> None:
    assert flux.begins(json.dumps({"jobs": [FLUX]}).encode())
    assert numbers_of(flux, tmp_path / "flux.json", {"jobs": [FLUX]}) == {
        "job_number": 1,
        "submit": 1_600_000_000,
        "eligible": 1_600_000_000,
        "start": 1_600_000_010,
        "end": 1_600_003_610,
        "processors": 8,
        "nodes": 2,
        "memory": UNKNOWN,
        "gpus": UNKNOWN,
        "limit": 3600,
        "status": 1,
    }


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"result": "TIMEOUT"}, {"status": LIMIT}),
        (
            {"result": "CANCELED", "t_run": None, "t_cleanup": None},
            {"status": 5, "start": UNKNOWN, "end": 1_600_003_611},
        ),
        ({"duration": 0}, {"limit": MAX_DURATION}),
        ({"ncores": ""}, {"processors": 2}),
        ({"state": "RUN", "result": ""}, {"end": UNKNOWN}),
        ({"state": 64, "result": 8}, {"status": LIMIT, "end": 1_600_003_610}),
        ({"state": 16, "result": None}, {"end": UNKNOWN}),
    ],
)
def test_values_of_flux(tmp_path: Path, changed: dict[str, Any], expected: dict[str, int]) -> None:
    found = numbers_of(flux, tmp_path / "flux.json", FLUX | changed)
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize("values", [FLUX, DOCUMENT])
def test_an_odd_record_on_a_line_with_all_others_is_counted(tmp_path: Path, values: dict[str, Any]) -> None:
    ident, odd = ("id", {"t_submit": "soon"}) if values is FLUX else ("jobid", {"@submit": "soon"})
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps([values | {ident: number} for number in range(1, 20)] + [values | odd]))
    trace = read_trace(path)
    assert len(trace.table) == 19
    assert trace.notes[0].startswith("1 of 20 rows cannot be read and is left out: line 1: ")


@pytest.mark.parametrize(
    "wrapped",
    [
        DOCUMENT,
        [DOCUMENT],
        {"_index": "slurm", "_id": "x", "_source": DOCUMENT},
        {"took": 3, "hits": {"total": {"value": 1}, "hits": [{"_index": "slurm", "_source": DOCUMENT}]}},
    ],
)
def test_documents_of_jobs(tmp_path: Path, wrapped: object) -> None:
    assert elasticsearch.begins(json.dumps(wrapped).encode())
    assert numbers_of(elasticsearch, tmp_path / "jobs.json", wrapped) == {
        "job_number": 4711,
        "submit": 1_600_000_000,
        "eligible": 1_600_000_005,
        "start": 1_600_000_010,
        "end": 1_600_003_610,
        "processors": 32,
        "nodes": 2,
        "memory": 65_536,
        "gpus": 4,
        "limit": 7200,
        "status": 1,
    }


def test_values_of_documents(tmp_path: Path) -> None:
    never = DOCUMENT | {
        "state": "CANCELLED",
        "@start": "Unknown",
        "total_cpus": 0,
        "array_job_id": 4700,
        "array_task_id": 0,
    }
    del never["time_limit"]
    found = numbers_of(elasticsearch, tmp_path / "jobs.json", never)
    assert (found["job_number"], found["start"], found["processors"], found["limit"]) == (
        100_004_700,
        UNKNOWN,
        32,
        MAX_DURATION,
    )


def test_documents_of_a_requeued_life_and_of_a_start(tmp_path: Path) -> None:
    """Slurm 25.11 also writes a document when a job starts, and says that a requeued job is pending."""
    path = tmp_path / "jobs.json"
    start = {name: value for name, value in DOCUMENT.items() if name != "@end"} | {"state": None}
    assert numbers_of(elasticsearch, path, [DOCUMENT | {"state": "PENDING"}])["status"] == KILLED
    path.write_text(json.dumps([start, DOCUMENT]))
    rows = elasticsearch.read(path, Reading())
    assert (len(rows), rows.odd.count) == (1, 0)
    assert rows.left_out == {"start of a job, which has another document at its end": (1, "line 1")}


def test_documents_of_several_clusters(tmp_path: Path) -> None:
    path = tmp_path / "jobs.json"
    path.write_text("\n".join(json.dumps(DOCUMENT | {"cluster": name}) for name in ("alpha", "beta")))
    with pytest.raises(TraceError, match="jobs of 2 clusters: 'alpha', 'beta'"):
        read_trace(path)
    assert len(read_trace(path, Reading(cluster="beta")).table) == 1


def test_lines_of_a_bulk_request_are_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "bulk"
    lines = [json.dumps({"index": {"_index": "slurm"}}), json.dumps(DOCUMENT)]
    path.write_text("\n".join(lines * 3) + "\n{}\n")
    rows = elasticsearch.read(path, Reading())
    assert (len(rows), rows.odd.count) == (3, 0)


def test_records_beyond_a_window_are_read(tmp_path: Path) -> None:
    path = tmp_path / "jobs.json"
    records = [{"at": at, "t_submit": 1, "text": "x" * 5_000} for at in range(3 * WINDOW // 5_000)]
    text = json.dumps({"jobs": records, "profiles": [{"x": "y" * 100}] * (2 * WINDOW // 100)}, indent=1)
    path.write_text(text)
    found = list(json_records(path, "t_submit"))
    assert [record.values and record.values["at"] for record in found] == list(range(len(records)))
    assert found[1].line == 8
    path.write_text(text.replace('"at": 7,', '"at: 7,').replace('"at": 8,', '"at": ,'))
    found = list(json_records(path, "t_submit"))
    assert sum(record.values is None for record in found) == 2
    assert len(found) == len(records)


def test_a_record_without_end_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "jobs.json"
    path.write_text('[{"t_submit": 1}, {"t_submit": 2, "text": "' + "x" * 3 * WINDOW)
    assert [record.values for record in json_records(path, "t_submit")] == [{"t_submit": 1}, None]
    path.write_text("[" * 100_000 + '{"t_submit": 1}')
    assert [record.values for record in json_records(path, "t_submit")] == [{"t_submit": 1}]
