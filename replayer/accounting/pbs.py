"""Accounting files of OpenPBS and PBS Pro: a record for whatever happens to a job."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from shadowtime.replayer.accounting.instants import Instants, seconds_of, whole_number, zone_of
from shadowtime.replayer.accounting.reading import UNKNOWN, Reading, Rows
from shadowtime.replayer.log_file import lines_of
from shadowtime.replayer.source import KILLED, LIMIT
from shadowtime.shared.bounds import MAX_AMOUNT
from shadowtime.shared.errors import TraceError
from shadowtime.shared.message import MAX_DURATION
from shadowtime.shared.wording import quoted

RECORD = re.compile(r"(\d\d)/(\d\d)/(\d{4}) (\d\d:\d\d:\d\d);([A-Za-z]+);([^;]*);?(.*)\Z")
"""Date and time of the machine that wrote it, type, job, and what is told."""

SUBJOB = 10**8
"""What the number of a job of an array is higher by than the one before it."""

KILLED_BY_SIGNAL = 256
"""Exit statuses from here on are signals; negative ones are of the server: -29 is the limit of the run time."""

LIMIT_EXIT = -29
RERUN_EXITS = range(-14, -10)

_PAIR = re.compile(r"([\w.]+)=(\"[^\"]*\"|'[^']*'|\S*)")
_JOB = re.compile(r"([0-9]{1,12})(?:\[([0-9]{0,7})\])?(?:\.|\Z)")
_SIZE = re.compile(r"([0-9]{1,15})([kmgtp]?)(b|w)\Z", re.IGNORECASE)
_EXIT = re.compile(r"-?[0-9]{1,9}\Z")
_KIB = {"": 1 / 1024, "k": 1.0, "m": 1024.0, "g": 1024.0**2, "t": 1024.0**3, "p": 1024.0**4}


class Waiting(NamedTuple):
    """A job that has been queued or started: the line, when, and what was told of it."""

    line: int
    queued: int
    started: int
    told: Mapping[str, str]


NAME = "PBS"


def begins(line: bytes) -> bool:
    """Return whether a file that begins with this line is such a file."""
    return RECORD.match(line.decode(errors="replace")) is not None


def read(path: Path, reading: Reading) -> Rows:
    """Return what the file says of jobs: those that ended (E), were run again (R), or deleted while they waited (D, A).

    Of what is told, `ctime` is when a job was submitted, `etime` from when on it may run, `start` and `end` when it
    ran; all are seconds of Unix. A record's own date is that of the clock on the wall.

    Raises
    ------
    TraceError
        If a line is no record; names it.

    References
    ----------
    docs/accounting.md#pbs.
    """
    found, instants = Rows(), Instants(zone_of(reading.time_zone))
    waiting: dict[str, Waiting] = {}
    last, taken = 0, list[tuple[int, dict[str, int], dict[str, str]]]()
    for lines in lines_of(path):
        for number, line in enumerate(lines, last + 1):
            text = line.decode(errors="surrogateescape").strip()
            if not text:
                continue
            match = RECORD.match(text)
            if match is None:
                raise TraceError(f"{path}, line {number}: no record of PBS: {quoted(text)}")
            month, day, year, clock, kind, job, message = match.groups()
            if kind not in HANDLED or "[]" in job:  # an array as a whole is no job
                continue
            time = instants(f"{year}-{month}-{day}T{clock}")
            if time is None or not _JOB.match(job):
                raise TraceError(f"{path}, line {number}: no record of a job at a time: {quoted(text)}")
            told = {key: value.strip("\"'") for key, value in _PAIR.findall(message)}
            known = waiting.pop(job, None)
            if kind in ("Q", "S"):
                before = known or Waiting(number, time, UNKNOWN, {})
                queued, started = (time, UNKNOWN) if kind == "Q" else (before.queued, time)
                waiting[job] = Waiting(number, queued, started, {**before.told, **told})
            elif kind == "M":
                found.leave_out("moved to another server", 1, f"job {job}, line {number}")
            elif kind in DELETED and known is None:
                found.leave_out("deleted, and nothing else told", 1, f"job {job}, line {number}")
            elif kind in DELETED and known is not None and known.started != UNKNOWN:
                waiting[job] = known  # its end is told too
            else:
                taken.append(_life(number, job, kind, time, told, known))
        last += len(lines)
    for job, known in waiting.items():
        state = "still waiting" if known.started == UNKNOWN else "still running"
        found.leave_out(state, 1, f"job {job}, line {known.line}")
    if taken:
        numbers = {name: [row[1][name] for row in taken] for name in taken[0][1]}
        words = {name: [row[2][name] for row in taken] for name in taken[0][2]}
        found.extend([row[0] for row in taken], numbers, words)
    if instants.assumed:
        found.notes.append("jobs that never started are dated by a clock of no zone: taken for UTC; see --time-zone")
    return found


DELETED = {"D", "A", "K"}
"""Types of records of jobs that somebody or the server took away: waiting ones, or running ones, which end then."""

HANDLED = {"Q", "S", "E", "R", "M"} | DELETED
"""Types of records that are looked at."""


def _life(
    line: int, job: str, kind: str, time: int, told: Mapping[str, str], known: Waiting | None
) -> tuple[int, dict[str, int], dict[str, str]]:
    """Return what a record that ends a wait or a run says of it, with what was told before."""
    asked = {**(known.told if known else {}), **told}
    start = _whole(told, "start")
    if start == UNKNOWN and known is not None and kind in ("E", "R"):
        start = known.started
    ended = _whole(told, "end")
    submit = _whole(asked, "ctime")
    if submit == UNKNOWN and known is not None:
        submit = known.queued
    eligible = _whole(asked, "etime")
    exit_status = told.get("Exit_status", "")
    code = int(exit_status) if _EXIT.match(exit_status) else None
    numbers = {
        "job_number": _number(job),
        "submit": submit,
        "eligible": submit if eligible == UNKNOWN else eligible,
        "start": start,
        "end": time if ended == UNKNOWN else ended,
        "run_time": _span(told.get("resources_used.walltime")) or UNKNOWN if kind == "E" else UNKNOWN,
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
    return line, numbers, words


def _status(kind: str, code: int | None) -> int:
    if kind == "R" or (code is not None and code in RERUN_EXITS):
        return KILLED
    if kind in DELETED:
        return 5
    if code == LIMIT_EXIT:
        return LIMIT
    return 1 if code in (0, None) else 5 if code in (KILLED_BY_SIGNAL + 15, KILLED_BY_SIGNAL + 9) else 0


def _number(job: str) -> int:
    """Return the number of a job; that of one of an array lies beyond those of all others.

    >>> _number("1234.server"), _number("1234[7].server")
    (1234, 800001234)
    """
    match = _JOB.match(job)
    if match is None:
        return UNKNOWN
    return int(match[1]) + (SUBJOB * (int(match[2]) + 1) if match[2] else 0)


def _slots(hosts: str) -> int:
    """Return how many processors a list of hosts has; `UNKNOWN` where there is none.

    >>> _slots("n1/0*4+n2/0*4"), _slots("n1/0+n1/1"), _slots("")
    (8, 2, -1)
    """
    counts = [each.partition("*")[2] or "1" for each in hosts.split("+") if each]
    return sum(whole_number(count) or 0 for count in counts) or UNKNOWN


def _whole(told: Mapping[str, str], name: str) -> int:
    number = whole_number(told.get(name, ""))
    return UNKNOWN if number is None else number


def _span(text: str | None, *, unlimited: bool = False) -> int:
    if text is None:
        return MAX_DURATION if unlimited else UNKNOWN
    seconds = seconds_of(text)
    return UNKNOWN if seconds is None else seconds


def _mebibytes(text: str) -> int:
    """Return a size in MiB, rounded up; `UNKNOWN` where it is none.

    >>> _mebibytes("4gb"), _mebibytes("1048577kb"), _mebibytes("")
    (4096, 1025, -1)
    """
    match = _SIZE.match(text)
    if match is None:
        return UNKNOWN
    kib = int(match[1]) * _KIB[match[2].lower()] * (8 if match[3].lower() == "w" else 1)
    return int(-(-kib // 1024)) if kib // 1024 < MAX_AMOUNT else UNKNOWN
