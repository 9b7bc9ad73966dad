"""The logs of a campaign: found by name in a folder, identified by the digest of their bytes."""

import os
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from shadowtime.replayer.arguments import read_without_options, report_left_out, split_size
from shadowtime.replayer.campaign.file import Campaign, LogEntry
from shadowtime.replayer.logs import (
    BUNDLED,
    FIELDS,
    Trace,
    Workload,
    of_rows,
    parse_put_back,
    prepare,
    put_back,
    sha256_of,
    size_note,
)
from shadowtime.replayer.options import Oversized, Requests, Sizes
from shadowtime.replayer.simulation import SOURCES
from shadowtime.shared.accounting import lines_of
from shadowtime.shared.cli import say
from shadowtime.shared.errors import TraceError


class ArchiveFile(NamedTuple):
    """A log of an archive: its file name without `.swf` and `.gz`, and its download page."""

    file: str
    page: str


_WORKLOADS = "https://www.cs.huji.ac.il/labs/parallel/workload"
ARCHIVE = {
    "ANL-Intrepid": ArchiveFile("ANL-Intrepid-2009-1", f"{_WORKLOADS}/l_anl_int/"),
    "CTC": ArchiveFile("CTC-SP2-1996-3.1-cln", f"{_WORKLOADS}/l_ctc_sp2/"),
    "HPC2N": ArchiveFile("HPC2N-2002-2.2-cln", f"{_WORKLOADS}/l_hpc2n/"),
    "KTH": ArchiveFile("KTH-SP2-1996-2", f"{_WORKLOADS}/l_kth_sp2/"),
    "Mira": ArchiveFile("ALCF-Mira-2018", "https://github.com/DIR-LAB/lumos"),
    "SDSC-Par-1996": ArchiveFile("SDSC-Par-1996-3.1-cln", f"{_WORKLOADS}/l_sdsc_par/"),
    "SDSC-SP2": ArchiveFile("SDSC-SP2-1998-4.2-cln", f"{_WORKLOADS}/l_sdsc_sp2/"),
    "SDSC-Blue": ArchiveFile("SDSC-BLUE-2000-4.2-cln", f"{_WORKLOADS}/l_sdsc_blue/"),
    "SDSC-DS": ArchiveFile("SDSC-DS-2004-2.1-cln", f"{_WORKLOADS}/l_sdsc_ds/"),
}
"""Logs of the Parallel Workloads Archive, and one of LUMOS, by their names in campaigns."""


COMPLETED = 1
"""Status of a job that completed, in the Standard Workload Format."""


@dataclass(frozen=True)
class CampaignLog:
    """A log file and the settings to prepare it. `cluster` is part of the key of seeded random numbers.

    `recorded` says whether jobs start as logged. Then jobs of an accounting file that never started are kept.
    """

    label: str
    cluster: str
    path: str
    sha256: str
    processors: int | None
    filter: Oversized
    requests: Requests
    jobs: int | None
    sizes: Sizes = "requested"
    months: tuple[int, ...] = ()
    put_back: str | None = None
    load: float = 1.0
    completed: tuple[int, int] | None = None
    skip: int = 0
    recorded: bool = False


def find_logs(campaign: Campaign, folder: Path, first: int | None = None) -> list[CampaignLog]:
    """Return every log of a campaign that is in a folder or bundled. With `first`, each has only that number of jobs.

    `first` overrides `jobs`, `months` and `skip` of the campaign.

    Raise `TraceError` if a log is missing that is not optional, or if all logs are missing. The error says where it was
    searched and where it can be downloaded.
    """
    there = [entry for entry in campaign.logs if not entry.optional or _is_there(entry, folder)]
    logs = [_find(entry, campaign, folder, first) for entry in there or campaign.logs]
    if left_out := [entry.called for entry in campaign.logs if entry not in there]:
        say(f"left out, since {folder} does not have them: {', '.join(left_out)}")
    return logs


def _is_there(entry: LogEntry, folder: Path) -> bool:
    try:
        _path_of(split_size(entry.log)[0], folder)
    except TraceError:
        return False
    return True


def _find(entry: LogEntry, campaign: Campaign, folder: Path, first: int | None) -> CampaignLog:
    name, processors = split_size(entry.log)
    path = _path_of(name, folder)
    return CampaignLog(
        entry.called,
        entry.name,
        str(path),
        sha256_of(path),
        processors,
        entry.filter or campaign.filter,
        entry.requests or campaign.requests,
        first or entry.jobs or campaign.jobs,
        entry.sizes or campaign.sizes,
        () if first else entry.months,
        entry.put_back,
        entry.load or campaign.load,
        entry.completed,
        0 if first else entry.skip,
        not SOURCES[campaign.mode].closed_loop,
    )


BUNDLED_NAME = "bundled"
"""Name of the bundled log in campaigns. A file of this name in their folder has precedence."""


def _path_of(name: str, folder: Path) -> Path:
    archived = ARCHIVE.get(name)
    names = [name] if archived is None else [f"{archived.file}.swf.gz", f"{archived.file}.swf"]
    for key in names:
        if (path := (folder / key).absolute()) and os.path.isfile(path):  # unlike Path.is_file, it never raises
            return path
    if name == BUNDLED_NAME:
        return BUNDLED
    if archived is None:
        known = f"it is neither a file in {folder} nor one of {', '.join((BUNDLED_NAME, *ARCHIVE))}"
        raise TraceError(f"log {name} is missing: {known}; for logs, see the Parallel Workloads Archive: {_WORKLOADS}/")
    raise TraceError(f"log {name} is missing: there is no {names[0]} in {folder}; download it from {archived.page}")


@lru_cache(maxsize=2)
def workload_of(log: CampaignLog) -> Workload:
    """Return the workload of a log. Check the file's digest, because each node of a cluster may have its own file.

    Raise `TraceError` if the file cannot be read, its digest differs, or no job is left.
    """
    return _prepared(log, _trace_of(log))


def report_log(log: CampaignLog) -> None:
    """Report remarks on a log, and its jobs that are left out or cut. Raise `TraceError` as `workload_of` does."""
    trace = _trace_of(log)
    note = size_note(trace, log.processors, "LOG@PROCESSORS")
    report_left_out(_prepared(log, trace), (*trace.notes, note), say)


def _trace_of(log: CampaignLog) -> Trace:
    path = Path(log.path)
    if (digest := sha256_of(path)) != log.sha256:
        raise TraceError(
            f"{path} differs from the campaign's file: SHA-256 {digest[:12]}…, expected {log.sha256[:12]}…; "
            "copy that file here"
        )
    trace = read_without_options(path)
    if log.put_back is not None:
        trace = put_back(trace, parse_put_back(log.put_back))
    if log.completed is not None:
        status, run_time = (trace.table[:, FIELDS.index(name)] for name in ("status", "run_time"))
        shortest, longest = log.completed
        kept = (status == COMPLETED) & (run_time >= shortest) & (run_time <= longest)
        more = {name: column[kept] for name, column in trace.more.items()}
        trace = replace(trace, table=trace.table[kept], more=more)
    return trace


def _prepared(log: CampaignLog, trace: Trace) -> Workload:
    workload = prepare(
        trace,
        log.processors,
        oversized=log.filter,
        requests=log.requests,
        sizes=log.sizes,
        limit=log.jobs,
        load=log.load,
        recorded=log.recorded,
    )
    return without_first(workload, log.skip)


def without_first(workload: Workload, count: int) -> Workload:
    """Return the workload without its first `count` jobs. Raise `TraceError` if no job is left."""
    if count >= len(workload):
        raise TraceError(
            f"{workload.name}: skip leaves out {count:,} jobs, and the log has {len(workload):,}; lower skip"
        )
    return of_rows(workload, slice(count, None)) if count else workload


MONTH = 30 * 86_400
"""Length of a month in seconds."""


def month_of(workload: Workload, month: int) -> Workload:
    """Return the jobs that were submitted in a month since the first submission, counted from 1; 0 is the whole log.

    Raise `TraceError` if no job was submitted in this month.
    """
    if not month:
        return workload
    submitted = workload.columns["submit_time"]
    months = (submitted - submitted[0]) // MONTH + 1
    rows = months == month
    if not rows.any():
        raise TraceError(f"{workload.name}: no job in month {month}; expected one of 1 to {months[-1]}")
    return of_rows(workload, rows)


QUEUE = re.compile(r";\s*Queue:\s*(\d{1,9})\s+([A-Za-z][\w-]*)\s*$")
"""A line of a header in the Standard Workload Format that names a queue."""


def queue_names(path: Path) -> dict[int, str]:
    """Return the names of queues in the header of a log, by number. Names that occur twice are left out."""
    names: dict[int, str] = {}
    for lines in lines_of(path):
        for line in lines:
            if not line.startswith(b";"):
                return {number: name for number, name in names.items() if list(names.values()).count(name) == 1}
            if match := QUEUE.match(line.decode(errors="replace").rstrip()):
                names[int(match[1])] = match[2]
    return names
