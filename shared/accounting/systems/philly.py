"""Jobs of Microsoft's Philly traces: one object for each job, with all attempts to run it."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from shadowtime.shared.accounting.instants import Instants, zone_of
from shadowtime.shared.accounting.reading import UNKNOWN, AccountingRows, Reading
from shadowtime.shared.accounting.systems.job_rows import AccountedJobs, JobRow, date_of, text_of
from shadowtime.shared.accounting.systems.json_objects import json_keys, json_records
from shadowtime.shared.quoting import among, quote

NAME = "Philly"

STATUS = {"Pass": 1, "Killed": 5, "Failed": 0}
"""Status by the outcome of a job."""


def begins(head: bytes) -> bool:
    """Return whether a file with this beginning is a job log of Philly."""
    return {"submitted_time", "attempts"} <= json_keys(head)


def read(path: Path, reading: Reading) -> AccountingRows:
    """Return the attempts in the file, one life for each. Jobs are numbered in order of appearance.

    Processors are GPUs, because the log states no others. An attempt waits from the end of the one before it. All but
    the last attempt of a job failed.

    References
    ----------
    The README of msr-fiddle/philly-traces; docs/other-systems.md#philly.
    """
    jobs, instants = AccountedJobs(), Instants(zone_of(reading.time_zone), reading.date_format)
    jobs.take(_attempts(path), partial(_life, dict[str, int](), instants))
    if instants.assumed:
        jobs.rows.note_assumed_utc()
    return jobs.finished("it states no run time limits")


def _attempts(path: Path) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Yield each attempt with the values of its job. A job without attempts is yielded once."""
    for line, values in json_records(path, "submitted_time"):
        attempts = None if values is None else values.get("attempts")
        if values is None or not isinstance(attempts, list) or not attempts:
            yield line, values
            continue
        for attempt in attempts:
            yield line, values | {"attempt": attempt, "again": attempt is not attempts[-1]}


def _life(numbers: dict[str, int], instants: Instants, line: int, values: dict[str, Any]) -> JobRow | str:
    job, status = text_of(values, ["jobid"]), text_of(values, ["status"])
    if not job or status not in STATUS:
        raise ValueError(f"unknown status {quote(status)}{among(status, STATUS)}" if job else "no jobid")
    number = numbers.setdefault(job, len(numbers) + 1)
    if values.get("attempts") == []:
        return "without an attempt to run"
    attempt = values["attempt"] if isinstance(values.get("attempt"), dict) else {}
    details = attempt.get("detail")
    if not isinstance(details, list) or not all(isinstance(detail, dict) for detail in details):
        raise ValueError("an attempt has no list of nodes in detail")
    gpus = [detail.get("gpus") for detail in details]
    if not all(isinstance(some, list) for some in gpus):
        raise ValueError("a node has no list of gpus")
    start, end = (date_of(attempt, name, instants) for name in ("start_time", "end_time"))
    if start == UNKNOWN:
        return "with an attempt that has no start"
    if not any(gpus):
        return "with an attempt that has no GPUs"
    return JobRow(
        line,
        number,
        date_of(values, "submitted_time", instants),
        start,
        end,
        sum(map(len, gpus)),
        STATUS["Failed"] if values["again"] else STATUS[status],
        nodes=len(details),
        user=text_of(values, ["user"]),
        partition=text_of(values, ["vc"]),
        node_list=",".join(text_of(detail, ["ip"]) for detail in details),
        job_id=job,
    )
