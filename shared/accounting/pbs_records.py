"""Accounting records of OpenPBS and PBS Pro, one for each event of a job, and their combination into job lives."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from shadowtime.shared.accounting.durations import seconds_of
from shadowtime.shared.accounting.instants import Instants, whole_number
from shadowtime.shared.accounting.job_numbers import number_of
from shadowtime.shared.accounting.reading import UNKNOWN
from shadowtime.shared.bounds import MAX_AMOUNT, MAX_DURATION
from shadowtime.shared.cluster import KILLED, LIMIT
from shadowtime.shared.quoting import quote

RECORD = re.compile(r"(\d\d)/(\d\d)/(\d{4}) (\d\d:\d\d:\d\d);([A-Za-z]+);([^;]*);?(.*)\Z")
"""A record: date and local time on the machine that wrote it, type, job, and message."""

KILLED_BY_SIGNAL = 256
"""Exit statuses from this number on are signals. Negative statuses come from the server: -29 is the run time limit."""

LIMIT_EXIT = -29
RERUN_EXITS = range(-14, -10)

DELETED = {"D", "A", "K"}
"""Types of records of jobs that a person or the server deleted, waiting or running. A running job then also ends."""

HANDLED = {"Q", "S", "E", "R", "M"} | DELETED
"""Types of records that are read."""

_PAIR = re.compile(r"(?<![\w.])([\w.]+)=(\"[^\"]*\"|'[^']*'|\S*)")
_JOB = re.compile(r"([0-9]{1,12})(?:\[([0-9]{0,7})\])?(?:\.|\Z)")
_SIZE = re.compile(r"([0-9]{1,15})([kmgtp]?)(b|w)\Z", re.IGNORECASE)
_EXIT = re.compile(r"-?[0-9]{1,9}\Z")
_KIB = {"": 1 / 1024, "k": 1.0, "m": 1024.0, "g": 1024.0**2, "t": 1024.0**3, "p": 1024.0**4}


class PbsWaiting(NamedTuple):
    """A queued or running job: line of its last record, Unix times, and the attributes of all its records."""

    line: int
    queued: int
    started: int
    attributes: Mapping[str, str]


class PbsLife(NamedTuple):
    """The facts about a life of a job from its records so far; `end` is `UNKNOWN` after a record Q or S.

    `known` is False if all facts come from a single record of another type than Q and S.
    """

    line: int
    kind: str
    job: str
    known: bool
    numbers: Mapping[str, int]
    words: Mapping[str, str]


class PbsJobs:
    """Reader of PBS records, one by one. It keeps the attributes of jobs that have not ended.

    >>> from zoneinfo import ZoneInfo
    >>> jobs = PbsJobs(Instants(ZoneInfo("UTC")))
    >>> jobs.take("11/22/2026 05:30:00;Q;7.head;queue=workq").words["partition"]
    'workq'
    >>> life = jobs.take("11/22/2026 05:30:09;D;7.head;requestor=eve@head")
    >>> life.known, life.numbers["submit"], life.numbers["end"]
    (True, 1795325400, 1795325409)
    """

    def __init__(self, instants: Instants) -> None:
        self.waiting: dict[str, PbsWaiting] = {}
        self.time = 0
        """Unix time of the last record."""
        self._instants = instants

    def take(self, text: str, line: int = 0) -> PbsLife | None:
        """Return the facts from a record and the earlier records of its job.

        None if the line is empty, its type is not read, it is about an array as a whole, or a running job is deleted.

        Raises
        ------
        ValueError
            If the line is not a record of a job.
        """
        text = text.strip()
        if not text:
            return None
        match = RECORD.match(text)
        if match is None:
            raise ValueError(f"not a record of PBS: {quote(text)}")
        month, day, year, clock, kind, job, message = match.groups()
        if kind not in HANDLED or "[]" in job:  # an array as a whole is not a job
            return None
        time = self._instants(f"{year}-{month}-{day}T{clock}")
        if time is None or not _JOB.match(job):
            raise ValueError(f"a record without a valid time and job number: {quote(text)}")
        self.time = time
        attributes = {key: value.strip("\"'") for key, value in _PAIR.findall(message)}
        known = self.waiting.pop(job, None)
        if kind in ("Q", "S"):
            before = known or PbsWaiting(line, time, UNKNOWN, {})
            queued, started = (time, UNKNOWN) if kind == "Q" else (before.queued, time)
            self.waiting[job] = known = PbsWaiting(line, queued, started, {**before.attributes, **attributes})
        elif kind in DELETED and known is not None and known.started != UNKNOWN:
            self.waiting[job] = known  # the record of its end follows, and is read then
            return None
        elif kind == "R":
            self.waiting[job] = PbsWaiting(line, time, UNKNOWN, {**(known.attributes if known else {}), **attributes})

        return PbsLife(line, kind, job, known is not None, *_facts_of(job, kind, time, attributes, known))


def _facts_of(
    job: str, kind: str, time: int, attributes: Mapping[str, str], known: PbsWaiting | None
) -> tuple[dict[str, int], dict[str, str]]:
    """Return the numbers and words of a life, from a record and the earlier records of the job."""
    asked = {**(known.attributes if known else {}), **attributes}
    over = kind not in ("Q", "S")
    start = UNKNOWN if kind == "Q" else _whole(attributes, "start")
    if start == UNKNOWN and known is not None and kind in ("S", "E", "R"):
        start = known.started
    ended = _whole(attributes, "end")
    submit = _whole(asked, "ctime")
    if submit == UNKNOWN and known is not None:
        submit = known.queued
    eligible = _whole(asked, "etime")
    exit_status = attributes.get("Exit_status", "")
    code = int(exit_status) if _EXIT.match(exit_status) else None
    numbers = {
        "job_number": number_of(*numbered(job)),
        "submit": submit,
        "eligible": submit if eligible == UNKNOWN else eligible,
        "start": start,
        "end": UNKNOWN if not over else time if ended == UNKNOWN else ended,
        "run_time": _span(attributes.get("resources_used.walltime")) or UNKNOWN if kind == "E" else UNKNOWN,
        "limit": _span(asked.get("Resource_List.walltime"), unlimited=True),
        "processors": max(_whole(asked, "Resource_List.ncpus"), _slots(asked.get("exec_host", ""))),
        "nodes": _whole(asked, "Resource_List.nodect"),
        "memory": _mebibytes(asked.get("Resource_List.mem", "")),
        "gpus": _whole(asked, "Resource_List.ngpus"),
        "whole_nodes": 1 if "excl" in asked.get("Resource_List.place", "") else UNKNOWN,
        "status": _status(kind, code),
    }
    words = {
        "user": asked.get("user", ""),
        "account": asked.get("account") or asked.get("project", "").removeprefix("_pbs_project_default"),
        "job_name": asked.get("jobname", ""),
        "partition": asked.get("queue", ""),
        "node_list": asked.get("exec_host", "").split("/")[0],
    }
    return numbers, words


def _status(kind: str, code: int | None) -> int:
    if kind == "R" or (code is not None and code in RERUN_EXITS):
        return KILLED
    if kind in DELETED:
        return 5
    if code == LIMIT_EXIT:
        return LIMIT
    return 1 if code in (0, None) else 5 if code in (KILLED_BY_SIGNAL + 15, KILLED_BY_SIGNAL + 9) else 0


def numbered(job: str) -> tuple[int, int | None]:
    """Return the number of a job, and the number of the task if it is an array task, else None.

    >>> numbered("1234.server"), numbered("1234[7].server")
    ((1234, None), (1234, 7))
    """
    match = _JOB.match(job)
    if match is None:
        raise ValueError(f"not a job number: {quote(job)}")
    return int(match[1]), int(match[2]) if match[2] else None


def _slots(hosts: str) -> int:
    """Return the number of processors in a list of hosts; `UNKNOWN` for an empty list.

    >>> _slots("n1/0*4+n2/0*4"), _slots("n1/0+n1/1"), _slots("")
    (8, 2, -1)
    """
    counts = [host.partition("*")[2] or "1" for host in hosts.split("+") if host]
    return sum(whole_number(count) or 0 for count in counts) or UNKNOWN


def _whole(attributes: Mapping[str, str], name: str) -> int:
    number = whole_number(attributes.get(name, ""))
    return UNKNOWN if number is None else number


def _span(text: str | None, *, unlimited: bool = False) -> int:
    if text is None:
        return MAX_DURATION if unlimited else UNKNOWN
    seconds = seconds_of(text)
    return UNKNOWN if seconds is None else seconds


def _mebibytes(text: str) -> int:
    """Return a size in MiB, rounded up; `UNKNOWN` if the text is not a size or too large.

    >>> _mebibytes("4gb"), _mebibytes("1048577kb"), _mebibytes("")
    (4096, 1025, -1)
    """
    match = _SIZE.match(text)
    if match is None:
        return UNKNOWN
    kib = int(match[1]) * _KIB[match[2].lower()] * (8 if match[3].lower() == "w" else 1)
    return int(-(-kib // 1024)) if kib // 1024 < MAX_AMOUNT else UNKNOWN
