"""Records of a replay in addition to its scores: the decision log and the schedule."""

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
"""SWF status of each outcome."""


def as_standard(status: int) -> int:
    """Return the SWF status for a status of any log. An unknown status, such as -1, is returned unchanged.

    >>> as_standard(1), as_standard(100)
    (1, 0)
    """
    outcome = OUTCOMES.get(status)
    return status if outcome is None else STATUSES[outcome]


UNDECIDED = {"unix_start", "sample_every", "name", "experiment"}
"""Settings without influence on decisions."""


class Sink(Protocol):
    """A target of a decision log: a file, or any other object with `write`."""

    def write(self, data: bytes, /) -> object:
        """Write the next bytes."""
        ...


class DecisionLog:
    """An observer that writes the settings of a run, then every `Decided`, one JSON line each.

    The log does not depend on the name of the run, the clock or the transport: the same trace, settings and seed give
    the same bytes.
    """

    def __init__(self, file: Sink) -> None:
        self._file = file

    def __call__(self, envelope: Envelope) -> None:
        """Write the event of an envelope that has left the scheduler."""
        event = envelope.event
        if isinstance(event, Decided | ClusterOpened):
            fields = event.model_dump(exclude_none=True, exclude=UNDECIDED)
            self._file.write(orjson.dumps({"sequence": envelope.sequence} | fields))
            self._file.write(b"\n")


class Schedule:
    """An observer that records six numbers of each ended job (`HEADER`), and writes them in order of job number.

    Of a job that was restarted, only the last run is recorded.
    """

    HEADER = b"job_number,submit_time,start_time,end_time,processors,status\n"

    def __init__(self) -> None:
        self._submit_times: dict[int, int] = {}
        self._starts: dict[int, JobStarted] = {}
        self._rows = array("q")

    def __call__(self, envelope: Envelope) -> None:
        """Record the event of an envelope."""
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
        """Return the ended jobs, shape (n, 6), in order of job number. Columns are as in `HEADER`."""
        rows = np.array(self._rows, dtype=np.int64).reshape(-1, 6)
        return rows[np.argsort(rows[:, 0])]

    def write(self, file: BinaryIO) -> None:
        """Write the header and the ended jobs as comma-separated values."""
        file.write(self.HEADER)
        np.savetxt(file, self.table(), fmt="%d", delimiter=",")
