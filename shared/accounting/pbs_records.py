"""Accounting records of OpenPBS, PBS Pro and Torque, one for each event of a job, combined into job lives."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from shadowtime.shared.accounting.durations import seconds_of
from shadowtime.shared.accounting.instants import Instants, whole_number
from shadowtime.shared.accounting.job_numbers import number_of
from shadowtime.shared.accounting.reading import UNKNOWN
from shadowtime.shared.bounds import MAX_AMOUNT, MAX_DURATION
from shadowtime.shared.cluster import KILLED, LIMIT
from shadowtime.shared.quoting import quote

RECORD = re.compile(r"(\d\d)/(\d\d)/(\d{4}) (\d\d:\d\d:\d\d);([A-Za-z]{1,2});([^;]*);?(.*)\Z")
"""A record: date and local time on the machine that wrote it, type, job, and message."""

RESERVATION = re.compile(r"[RSM][0-9]+(?:[.;]|\Z)")
"""The number of a reservation: advance, standing or for maintenance. Such a record is about no job."""

KILLED_BY_SIGNAL = 256
"""Exit statuses from this number on are signals. Negative statuses come from the server, see `LIMIT_EXITS`."""

LIMIT_EXITS = {"PBS": -29, "Torque": -11}
"""Exit status of a job that was ended at its run time limit. In PBS, -11 means that the job runs again."""

RERUN_EXITS = {"PBS": {-11, -12, -13, -14}, "Torque": {-3, -13, -14}}
"""Exit statuses of jobs that run again. In Torque, -10 and -12 are the limits of memory and of CPU time."""

OF_TORQUE = {"owner", "total_execution_slots", "unique_node_count", "Resource_List.neednodes", "Resource_List.nodes"}
"""Attributes that Torque writes. PBS Pro has `Resource_List.nodes` too, but then also one of `OF_PBS`."""

OF_PBS = {"Resource_List.place", "Resource_List.select", "project", "run_count", "exec_vnode"}
"""Attributes that only OpenPBS and PBS Pro write."""

OF_REQUESTS = tuple(f"Resource_List.{name}" for name in ("nodes", "neednodes", "nodect", "procs", "gpu", "select"))
"""Attributes with the size that a job requests."""

OF_SIZES = (
    *OF_REQUESTS,
    *(f"Resource_List.{name}" for name in ("ncpus", "mem", "ngpus")),
    *("exec_host", "exec_vnode"),
)
"""Attributes with what a job requests or holds."""

DELETED = {"D", "A", "K"}
"""Types of records of jobs that a person or the server deleted. A job that ran also has a record of its end."""

PHASE = "u"
"""Type of a record of the first part of a run, whose job then releases some of its nodes. `c` and `e` are about the
next parts, and say nothing of the whole run."""

HANDLED = {"Q", "S", "E", "R", "M", PHASE} | DELETED
"""Types of records that are read."""

_FIRST_SECOND = 10**8
"""Limit below which a number is no instant, but damage: the year 1973."""

_PAIR = re.compile(r"(?<![\w.])([\w.]+)=(\"[^\"]*\"|'[^']*'|\S*)")
_KEY = re.compile(r"(?<![\w.])[\w.]+\Z")
_JOB = re.compile(r"([0-9]{1,12})(?:\[([0-9]{0,7})\]|-([0-9]{1,7}))?(?:\.|\Z)")
_RANGES = re.compile(r"(?:\A|/)[0-9]{1,7}(?:[-,][0-9]{1,7})+(?=\Z|\+)")
_SIZE = re.compile(r"([0-9]{1,15})([kmgtp]?)(b|w)\Z", re.IGNORECASE)
_EXIT = re.compile(r"-?[0-9]{1,9}\Z")
_KIB = {"": 1 / 1024, "k": 1.0, "m": 1024.0, "g": 1024.0**2, "t": 1024.0**3, "p": 1024.0**4}


class PbsWaiting(NamedTuple):
    """A queued or running job: line of its last record, Unix times, and the attributes of all its records.

    `started` is `UNKNOWN` while the job waits. `deleted` says whether it was deleted while it ran. A record of its end
    should follow. `held` has what the job held before it released nodes.
    """

    line: int
    queued: int
    started: int
    attributes: Mapping[str, str]
    deleted: bool = False
    held: Mapping[str, str] | None = None


class PbsLife(NamedTuple):
    """The facts about a life of a job from its records so far; `end` is `UNKNOWN` after a record Q or S.

    `kind` is the type of the last record. `known` is False if all facts are from one record that is not of type Q or S.
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
        self.released: list[str] = []
        """The jobs that released nodes while they ran. They count with all that they held."""
        self._instants = instants

    def take(self, text: str, line: int = 0) -> PbsLife | None:
        """Return the facts from a record and the earlier records of its job.

        None if the line is empty, or its type is not read. None also for a record about a reservation, an array as a
        whole, released nodes, or the deletion of a running job.

        Raise `ValueError` if the line is not a record of a job.
        """
        text = text.strip()
        if not text:
            return None
        match = RECORD.match(text)
        if match is None:
            raise ValueError(f"not a record of PBS: {quote(text)}")
        month, day, year, clock, kind, job, message = match.groups()
        if kind not in HANDLED or "[]" in job or RESERVATION.match(job):  # an array as a whole is not a job
            return None
        time = self._instants(f"{year}-{month}-{day}T{clock}")
        if time is None or not _JOB.match(job):
            raise ValueError(f"a record without a valid time and job number: {quote(text)}")
        self.time = time
        attributes = _attributes_of(message)
        known = self.waiting.pop(job, None)
        if kind in ("Q", "S"):
            before = known or PbsWaiting(line, time, UNKNOWN, {})
            queued, started = (time, UNKNOWN) if kind == "Q" else (before.queued, time)
            self.waiting[job] = known = PbsWaiting(line, queued, started, {**before.attributes, **attributes})
        elif kind == PHASE:
            before = known or PbsWaiting(line, _instant(attributes, "ctime"), _instant(attributes, "start"), attributes)
            if before.held is None:
                self.released.append(job)
                before = before._replace(held={name: attributes[name] for name in OF_SIZES if name in attributes})
            self.waiting[job] = before
            return None
        elif kind in DELETED and known is not None and known.started != UNKNOWN:
            self.waiting[job] = known._replace(deleted=True)  # the record of its end follows, and is read then
            return None
        elif kind == "R":
            self.waiting[job] = PbsWaiting(line, time, UNKNOWN, {**(known.attributes if known else {}), **attributes})

        return PbsLife(line, kind, job, known is not None, *_facts_of(job, kind, time, attributes, known))


@lru_cache(maxsize=4_096)
def _key_of(text: str) -> str | None:
    match = _KEY.search(text)
    return match and match[0]


def _attributes_of(message: str) -> dict[str, str]:
    """Return the attributes of a record, such as `user=eve queue=workq`. Values with blanks are in quotes.

    >>> _attributes_of("user=eve jobname=a b Resource_List.select=1:ncpus=4"), _attributes_of("comment='a b=c' x=1")
    ({'user': 'eve', 'jobname': 'a', 'Resource_List.select': '1:ncpus=4'}, {'comment': 'a b=c', 'x': '1'})
    """
    if '"' not in message and "'" not in message:
        pairs = [part.partition("=") for part in message.split() if "=" in part]
        attributes = {_key_of(key): value for key, _, value in pairs}
        if None not in attributes:
            return attributes  # type: ignore[return-value]
    return {key: value.strip("\"'") for key, value in _PAIR.findall(message)}


def _facts_of(
    job: str, kind: str, time: int, attributes: Mapping[str, str], known: PbsWaiting | None
) -> tuple[dict[str, int], dict[str, str]]:
    """Return the numbers and words of a life, from a record and the earlier records of the job."""
    asked = {**known.attributes, **attributes, **(known.held or {})} if known else attributes
    over = kind not in ("Q", "S")
    start = UNKNOWN if kind == "Q" else _instant(attributes, "start")
    if start == UNKNOWN and known is not None and kind in ("S", "E", "R"):
        start = known.started
    ended, limit = _instant(attributes, "end"), _span(asked.get("Resource_List.walltime"), unlimited=True)
    submit = _instant(asked, "ctime")
    if submit == UNKNOWN and known is not None:
        submit = known.queued
    eligible = _instant(asked, "etime")
    if any(0 <= instant < _FIRST_SECOND for instant in (submit, eligible, start, ended)):
        raise ValueError(f"job {quote(job)} has a time before 1973, which is not a Unix time")
    exit_status = attributes.get("Exit_status", "")
    over_limit = UNKNOWN not in (start, ended) and 0 < limit <= ended - start
    code = int(exit_status) if _EXIT.match(exit_status) else None
    hosts, request, of_cray = asked.get("exec_host", ""), _requested(*map(asked.get, OF_REQUESTS)), _elements(asked)
    if of_cray:
        request = PbsRequest(*map(max, request, of_cray))
    ncpus = _whole(asked, "Resource_List.ncpus")  # PBS adds its defaults to what `select` states
    numbers = {
        "job_number": number_of(*numbered(job)),
        "submit": submit,
        "eligible": submit if eligible == UNKNOWN else eligible,
        "start": start,
        "end": UNKNOWN if not over else time if ended == UNKNOWN else ended,
        "run_time": _span(attributes.get("resources_used.walltime")) or UNKNOWN if kind == "E" else UNKNOWN,
        "limit": limit,
        "processors": _processors(asked, hosts, request),
        "requested": ncpus if "Resource_List.select" in asked and ncpus > 0 and not of_cray else request.processors,
        "nodes": max(_whole(asked, "Resource_List.nodect"), request.nodes),
        "memory": _mebibytes(asked.get("Resource_List.mem", "")),
        "gpus": max(_whole(asked, "Resource_List.ngpus"), request.gpus),
        "whole_nodes": 1 if "excl" in asked.get("Resource_List.place", "") else UNKNOWN,
        "status": _status(kind, code, system_of(asked), over_limit=over_limit),
    }
    words = {
        "user": asked.get("user", ""),
        "account": asked.get("account") or asked.get("project", "").removeprefix("_pbs_project_default"),
        "job_name": asked.get("jobname", ""),
        "partition": asked.get("queue", ""),
        "node_list": hosts.partition("/")[0].partition("+")[0],
    }
    return numbers, words


def system_of(attributes: Mapping[str, str]) -> str:
    """Return which of the two families of PBS wrote the records of a job, `PBS` or `Torque`.

    Their records have the same form, but the same exit status means different things.

    >>> system_of({"owner": "eve@login", "exec_host": "c1/0-15"}), system_of({"exec_host": "n1/0*4"})
    ('Torque', 'PBS')
    """
    hosts = attributes.get("exec_host", "")
    if "*" in hosts or not OF_PBS.isdisjoint(attributes):
        return "PBS"
    return "Torque" if not OF_TORQUE.isdisjoint(attributes) or _RANGES.search(hosts) else "PBS"


def _status(kind: str, code: int | None, system: str, *, over_limit: bool) -> int:
    """Return the status of a job by its exit status, and by whether it ran for as long as its limit.

    Many servers and schedulers end a job at its limit by a signal, as a user ends it.
    """
    if kind == "R" or (code is not None and code in RERUN_EXITS[system]):
        return KILLED
    if kind in DELETED:
        return 5
    signalled = code in (KILLED_BY_SIGNAL + 15, KILLED_BY_SIGNAL + 9)
    if code == LIMIT_EXITS[system] or (signalled and over_limit):
        return LIMIT
    return 1 if code in (0, None) else 5 if signalled else 0


def numbered(job: str) -> tuple[int, int | None]:
    """Return the number of a job, and that of the task or None; raise `ValueError` if the text has no job number.

    Torque before version 3 wrote the task behind a dash.

    >>> numbered("1234.server"), numbered("1234[7].server"), numbered("1234-7.server")
    ((1234, None), (1234, 7), (1234, 7))
    """
    match = _JOB.match(job)
    if match is None:
        raise ValueError(f"not a job number: {quote(job)}")
    task = match[2] or match[3]
    return int(match[1]), int(task) if task else None


class PbsRequest(NamedTuple):
    """The size of a request such as `nodes=2:ppn=16`; `UNKNOWN` for a number that the request does not state."""

    processors: int
    nodes: int
    gpus: int


def _processors(asked: Mapping[str, str], hosts: str, request: PbsRequest) -> int:
    """Return the processors of a job: those that it held, or else those that it requested.

    `total_execution_slots` is Torque's own count of the slots in `exec_host`. If the two disagree, or a list of hosts
    has no slots, the largest number in all attributes counts.
    """
    slots, counted = _slots(hosts), _whole(asked, "total_execution_slots")
    if slots > 0 and slots == counted:
        return slots
    return max(slots, counted, request.processors, _whole(asked, "Resource_List.ncpus"))


@lru_cache(maxsize=65_536)
def _slots(hosts: str) -> int:
    """Return the number of processors in a list of hosts; `UNKNOWN` for an empty list.

    PBS counts them (`*4`), Torque lists their indices.

    >>> _slots("n1/0*4+n2/0*4"), _slots("n1/0+n1/1"), _slots("c1/0-15+c2/0-1,5,11"), _slots("")
    (8, 2, 20, -1)
    """
    slots = 0
    for host in hosts.split("+") if hosts else ():
        indices, star, count = host.rpartition("/")[2].partition("*")
        if star:
            slots += whole_number(count) or 0
        elif indices.isdecimal() or not _RANGES.match(indices):
            slots += 1
        else:
            for part in indices.split(","):
                first, dash, last = part.partition("-")
                slots += max(int(last) - int(first) + 1, 0) if dash else 1

    return slots or UNKNOWN


@lru_cache(maxsize=65_536)
def _requested(
    nodes_asked: str | None,
    needed: str | None = None,
    counted: str | None = None,
    procs_asked: str | None = None,
    gpus_asked: str | None = None,
    selected: str | None = None,
) -> PbsRequest:
    """Return the size in `Resource_List.nodes`: parts such as `2:ppn=16:gpus=1:feature` or a host, joined by `+`.

    `Resource_List.select` of PBS Pro has parts such as `2:ncpus=16:ngpus=1`.

    The arguments are the values of `OF_REQUESTS`. Moab may write the whole request to `Resource_List.nodect`.

    >>> _requested("2:ppn=16+c7:ppn=4:gpus=2#shared")
    PbsRequest(processors=36, nodes=3, gpus=2)
    >>> _requested(None, procs_asked="64")
    PbsRequest(processors=64, nodes=-1, gpus=-1)
    >>> _requested(None, selected="2:ncpus=16:ngpus=4+ncpus=8")
    PbsRequest(processors=40, nodes=3, gpus=8)
    """
    text = nodes_asked or needed or (counted if counted and ":" in counted else selected)
    procs, gpus_of_job = (
        UNKNOWN if (number := whole_number(asked or "")) is None else number for asked in (procs_asked, gpus_asked)
    )
    if not text:
        return PbsRequest(procs, UNKNOWN, gpus_of_job)
    processors = nodes = gpus = 0
    for part in text.partition("#")[0].split("+"):
        count, *properties = part.split(":")
        of_node = dict(pair.split("=", 1) for pair in (count, *properties) if "=" in pair)
        number = whole_number(count)
        number = 1 if number is None else number  # the name of a host or of a feature
        nodes += number
        processors += number * max(_whole(of_node, "ppn"), _whole(of_node, "ncpus"), 1)
        gpus += number * max(*(_whole(of_node, name) for name in ("gpus", "gpu", "ngpus")), 0)

    return PbsRequest(max(processors, procs), nodes, max(gpus, gpus_of_job, 0) or UNKNOWN)


def _elements(asked: Mapping[str, str]) -> PbsRequest | None:
    """Return the size of a request for processing elements of a Cray: `mppwidth`, or `size`; None if it has none.

    An element has `mppdepth` processors, a node `mppnppn` elements. `exec_host` is a node that only starts the job.

    >>> _elements({"Resource_List.mppwidth": "512", "Resource_List.mppdepth": "2", "Resource_List.mppnppn": "16"})
    PbsRequest(processors=1024, nodes=32, gpus=-1)
    """
    width, depth, on_node = (_whole(asked, f"Resource_List.mpp{name}") for name in ("width", "depth", "nppn"))
    width = max(width, _whole(asked, "Resource_List.size"))
    if width <= 0:
        return None
    return PbsRequest(width * max(depth, 1), -(-width // on_node) if on_node > 0 else UNKNOWN, UNKNOWN)


def _whole(attributes: Mapping[str, str], name: str) -> int:
    if name not in attributes:
        return UNKNOWN
    number = whole_number(attributes[name])
    return UNKNOWN if number is None else number


def _instant(attributes: Mapping[str, str], name: str) -> int:
    """Return a Unix time in seconds; `UNKNOWN` if it is missing or 0, as of a job that never ran.

    A fraction, which Cobalt writes, is dropped.

    >>> [_instant({"start": text}, "start") for text in ("1590106208.9", "1590106208", "0", "0.0", "soon")]
    [1590106208, 1590106208, -1, -1, -1]
    """
    text, point, fraction = attributes.get(name, "").partition(".")
    if point and not fraction.isdecimal():
        return UNKNOWN
    return whole_number(text) or UNKNOWN


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
