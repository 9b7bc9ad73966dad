"""Recorded replay: jobs start as logged, to score predictions (docs/algorithms.md#recorded-replay)."""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np

from shadowtime.replayer.logs import Workload
from shadowtime.replayer.simulation.source import DEFAULT_TRAITS, JobTraits, ReplaySource, submission
from shadowtime.shared.accounting import gpus_got
from shadowtime.shared.bounds import MAX_TIME
from shadowtime.shared.cluster import OUTCOMES, UNKNOWN, Job, in_order, none_if_now
from shadowtime.shared.errors import TraceError
from shadowtime.shared.messages import (
    CapacityChanged,
    Decided,
    Event,
    JobChanged,
    JobEnded,
    JobStarted,
    JobWithdrawn,
    SchedulingPoint,
)

_END, _CAPACITY, _START, _LEFT, _RESIZED = range(5)
_OF_JOBS = (_END, _START, _LEFT)


class Recorded(ReplaySource):
    """A source with submissions, starts and ends as logged; decisions are only advice.

    A start before the submission is moved to the submission. Run times stay as logged, even beyond the request. So
    running jobs may hold more processors than the machine has. An end in the second of the start is emitted one second
    later. So is a withdrawal in the second of the submission.

    Raise `TraceError` if no job of the log has a known wait, or a job ends later than the latest time of an event.
    """

    name = "recorded"
    closed_loop = False

    def __init__(
        self,
        workload: Workload,
        capacity: Sequence[CapacityChanged] = (),
        traits: JobTraits = DEFAULT_TRAITS,
    ) -> None:
        self._workload = workload
        self._capacity = capacity
        self._traits = traits
        if not sum(_count_known_waits(block) for block in workload.blocks()):
            raise TraceError(
                f"{workload.name}: its jobs have no wait times, which a recorded replay needs; "
                "replay --mode closed needs none"
            )

        self._resized = _resized(workload)
        self._arrivals = workload.jobs_from(0)
        self._next = next(self._arrivals, None)
        self._arrived = 0
        self._jobs: dict[int, Job] = {}  # jobs in the system, by row
        self._ahead: list[tuple[int, int, int]] = []
        """Pending events of jobs and of the machine, as a heap: time, kind, and row within the kind."""
        self._ahead += [(change.time, _CAPACITY, at) for at, change in enumerate(capacity)]
        self._ahead += [(time, _RESIZED, at) for at, (_, time, _) in enumerate(self._resized)]
        heapify(self._ahead)

    def next_time(self) -> int | None:
        """Return the time of the next event of the log; None if none is left."""
        times = [self._next.submit_time] if self._next is not None else []
        if self._ahead:
            times.append(self._ahead[0][0])
        return min(times, default=None)

    def next_instant(self) -> Sequence[Event]:
        """Return the events of the next instant. O(log jobs in the system) for each event."""
        time = self.next_time()
        if time is None:
            return ()
        events: list[Event] = [SchedulingPoint(time=time)]
        while (job := self._next) is not None and job.submit_time == time:
            events.append(submission(job, self._traits))
            self._arrive(job)
        while self._ahead and self._ahead[0][0] == time:
            _, kind, row = heappop(self._ahead)
            events.append(self._event(kind, row, time))
        return in_order(events)

    def _arrive(self, job: Job) -> None:
        """Add the pending events of an arrived job, and advance to the next job."""
        row, self._arrived = self._arrived, self._arrived + 1
        self._jobs[row] = job
        if job.left_time is not None:
            heappush(self._ahead, (max(job.left_time, job.submit_time + 1), _LEFT, row))
        else:
            start = job.submit_time + max(job.wait_time or 0, 0)
            end = start + job.run_time + (job.suspended or 0)
            heappush(self._ahead, (start, _START, row))
            heappush(self._ahead, (max(end, start + 1), _END, row))  # in an instant, ends precede starts

        self._next = next(self._arrivals, None)

    def apply(self, decided: Decided) -> Sequence[Event]:
        """Do nothing: decisions do not change recorded events."""
        return ()

    def can_start(self) -> bool:
        """Return False: decisions start no job in recorded mode."""
        return False

    def _event(self, kind: int, row: int, time: int) -> Event:
        if kind == _CAPACITY:
            return self._capacity[row]
        if kind == _RESIZED:
            number, _, processors = self._resized[row]
            return JobChanged(time=time, job_number=number, requested_processors=processors)
        if kind == _START:
            job = self._jobs[row]
            return JobStarted(
                time=time,
                job_number=job.job_number,
                processors=job.processors,
                limit=job.limit,
                gpu_types=gpus_got(job.gpu_got) if job.gpu_got else None,
            )
        job = self._jobs.pop(row)
        if kind == _LEFT:
            return JobWithdrawn(time=time, job_number=job.job_number, happened=none_if_now(job.left_time, time))
        return JobEnded(
            time=time,
            job_number=job.job_number,
            run_time=job.run_time,
            outcome=OUTCOMES.get(job.status, "completed"),
            happened=None if job.run_time else none_if_now(job.submit_time + (job.wait_time or 0), time),
        )

    def snapshot(self) -> Any:
        """Return the number of arrived jobs, and the pending events of jobs in the system and of the machine."""
        return {"arrived": self._arrived, "ahead": self._ahead}

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self._arrived, self._ahead = state["arrived"], [(time, kind, row) for time, kind, row in state["ahead"]]
        self._jobs = self._workload.jobs_at({row for _, kind, row in self._ahead if kind in _OF_JOBS})
        self._arrivals = self._workload.jobs_from(self._arrived)
        self._next = next(self._arrivals, None)


def _count_known_waits(workload: Workload) -> int:
    """Return the number of jobs whose start or withdrawal is known.

    Raise `TraceError` if a job ends after `MAX_TIME`.
    """
    columns = workload.columns
    wait = columns["wait_time"]
    left = np.broadcast_to(columns.get("left_time", UNKNOWN), wait.shape)
    suspended = np.maximum(columns.get("suspended", UNKNOWN), 0)
    end = columns["submit_time"] + np.maximum(wait, 0) + columns["run_time"] + suspended
    if end[late := int(end.argmax())] > MAX_TIME:
        raise TraceError(
            f"{workload.name}: job {columns['job_number'][late]} ends at {end[late]}, beyond {MAX_TIME}, the "
            "latest time of an event"
        )

    return int(np.count_nonzero((wait != -1) | (left >= 0)))


def _resized(workload: Workload) -> list[list[int]]:
    """Return the job number, time and processors of each size change of a job in the workload."""
    if workload.resized is None:
        return []
    resized: list[list[int]] = workload.resized.T[np.isin(workload.resized[0], workload.columns["job_number"])].tolist()
    return resized
