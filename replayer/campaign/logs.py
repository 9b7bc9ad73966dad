"""The logs of a campaign: found by name in a folder, known by the digest of their bytes."""

import os
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import file_digest
from pathlib import Path
from typing import NamedTuple

import numpy as np

from shadowtime.replayer.arguments import split_size
from shadowtime.replayer.campaign.file import Campaign, LogEntry
from shadowtime.replayer.logs import Workload, prepare, read_trace
from shadowtime.replayer.options import Oversized, Requests
from shadowtime.shared.chance import key_of, uniform
from shadowtime.shared.errors import TraceError


class ArchiveFile(NamedTuple):
    """A log of an archive: its file without `.swf` and `.gz`, and the page that has it."""

    file: str
    page: str


_WORKLOADS = "https://www.cs.huji.ac.il/labs/parallel/workload"
ARCHIVE = {
    "ANL-Intrepid": ArchiveFile("ANL-Intrepid-2009-1", f"{_WORKLOADS}/l_anl_int/"),
    "CTC": ArchiveFile("CTC-SP2-1996-3.1-cln", f"{_WORKLOADS}/l_ctc_sp2/"),
    "HPC2N": ArchiveFile("HPC2N-2002-2.2-cln", f"{_WORKLOADS}/l_hpc2n/"),
    "KTH": ArchiveFile("KTH-SP2-1996-2", f"{_WORKLOADS}/l_kth_sp2/"),
    "Mira": ArchiveFile("ALCF-Mira-2018", "https://github.com/DIR-LAB/lumos"),
    "SDSC-SP2": ArchiveFile("SDSC-SP2-1998-4.2-cln", f"{_WORKLOADS}/l_sdsc_sp2/"),
    "SDSC-Blue": ArchiveFile("SDSC-BLUE-2000-4.2-cln", f"{_WORKLOADS}/l_sdsc_blue/"),
}
"""Logs of the Parallel Workloads Archive, and one of LUMOS, by the names that campaigns call them."""


@dataclass(frozen=True)
class CampaignLog:
    """A log that was found, and what is made of it; `cluster` is what draws of chance depend on."""

    label: str
    cluster: str
    path: str
    sha256: str
    processors: int | None
    filter: Oversized
    requests: Requests
    jobs: int | None


def find_logs(campaign: Campaign, folder: Path, first: int | None = None) -> list[CampaignLog]:
    """Return every log of a campaign; `first` takes the place of the jobs that it names.

    Raises
    ------
    TraceError
        If one is missing: says where it was looked for, and where it can be had.
    """
    return [_find(entry, campaign, folder, first) for entry in campaign.logs]


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
    )


def _path_of(name: str, folder: Path) -> Path:
    archived = ARCHIVE.get(name)
    names = [name] if archived is None else [f"{archived.file}.swf.gz", f"{archived.file}.swf"]
    for key in names:
        if (path := (folder / key).absolute()) and os.path.isfile(path):  # which no name makes raise
            return path
    if archived is None:
        known = f"neither a file in {folder} nor one of {', '.join(ARCHIVE)}"
        raise TraceError(f"log {name} is missing: {known}; the Parallel Workloads Archive has logs: {_WORKLOADS}/")
    raise TraceError(f"log {name} is missing: there is no {names[0]} in {folder}; it can be had at {archived.page}")


def sha256_of(path: Path) -> str:
    """Return the digest of a file's bytes."""
    try:
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}") from None


@lru_cache(maxsize=2)
def workload_of(log: CampaignLog) -> Workload:
    """Return what is replayed of a log, which has to be the one that was found: on a cluster each node has its own.

    Raises
    ------
    TraceError
        If it cannot be read, or is another.
    """
    path = Path(log.path)
    if (digest := sha256_of(path)) != log.sha256:
        raise TraceError(f"{path}: another file than the campaign's: SHA-256 {digest[:12]}…, not {log.sha256[:12]}…")
    return prepare(read_trace(path), log.processors, oversized=log.filter, requests=log.requests, limit=log.jobs)


# Copies of a log in which every submission is moved a little: one replay is one draw.

MAX_SHIFT = 60
"""Seconds by which a submission is moved at most."""


def perturbed(workload: Workload, copy: int) -> Workload:
    """Return a copy of a log, always the same for the same number; the log itself for 0.

    Each submission is moved by a uniform draw of up to `MAX_SHIFT` either way, and no further ahead than to that of the
    user's job before it: what a user submits stays in order. No job is submitted before the first second of the log,
    and numbers break ties as ever.
    """
    if copy == 0:
        return workload
    numbers, submitted = workload.columns["job_number"], workload.columns["submit_time"]
    draws = uniform(key_of(copy, workload.name), numbers, 0)
    moved = submitted + np.floor(draws * (2 * MAX_SHIFT + 1)).astype(np.int64) - MAX_SHIFT
    moved = np.maximum(moved, min(submitted[0], 0))
    users = workload.columns["user_id"]
    by_user = np.argsort(users, kind="stable")
    for of_user in np.split(by_user, np.flatnonzero(np.diff(users[by_user])) + 1):
        if users[of_user[0]] >= 0:  # of a user who is named
            after = np.concatenate(([0], np.cumsum(np.diff(numbers[of_user]) < 0)))  # at one time the number decides
            moved[of_user] = np.maximum.accumulate(moved[of_user] - after) + after

    columns = {**workload.columns, "submit_time": moved}
    order = np.lexsort((numbers, moved))
    unused = {name: column[order] for name, column in workload.unused.items()}
    return replace(workload, columns={name: column[order] for name, column in columns.items()}, unused=unused)
