"""The record of a run for the report, gathered during the replay."""

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, ClassVar

import numpy as np

from shadowtime.replayer.comparison.plan import RunPlan, RunResult, carry_out, carry_out_compiled
from shadowtime.replayer.comparison.records import DecisionLog, Schedule
from shadowtime.replayer.comparison.wait_coverage import BoundedWaits
from shadowtime.replayer.simulation import CompiledReplay
from shadowtime.shared.kernels import Integers
from shadowtime.shared.messages import Envelope


class Digest:
    """A sink that keeps only the SHA-256 of the bytes written to it."""

    def __init__(self) -> None:
        self._sum = sha256()

    def write(self, data: bytes, /) -> None:
        """Add the next bytes to the digest."""
        self._sum.update(data)

    def __str__(self) -> str:
        return self._sum.hexdigest()


class RunRecord:
    """The record of one run: job times, wait bounds, and a digest of the decision log.

    Parameters
    ----------
    plan
        Plan of the replay. The record is an observer of this replay.
    """

    def __init__(self, plan: RunPlan) -> None:
        self.plan = plan
        self.bounded_waits = BoundedWaits()
        self._schedule = Schedule()
        self._decisions = Digest()
        self._observers = (self._schedule, self.bounded_waits, DecisionLog(self._decisions))

    def __call__(self, envelope: Envelope) -> None:
        """Record an envelope that has left the last stage."""
        for observer in self._observers:
            observer(envelope)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state after the replay, for pickling. The unpickled record cannot observe any more."""
        return {name: getattr(self, name) for name in ("plan", "bounded_waits", "decisions_sha256", "jobs")}

    def adopt(self, other: "RunRecord") -> None:
        """Take over the record of the same run from another process."""
        vars(self).update(vars(other))

    def take_schedule(self, compiled: CompiledReplay) -> None:
        """Take over the job times of a run that the compiled machine replayed. Its digest of decisions is empty."""
        columns = self.plan.workload.columns
        numbers, statuses = columns["job_number"], np.full(len(compiled.starts), -1)
        table = np.stack(
            (numbers, columns["submit_time"], compiled.starts, compiled.ends, columns["processors"], statuses), axis=1
        )
        vars(self).update(jobs=EndedJobs(self.plan, table[np.argsort(numbers)]), decisions_sha256="")

    def called(self, name: str) -> "RunRecord":
        """Return the record of the same run with another label."""
        other = copy(self)
        other.plan = self.plan._replace(label=name)
        return other

    @cached_property
    def decisions_sha256(self) -> str:
        """SHA-256 of the decision log that `--decisions` would write for this run. Access it only after the replay.

        It is empty if the compiled machine replayed the run.
        """
        return str(self._decisions)

    @cached_property
    def jobs(self) -> "EndedJobs":
        """The ended jobs. Access them only after the replay."""
        return EndedJobs(self.plan, self._schedule.table())


@dataclass(eq=False, repr=False)
class JobTimes:
    """Times of jobs, as arrays of shape (n,) in order of job number. Times are in seconds."""

    job_number: Integers
    submit_time: Integers
    start_time: Integers
    end_time: Integers
    own_run_time: Integers
    """Run time on the requested processors, cut at the request if jobs start as decided.

    On another number of processors, the time from start to end differs.
    """
    user_id: Integers
    """User of each job; -1 if unknown."""

    FIELDS: ClassVar = ("job_number", "submit_time", "start_time", "end_time", "own_run_time", "user_id")

    def __len__(self) -> int:
        return len(self.job_number)

    @property
    def sha256(self) -> str:
        """SHA-256 of the starts and ends of all jobs. It depends on the schedule alone, not on seed or names."""
        times = np.column_stack([self.job_number, self.start_time, self.end_time])
        return sha256(np.ascontiguousarray(times, dtype="<i8").tobytes()).hexdigest()

    @property
    def wait(self) -> Integers:
        """Time from submission to start."""
        waits: Integers = self.start_time - self.submit_time
        return waits


class EndedJobs(JobTimes):
    """The ended jobs of a run, with their requests and the processors that they held."""

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


def replay_schedule(plan: RunPlan) -> tuple[RunResult, RunRecord]:
    """Replay a plan, and return its result and the record of its job times.

    The compiled machine replays the plan if it can; then the record has no digest of decisions.
    """
    record = RunRecord(plan)
    result = carry_out_compiled(plan)
    if result is None or result.compiled is None:
        return carry_out(plan, [record]), record
    record.take_schedule(result.compiled)
    return result, record
