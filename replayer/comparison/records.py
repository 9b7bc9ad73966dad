"""Records of a replay beside its scores: the decision log and the schedule."""

from array import array
from typing import BinaryIO, Protocol

import numpy as np
import orjson

from shadowtime.shared.cluster import OUTCOMES
from shadowtime.shared.kernels import Integers
from shadowtime.shared.messages import (
    ClusterOpened,
    Decided,
    Envelope,
    JobEnded,
    JobStarted,
    JobSubmitted,
    JobWithdrawn,
    Outcome,
    moment,
)

STATUSES: dict[Outcome, int] = {outcome: status for status, outcome in OUTCOMES.items() if status is not None} | {
    "limit": 0,
    "killed": 5,
}
"""The status of the Standard Workload Format for each outcome."""


def as_standard(status: int) -> int:
    """Return a status as the Standard Workload Format has it; -1 stays, as what is unknown.

    >>> as_standard(1), as_standard(100)
    (1, 0)
    """
    outcome = OUTCOMES.get(status)
    return status if outcome is None else STATUSES[outcome]


UNDECIDED = {"unix_start", "sample_every", "name", "experiment"}
"""Settings that no decision depends on."""


class Sink(Protocol):
    """A target of a log: a file, or anything else that takes bytes."""

    def write(self, data: bytes, /) -> object:
        """Take in the next bytes."""
        ...


class DecisionLog:
    """Writes the settings of a run, then every `Decided`, one JSON line each.

    Nothing in it depends on the name of the run, the clock or the way in which the pipeline runs: the same trace,
    settings and seed give the same bytes.
    """

    def __init__(self, file: Sink) -> None:
        self._file = file

    def __call__(self, envelope: Envelope) -> None:
        """Take in an envelope that has left the scheduler."""
        event = envelope.event
        if isinstance(event, Decided | ClusterOpened):
            fields = event.model_dump(exclude_none=True, exclude=UNDECIDED)
            self._file.write(orjson.dumps({"sequence": envelope.sequence} | fields))
            self._file.write(b"\n")


class Schedule:
    """Remembers when each job ran, six numbers a job, and writes them in order of job number."""

    HEADER = b"job_number,submit_time,start_time,end_time,processors,status\n"

    def __init__(self) -> None:
        self._submit_times: dict[int, int] = {}
        self._starts: dict[int, JobStarted] = {}
        self._rows = array("q")

    def __call__(self, envelope: Envelope) -> None:
        """Take in an envelope."""
        event = envelope.event
        if isinstance(event, JobSubmitted):
            self._submit_times[event.job_number] = event.since
        elif isinstance(event, JobWithdrawn):
            del self._submit_times[event.job_number]
        elif isinstance(event, JobStarted):
            self._starts[event.job_number] = event
        elif isinstance(event, JobEnded):
            started = self._starts.pop(event.job_number)
            if not event.requeued:
                submit_time = self._submit_times.pop(event.job_number)
                status = STATUSES[event.outcome]
                row = (event.job_number, submit_time, moment(started), moment(event), started.processors, status)
                self._rows.extend(row)

    def table(self) -> Integers:
        """Return the jobs that have ended, (n, 6) in order of job number; columns as in `HEADER`."""
        rows = np.array(self._rows, dtype=np.int64).reshape(-1, 6)
        return rows[np.argsort(rows[:, 0])]

    def write(self, file: BinaryIO) -> None:
        """Write the header and the jobs that have ended, as comma-separated values."""
        file.write(self.HEADER)
        np.savetxt(file, self.table(), fmt="%d", delimiter=",")
