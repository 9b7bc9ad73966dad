"""HTCondor's history of jobs: ClassAds of `condor_history -long` or of the file itself, or `condor_history -json`."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shadowtime.shared.accounting.job_numbers import number_of
from shadowtime.shared.accounting.odd_rows import OddRows
from shadowtime.shared.accounting.reading import UNKNOWN, AccountingRows, Reading
from shadowtime.shared.accounting.systems.job_rows import AccountedJobs, JobRow, instant_of, text_of, whole_of
from shadowtime.shared.accounting.systems.json_objects import JsonRecord, json_keys, json_records
from shadowtime.shared.accounting.text_file import first_lines, lines_of
from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.cluster import LIMIT
from shadowtime.shared.formatting import counted
from shadowtime.shared.quoting import quote

NAME = "HTCondor history"

REMOVED, COMPLETED = 3, 4
"""States of a job that left the queue. Any other job is still in it."""

NOT_RUNNING = {1, 5}
"""States of a job that waits: idle, held."""

OUTSIDE = dict.fromkeys((7, 12), "runs on the submit host") | {9: "runs on another system (universe grid)"}
"""Why jobs of some universes are left out: scheduler (as of DAGMan), local and grid hold no processors of the pool."""

PARALLEL = 11
"""The universe whose jobs run on `MaxHosts` machines, each with the requested processors, memory and GPUs."""

OVER_DURATION = {46, 47}
"""Reasons for holding a job: it exceeded its allowed duration, or its allowed time of execution."""

ATTRIBUTES = {
    name.lower(): name
    for name in (
        *("ClusterId", "ProcId", "QDate", "JobStatus", "LastJobStatus", "JobUniverse", "JobStartDate"),
        *("JobCurrentStartDate", "CompletionDate", "EnteredCurrentStatus", "RemoteWallClockTime", "NumJobStarts"),
        *("LastRemoteWallClockTime", "CumulativeSuspensionTime", "RequestCpus", "CpusProvisioned", "RequestMemory"),
        *("MemoryProvisioned", "RequestGpus", "GpusProvisioned", "AllowedExecuteDuration", "AllowedJobDuration"),
        *("ExitCode", "ExitBySignal", "HoldReasonCode", "Owner", "User", "AccountingGroup", "AcctGroup"),
        *("JobBatchName", "Cmd", "LastRemoteHost", "RemoteHost", "GlobalJobId", "MaxHosts"),
    )
}
"""Attributes that are read, by their names in lower case: names of ClassAds are not case-sensitive."""

_WORDS = {"true": True, "false": False, "undefined": None}
_ATTRIBUTE = re.compile(rb"\s*([A-Za-z_]\w*)\s*=\s*(.*?)\s*\Z")
_BETWEEN = re.compile(rb"\*\*\* |-- ")
"""The line behind a ClassAd of the file itself, and the line with the name of the daemon that was asked."""


def begins(head: bytes) -> bool:
    """Return whether a file with this beginning is a history of HTCondor, as ClassAds or in JSON."""
    if keys := json_keys(head):
        return {"ClusterId", "QDate"} <= keys or {"ClusterId", "ProcId"} <= keys
    lines = first_lines(head, 400)
    names = {match[1] for line in lines if (match := _ATTRIBUTE.match(line))}
    return bool({b"ClusterId", b"QDate", b"ProcId"} & names) and sum(map(bool, map(_ATTRIBUTE.match, lines))) > 3


def read(path: Path, _: Reading) -> AccountingRows:
    """Return the jobs in the file. Times are Unix seconds, memory is in MiB.

    The history has the last run of each job. Earlier runs count as waiting.

    References
    ----------
    Job ClassAd Attributes, HTCondor 23; docs/other-systems.md#htcondor.
    """
    jobs, again, schedds = AccountedJobs(), list[JobRow](), Counter[str]()

    def job_of(line: int, ad: dict[str, Any]) -> JobRow | str:
        job = _job(line, ad)
        if isinstance(job, str):
            return job
        if whole_of(ad, "NumJobStarts", 0) > 1:
            again.append(job)
        schedds[schedd := text_of(ad, ["GlobalJobId"]).partition("#")[0]] += 1
        own = schedd == next(iter(schedds))
        return job if own else job._replace(job_number=UNKNOWN, job_id=f"{job.job_id}@{schedd}")

    jobs.take(_ads(path, jobs.rows.odd), job_of, "a damaged ClassAd")
    if len(schedds) > 1:
        jobs.rows.notes.append(
            f"its jobs are of {len(schedds)} schedds, which number their jobs independently; the jobs of all but "
            f"{quote(next(iter(schedds)))} get new numbers"
        )
    if again:
        jobs.rows.notes.append(
            f"{counted(len(again), 'job')} ran more than once: the history has their last run only, and what precedes "
            f"it counts as waiting; first line {again[0].line}"
        )
    return jobs.finished("it states no allowed duration")


def _ads(path: Path, odd: OddRows) -> Iterator[JsonRecord]:
    """Yield the ClassAds of a file with the line of their beginning. Only attributes of `ATTRIBUTES` are kept.

    The first line of a ClassAd that is no attribute counts as odd.
    """
    last, first, ad, whole = 0, 0, dict[str, Any](), True
    names: dict[bytes, str | None] = {}
    for block in lines_of(path):
        if not last and json_keys(b"\n".join(block[:100])):
            spelled: dict[str, str] = {}  # the names of attributes by those in the file, empty for those not read
            for line_number, values in json_records(path, "ClusterId"):
                if values is not None:
                    spelled |= {key: ATTRIBUTES.get(key.lower(), "") for key in values.keys() - spelled.keys()}
                    values = {spelled[key]: value for key, value in values.items() if spelled[key]}
                yield JsonRecord(line_number, values)
            return
        for number, line in enumerate(block, last + 1):
            written, equals, value = line.partition(b" = ")
            is_attribute = bool(equals) and written in names
            if not is_attribute and (match := _ATTRIBUTE.match(line)):
                is_attribute, value = True, match[2]
                written = match[1]
                names[written] = ATTRIBUTES.get(written.decode().lower())
            name = names[written] if is_attribute else None
            if not is_attribute:
                between = not line.strip() or _BETWEEN.match(line) is not None
                if whole and not between:
                    odd.add(number, f"not an attribute: {quote(line.decode(errors='replace'))}")
                whole = between
            if ad and (name in ad or (not is_attribute and whole)):  # a repeated name: the line between is damaged
                yield JsonRecord(first, ad)
                ad = {}
            if name is None:
                continue
            first = first if ad else number
            ad[name] = _value(value.strip().decode(errors="replace"))
        last += len(block)
    if ad:
        yield JsonRecord(first, ad)


def _value(text: str) -> object:
    """Return a value of a ClassAd: a text without quotes, a truth value, None if undefined, or else the text itself.

    >>> _value('"eve"'), _value("true"), _value("3600.0")
    ('eve', True, '3600.0')
    """
    if text.startswith('"'):
        return text.strip('"')
    return text if text.isdecimal() else _WORDS.get(text.lower(), text)


def _job(line: int, ad: dict[str, Any]) -> JobRow | str:
    """Return the job of a ClassAd, or the reason why it is left out."""
    status, universe = whole_of(ad, "JobStatus"), whole_of(ad, "JobUniverse", 0)
    if universe in OUTSIDE:
        return OUTSIDE[universe]
    cluster, process = whole_of(ad, "ClusterId"), whole_of(ad, "ProcId")
    start, end = instant_of(ad, "JobCurrentStartDate"), instant_of(ad, "CompletionDate")
    start = instant_of(ad, "JobStartDate") if start == UNKNOWN else start
    end = instant_of(ad, "EnteredCurrentStatus") if end == UNKNOWN else end
    if status not in (REMOVED, COMPLETED):
        end = UNKNOWN
    elif status == REMOVED and start != UNKNOWN and whole_of(ad, "LastJobStatus", 0) in NOT_RUNNING:
        ran = whole_of(ad, "LastRemoteWallClockTime", 0) or whole_of(ad, "RemoteWallClockTime", 0)
        end = min(end, start + ran)  # it was removed while it waited again
    once, suspended = whole_of(ad, "NumJobStarts", 1) <= 1, whole_of(ad, "CumulativeSuspensionTime", 0)
    hosts = max(whole_of(ad, "MaxHosts", 1), 1) if universe == PARALLEL else 1
    memory, gpus = (_amount(ad, f"Request{name}", f"{name}Provisioned", UNKNOWN) for name in ("Memory", "Gpus"))
    limits = [whole_of(ad, name, MAX_DURATION) for name in ("AllowedExecuteDuration", "AllowedJobDuration")]
    return JobRow(
        line,
        number_of(cluster, process),
        instant_of(ad, "QDate"),
        start,
        end,
        hosts * _amount(ad, "RequestCpus", "CpusProvisioned", 1),
        _status(ad, status),
        min(*limits, MAX_DURATION),
        suspended=suspended if once and suspended > 0 else UNKNOWN,
        nodes=hosts if hosts > 1 else UNKNOWN,
        memory=memory if memory == UNKNOWN else hosts * memory,
        gpus=gpus if gpus == UNKNOWN else hosts * gpus,
        user=text_of(ad, ["Owner", "User"]),
        account=text_of(ad, ["AccountingGroup", "AcctGroup"]),
        job_name=text_of(ad, ["JobBatchName", "Cmd"]),
        node_list=text_of(ad, ["LastRemoteHost", "RemoteHost"]).rpartition("@")[2],
        job_id=f"{cluster}.{process}",
    )


def _amount(ad: dict[str, Any], requested: str, provisioned: str, default: int) -> int:
    """Return an amount that a job requests. If the request is an expression, it is the amount that the job got."""
    for name in (requested, provisioned):
        try:
            return whole_of(ad, name)
        except ValueError:  # missing, or an expression
            continue

    return default


def _status(ad: dict[str, Any], status: int) -> int:
    if status == REMOVED:
        return LIMIT if whole_of(ad, "HoldReasonCode", 0) in OVER_DURATION else 5
    return 1 if not ad.get("ExitBySignal") and whole_of(ad, "ExitCode", 0) == 0 else 0
