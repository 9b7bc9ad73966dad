"""Recorded replay: the log as it happened, for predictions to be scored against real waits, and for shadow mode.

The rule: docs/algorithms.md#recorded-replay.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from shadowtime.replayer.event_order import in_order
from shadowtime.replayer.source import DEFAULT_TRAITS, OUTCOMES, Archived, JobTraits, submission, unless
from shadowtime.replayer.workload import Workload
from shadowtime.shared.arrays import IntegerTable
from shadowtime.shared.bounds import MAX_TIME
from shadowtime.shared.errors import TraceError
from shadowtime.shared.events import (
    CapacityChanged,
    Decided,
    Event,
    JobChanged,
    JobEnded,
    JobStarted,
    JobWithdrawn,
    SchedulingPoint,
)

_END, _CAPACITY, _ARRIVAL, _START, _LEFT, _RESIZED = range(6)


UNKNOWN = np.int64(-1)
"""Of columns that a log does not have."""


class Recorded(Archived):
    """A source that tells submit, start and end as logged; decisions are advice.

    A start before its submission moves to it. Run times stay as logged, also beyond the request, so that running jobs
    may hold more processors than the machine has. What was over in the second in which it began is told a second late.

    Raises
    ------
    TraceError
        If the log does not say how long its jobs waited, or one of them ends later than an event can.
    """

    name = "recorded"
    obeys = False

    def __init__(
        self,
        workload: Workload,
        capacity: Sequence[CapacityChanged] = (),
        traits: JobTraits = DEFAULT_TRAITS,
    ) -> None:
        self._workload = workload
        self._capacity = capacity
        self._traits = traits
        columns = workload.columns
        submit, wait = columns["submit_time"], columns["wait_time"]
        left = columns.get("left_time", UNKNOWN)
        if (wait == -1).all() and not (left >= 0).any():
            raise TraceError(
                f"{workload.name} does not say how long its jobs waited; only --mode closed can do without"
            )
        start = submit + np.maximum(wait, 0)
        end = start + columns["run_time"] + np.maximum(columns.get("suspended", UNKNOWN), 0)
        if end[late := int(end.argmax())] > MAX_TIME:
            raise TraceError(
                f"{workload.name}: job {columns['job_number'][late]} ends at {end[late]}, beyond {MAX_TIME}, the "
                "latest time of an event"
            )
        rows = np.arange(len(workload))
        ran = rows[np.broadcast_to(left < 0, rows.shape)]
        never = rows[np.broadcast_to(left >= 0, rows.shape)]
        told = np.maximum(end, start + 1)[ran]  # ends come first at an instant, and withdrawals before submissions
        withdrawn = np.maximum(np.broadcast_to(left, rows.shape), submit + 1)[never]
        changes = np.array([each.time for each in capacity], dtype=np.int64)
        self._resized = _of_jobs(workload)
        resized = self._resized[1]
        times = np.concatenate((told, changes, submit, start[ran], withdrawn, resized))
        parts = ran, np.arange(len(capacity)), rows, ran, never, np.arange(len(resized))
        kinds = np.repeat((_END, _CAPACITY, _ARRIVAL, _START, _LEFT, _RESIZED), [len(part) for part in parts])
        rows = np.concatenate(parts)
        order = np.argsort(times, kind="stable")
        self._times = times[order].astype(np.int64)
        self._kinds = kinds[order].astype(np.int8)
        self._rows = rows[order].astype(np.int32)
        self._told = 0

    def next_time(self) -> int | None:
        """Return the time of the next event of the log."""
        return int(self._times[self._told]) if self._told < len(self._times) else None

    def next_instant(self) -> Sequence[Event]:
        """Return the events of the next instant."""
        time = self.next_time()
        if time is None:
            return ()
        until = int(np.searchsorted(self._times, time, side="right"))
        kinds = self._kinds[self._told : until].tolist()
        rows = self._rows[self._told : until].tolist()
        self._told = until
        events = [self._event(kind, row, time) for kind, row in zip(kinds, rows, strict=True)]
        return in_order([*events, SchedulingPoint(time=time)])

    def apply(self, decided: Decided) -> Sequence[Event]:
        """Do nothing: what happens is what happened."""
        return ()

    def can_start(self) -> bool:
        """Return False: no decision starts anything here."""
        return False

    def _event(self, kind: int, row: int, time: int) -> Event:
        if kind == _CAPACITY:
            return self._capacity[row]
        if kind == _RESIZED:
            number, _, processors = self._resized[:, row].tolist()
            return JobChanged(time=time, job_number=number, requested_processors=processors)
        job = self._workload[row]
        if kind == _ARRIVAL:
            return submission(job, self._traits)
        if kind == _START:
            return JobStarted(time=time, job_number=job.job_number, processors=job.processors, limit=job.limit)
        if kind == _LEFT:
            return JobWithdrawn(time=time, job_number=job.job_number, happened=unless(job.left_time, time))
        return JobEnded(
            time=time,
            job_number=job.job_number,
            run_time=job.run_time,
            outcome=OUTCOMES.get(job.status, "completed"),
            happened=None if job.run_time else unless(job.submit_time + (job.wait_time or 0), time),
        )

    def snapshot(self) -> Any:
        """Return how many events have been told."""
        return self._told

    def restore(self, state: Any) -> None:
        """Go to where `snapshot` was taken."""
        self._told = state


def _of_jobs(workload: Workload) -> IntegerTable:
    """Return the new sizes of jobs that the workload has."""
    found = np.empty((3, 0), dtype=np.int64) if workload.resized is None else workload.resized
    return found[:, np.isin(found[0], workload.columns["job_number"])]
