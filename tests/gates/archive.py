"""Full logs of the Parallel Workloads Archive, beside the checkout, and their replays, each made once."""

import csv
import gzip
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from shadowtime.replayer.comparison.plan import RunPlan, RunResult, carry_out
from shadowtime.replayer.comparison.records import Schedule
from shadowtime.replayer.logs.swf import read_swf
from shadowtime.replayer.logs.workload import Workload, prepare
from shadowtime.replayer.options import Requests
from shadowtime.services.catalogue import configure
from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.errors import TraceError
from shadowtime.shared.messages.envelope import Envelope, JobStarted

SHARED = ROOT.parent / "shared"
TRACES, REFERENCE = SHARED / "traces", SHARED / "reference"
FILES = {
    "KTH": "KTH-SP2-1996-2",
    "SDSC-SP2": "SDSC-SP2-1998-4.2-cln",
    "CTC": "CTC-SP2-1996-3.1-cln",
    "HPC2N": "HPC2N-2002-2.2-cln",
    "Mira": "ALCF-Mira-2018",
}

needs_archive = pytest.mark.skipif(not TRACES.is_dir(), reason=f"the logs of the archive are not in {TRACES}")


def path_of(trace: str) -> Path:
    """Return where a log of the archive lies; raises `TraceError` if it does not."""
    path = TRACES / f"{FILES[trace]}.swf.gz"
    if not path.is_file():
        raise TraceError(f"log {trace} of the archive is missing: there is no {path}")
    return path


@lru_cache(maxsize=16)
def workload(trace: str, processors: int, requests: Requests = "as-logged", limit: int | None = None) -> Workload:
    """Return a log of the archive as it is replayed on a machine of this size."""
    return prepare(read_swf(path_of(trace)), processors, requests=requests, limit=limit)


def plan(trace: str, processors: int, policy: str, requests: Requests = "as-logged") -> RunPlan:
    """Return a closed run over a full log."""
    return RunPlan(policy, f"{trace}@{processors}", workload(trace, processors, requests), configure(policy))


@lru_cache(maxsize=64)
def replayed(trace: str, processors: int, policy: str, requests: Requests) -> RunResult:
    """Return the scores of a full log under a policy."""
    return carry_out(plan(trace, processors, policy, requests))


def schedule(run: RunPlan) -> bytes:
    """Return the schedule file of a run."""
    rows, file = Schedule(), BytesIO()
    carry_out(run, [rows])
    rows.write(file)
    return file.getvalue()


def start_times(run: RunPlan) -> NDArray[np.int64]:
    """Return the time at which each job of a run starts, in order of submit time and job number."""
    started: dict[int, int] = {}

    def note(envelope: Envelope) -> None:
        if isinstance(envelope.event, JobStarted):
            started[envelope.event.job_number] = envelope.event.time

    carry_out(run, [note])
    return np.array([started[number] for number in run.workload.columns["job_number"].tolist()])


class PublishedSchedule(NamedTuple):
    """A published schedule, in order of submit time and job number."""

    submit: NDArray[np.int64]
    start: NDArray[np.int64]
    processors: NDArray[np.int64]


@lru_cache(maxsize=2)
def published(trace: str) -> PublishedSchedule:
    """Return the published EASY schedule with actual run times as requests."""
    with gzip.open(REFERENCE / f"{FILES[trace]}-easy-actual.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    columns = (np.array([int(float(row[name])) for row in rows]) for name in ("submit", "start", "procs"))
    return PublishedSchedule(*columns)
