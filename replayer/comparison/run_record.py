"""The record of a run for the report, gathered during the replay."""

from copy import copy
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np

from shadowtime.replayer.comparison.plan import RunPlan
from shadowtime.replayer.comparison.records import DecisionLog, Schedule
from shadowtime.replayer.comparison.wait_coverage import BoundedWaits
from shadowtime.shared.kernels import Integers
from shadowtime.shared.messages import Envelope


class Digest:
    """Takes in a file, and keeps its SHA-256 only."""

    def __init__(self) -> None:
        self._sum = sha256()

    def write(self, data: bytes, /) -> None:
        """Take in the next bytes."""
        self._sum.update(data)

    def __str__(self) -> str:
        return self._sum.hexdigest()


class RunRecord:
    """One run: when its jobs ran, what they were bounded by, and a digest of its decision log.

    Parameters
    ----------
    plan
        What is to be replayed; the record is an observer of that replay.
    """

    def __init__(self, plan: RunPlan) -> None:
        self.plan = plan
        self.bounded_waits = BoundedWaits()
        self._schedule = Schedule()
        self._decisions = Digest()
        self._observers = (self._schedule, self.bounded_waits, DecisionLog(self._decisions))

    def __call__(self, envelope: Envelope) -> None:
        """Take in an envelope that has left the last stage."""
        for observer in self._observers:
            observer(envelope)

    def __getstate__(self) -> dict[str, Any]:
        """Return what there is to know when the replay is over; nothing is observed afterwards."""
        return {name: getattr(self, name) for name in ("plan", "bounded_waits", "decisions_sha256", "jobs")}

    def called(self, name: str) -> "RunRecord":
        """Return the record of the same run under another name."""
        other = copy(self)
        other.plan = self.plan._replace(label=name)
        return other

    @cached_property
    def decisions_sha256(self) -> str:
        """The SHA-256 of what `--decisions` would have written of this run alone; to be asked for when it is over."""
        return str(self._decisions)

    @cached_property
    def jobs(self) -> "EndedJobs":
        """The jobs that have ended; to be asked for when the replay is over."""
        return EndedJobs(self.plan, self._schedule.table())


class JobTimes:
    """When jobs ran, as arrays of shape (n,) in order of job number; times in seconds."""

    FIELDS = ("job_number", "submit_time", "start_time", "end_time", "own_run_time", "user_id")

    def __init__(
        self,
        job_number: Integers,
        submit_time: Integers,
        start_time: Integers,
        end_time: Integers,
        own_run_time: Integers,
        user_id: Integers,
    ) -> None:
        self.job_number = job_number
        self.submit_time = submit_time
        self.start_time = start_time
        self.end_time = end_time
        self.own_run_time = own_run_time
        """On the processors that were requested; from start to end a job takes another time if it ran on others."""
        self.user_id = user_id
        """-1 of jobs whose user the log does not name."""

    def __len__(self) -> int:
        return len(self.job_number)

    @property
    def wait(self) -> Integers:
        """From submission to start."""
        waits: Integers = self.start_time - self.submit_time
        return waits


class EndedJobs(JobTimes):
    """The jobs of a run that have ended, and what they asked for."""

    def __init__(self, plan: RunPlan, schedule: Integers) -> None:
        job_number, submit_time, start_time, end_time, self.processors, _ = schedule.T
        columns = plan.workload.columns
        order = np.argsort(columns["job_number"])
        rows = order[np.searchsorted(columns["job_number"], job_number, sorter=order)]
        self.requested_time = columns["requested_time"][rows]
        self.requested_processors = columns["processors"][rows]
        run_time = columns["run_time"][rows]
        own_run_time = np.minimum(run_time, self.requested_time) if plan.obeyed else run_time
        user_id = columns["user_id"][rows]
        super().__init__(job_number, submit_time, start_time, end_time, own_run_time, user_id)
