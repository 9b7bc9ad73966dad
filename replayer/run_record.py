"""What the report needs to know of a run, gathered while it is replayed."""

from array import array
from collections.abc import Mapping
from functools import cached_property
from hashlib import sha256

import numpy as np

from shadowtime.replayer.comparison import Plan
from shadowtime.replayer.records import DecisionLog, Schedule
from shadowtime.shared.arrays import Integers
from shadowtime.shared.events import Envelope, JobEnded, JobStarted, JobSubmitted

NO_BOUND = -1


class Digest:
    """Takes in a file, and keeps its SHA-256 only."""

    def __init__(self) -> None:
        self._sum = sha256()

    def write(self, data: bytes, /) -> None:
        """Take in the next bytes."""
        self._sum.update(data)

    def __str__(self) -> str:
        return self._sum.hexdigest()


class BoundedWaits:
    """Remembers of each job whose wait is known its submission, its wait and the bounds for the whole cluster."""

    def __init__(self) -> None:
        self._groupings: dict[str, int] = {}
        self._started: dict[int, int] = {}
        self._open: dict[int, tuple[int, list[int]]] = {}
        self._rows = array("q")

    def __call__(self, envelope: Envelope) -> None:
        """Take in an envelope."""
        event = envelope.event
        if isinstance(event, JobSubmitted) and envelope.wait_bounds:
            bounds = {each.grouping: each.bound for each in envelope.wait_bounds if each.queue is None}
            if not self._groupings:
                self._groupings = {grouping: place for place, grouping in enumerate(bounds)}
            found = [bounds.get(grouping) for grouping in self._groupings]
            self._open[event.job_number] = event.time, [NO_BOUND if each is None else each for each in found]
        elif isinstance(event, JobStarted):
            self._started[event.job_number] = event.time
            if not event.trial:
                self._reveal(event.job_number)
        elif isinstance(event, JobEnded) and not event.requeued:
            self._reveal(event.job_number)  # the job may have been on trial

    def _reveal(self, job_number: int) -> None:
        start_time = self._started.pop(job_number, None)
        if job_number in self._open and start_time is not None:
            submit_time, found_bounds = self._open.pop(job_number)
            self._rows.extend((submit_time, start_time - submit_time, *found_bounds))

    def by_grouping(self) -> Mapping[str, Integers]:
        """Return for each grouping submit times, waits and bounds in seconds, (n, 3), of the jobs that had a bound."""
        rows = np.array(self._rows, dtype=np.int64).reshape(-1, 2 + len(self._groupings))
        rows = rows[np.argsort(rows[:, 0], kind="stable")]
        return {
            grouping: rows[rows[:, 2 + place] != NO_BOUND][:, [0, 1, 2 + place]]
            for grouping, place in self._groupings.items()
        }


class RunRecord:
    """One run: when its jobs ran, what they were bounded by, and a digest of its decision log.

    Parameters
    ----------
    plan
        What is to be replayed; the record is an observer of that replay.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.bounded_waits = BoundedWaits()
        self._schedule = Schedule()
        self._decisions = Digest()
        self._observers = (self._schedule, self.bounded_waits, DecisionLog(self._decisions))

    def __call__(self, envelope: Envelope) -> None:
        """Take in an envelope that has left the last stage."""
        for observer in self._observers:
            observer(envelope)

    @property
    def decisions_sha256(self) -> str:
        """The SHA-256 of what `--decisions` would have written of this run alone."""
        return str(self._decisions)

    @cached_property
    def jobs(self) -> "Jobs":
        """The jobs that have ended; to be asked for when the replay is over."""
        return Jobs(self.plan, self._schedule.table())


class JobTimes:
    """When jobs ran, as arrays of shape (n,) in order of job number; times in seconds."""

    FIELDS = ("job_number", "submit_time", "start_time", "end_time", "own_run_time")

    def __init__(
        self,
        job_number: Integers,
        submit_time: Integers,
        start_time: Integers,
        end_time: Integers,
        own_run_time: Integers,
    ) -> None:
        self.job_number = job_number
        self.submit_time = submit_time
        self.start_time = start_time
        self.end_time = end_time
        self.own_run_time = own_run_time
        """On the processors that were requested; from start to end a job takes another time if it ran on others."""

    def __len__(self) -> int:
        return len(self.job_number)

    @property
    def wait(self) -> Integers:
        """From submission to start."""
        waits: Integers = self.start_time - self.submit_time
        return waits


class Jobs(JobTimes):
    """The jobs of a run that have ended, and what they asked for."""

    def __init__(self, plan: Plan, schedule: Integers) -> None:
        job_number, submit_time, start_time, end_time, self.processors, _ = schedule.T
        columns = plan.workload.columns
        order = np.argsort(columns["job_number"])
        rows = order[np.searchsorted(columns["job_number"], job_number, sorter=order)]
        self.requested_time = columns["requested_time"][rows]
        self.requested_processors = columns["processors"][rows]
        run_time = columns["run_time"][rows]
        own_run_time = np.minimum(run_time, self.requested_time) if plan.obeyed else run_time
        super().__init__(job_number, submit_time, start_time, end_time, own_run_time)
