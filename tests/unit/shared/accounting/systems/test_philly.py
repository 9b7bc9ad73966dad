"""Philly's job log: attempts are lives, GPUs are processors."""

import json
from pathlib import Path
from typing import Any

import pytest

from shadowtime.replayer.logs.formats import read_trace
from shadowtime.shared.accounting import Reading

JOB: dict[str, Any] = {
    "status": "Pass",
    "vc": "ee9e8c",
    "jobid": "application_1506638472019_10258",
    "attempts": [
        {
            "start_time": "2017-10-07 01:00:10",
            "end_time": "2017-10-07 02:00:00",
            "detail": [{"ip": "m405", "gpus": ["gpu6", "gpu7"]}, {"ip": "m21", "gpus": ["gpu0"]}],
        },
        {
            "start_time": "2017-10-07 02:05:00",
            "end_time": "2017-10-07 03:00:00",
            "detail": [{"ip": "m405", "gpus": ["gpu6", "gpu7"]}],
        },
    ],
    "submitted_time": "2017-10-07 01:00:00",
    "user": "ce2e9c",
}


def trace_of(path: Path, *jobs: dict[str, Any]) -> Any:
    path.write_text(json.dumps(jobs))
    return read_trace(path, Reading(time_zone="America/Los_Angeles"))


def test_each_attempt_is_a_life(tmp_path: Path) -> None:
    trace = trace_of(tmp_path / "log", JOB, JOB | {"jobid": "b", "status": "Killed", "attempts": JOB["attempts"][1:]})
    assert trace.table[:, [1, 2, 3, 4, 10]].tolist() == [
        [0, 10, 3590, 3, 0],
        [0, 3900, 3300, 2, 5],
        [3600, 300, 3300, 2, 1],
    ]
    assert trace.unix_start_time == 1_507_363_200  # 01:00 on a day of summer time
    assert set(trace.job_ids.values()) == {JOB["jobid"], "b"}


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"attempts": []}, "without an attempt to run"),
        ({"attempts": [JOB["attempts"][0] | {"detail": []}]}, "with an attempt that has no GPUs"),
        ({"attempts": [JOB["attempts"][0] | {"start_time": None}]}, "with an attempt that has no start"),
        ({"attempts": [JOB["attempts"][0] | {"end_time": None}]}, "still running"),
        ({"attempts": None}, "unreadable"),
        ({"attempts": [7]}, "unreadable"),
        ({"attempts": [JOB["attempts"][0] | {"detail": [{"ip": "m1"}]}]}, "unreadable"),
        ({"status": "Lost"}, "unreadable"),
        ({"jobid": ""}, "unreadable"),
        ({"submitted_time": "soon"}, "unreadable"),
    ],
)
def test_what_is_no_life_is_counted(tmp_path: Path, changed: dict[str, Any], reason: str) -> None:
    many = [JOB | {"jobid": f"j{number}", "attempts": JOB["attempts"][:1]} for number in range(20)]
    trace = trace_of(tmp_path / "log", *many, many[0] | {"jobid": "other"} | changed)
    assert len(trace.table) == 20
    assert {name: count for name, (count, _) in trace.left_out.items()} == {reason: 1}


@pytest.mark.parametrize(("zone", "notes"), [(None, 1), ("America/Los_Angeles", 0)])
def test_dates_without_a_stated_zone_are_noted(tmp_path: Path, zone: str | None, notes: int) -> None:
    (tmp_path / "log").write_text(json.dumps([JOB]))
    trace = read_trace(tmp_path / "log", Reading(time_zone=zone))
    assert sum("its dates state no time zone" in note for note in trace.notes) == notes
