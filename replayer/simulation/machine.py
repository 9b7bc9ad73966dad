"""Closed replay: a machine that runs the jobs of a trace as the scheduler decides (docs/algorithms.md#closed-replay).

Only the machine knows the actual run times. A job ends when its work is done or at the limit of its start, whichever
comes first (docs/algorithms.md#end-at-the-limit).
"""

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

from shadowtime.replayer.logs import Workload
from shadowtime.replayer.simulation.source import (
    DEFAULT_TRAITS,
    JobTraits,
    ReplaySource,
    in_bounds,
    submission,
    unchecked,
)
from shadowtime.shared.bounds import MAX_TIME
from shadowtime.shared.cluster import Execution, FreeResources, Job
from shadowtime.shared.errors import ReplayError, TraceError
from shadowtime.shared.messages import (
    CapacityChanged,
    Decided,
    Event,
    JobEnded,
    JobStarted,
    JobSubmitted,
    SchedulingPoint,
    Start,
    construct_unchecked,
    ratio,
)

SAME = (1, 1)
"""Factor and divisor of a job's run time on exactly its requested processors."""


class Machine(ReplaySource):
    """A closed-loop source: jobs arrive as logged and start when the scheduler decides.

    Raise `TraceError` if a job of the workload has no positive run time.
    """

    name = "closed"
    closed_loop = True

    def __init__(
        self,
        workload: Workload,
        capacity: Sequence[CapacityChanged] = (),
        traits: JobTraits = DEFAULT_TRAITS,
    ) -> None:
        checked = True
        for block in workload.blocks():
            if (block.columns["run_time"] <= 0).any():
                raise TraceError(
                    f"{workload.name}: some jobs never started or ran for 0 s; "
                    "read the log for a closed replay (recorded=False)"
                )

            checked &= in_bounds(block.columns, traits)

        self._workload = workload
        self._capacity = capacity
        self._traits = traits
        self._arrived = 0
        self._changed = 0
        self._time = 0
        self._again: int | None = None
        self._waiting: dict[int, tuple[int, Job]] = {}
        self._running: dict[int, tuple[int, Execution]] = {}
        self._ends: list[tuple[int, int]] = []
        self._arrivals = workload.jobs_from(0)
        self._next = next(self._arrivals, None)
        self._left = FreeResources(workload.processors, workload.pools or ())
        self._make: Callable[..., JobSubmitted] = unchecked if checked else JobSubmitted

    def next_time(self) -> int | None:
        """Return the time of the next job end, arrival, capacity change or requested pass; None if none is left.

        Raise `ReplayError` if jobs wait but no event is left.
        """
        if (time := self._soonest()) is not None:
            return time
        if self._waiting:
            remark = self._left.describe([job for _, job in self._waiting.values()])
            raise ReplayError(f"deadlock: none of {len(self._waiting)} waiting jobs starts: {remark}")
        return None

    def _soonest(self) -> int | None:
        soonest = self._ends[0][0] if self._ends else None
        if self._next is not None:
            time = self._next.submit_time
            if soonest is None or time < soonest:
                soonest = time

        if self._changed < len(self._capacity):
            time = self._capacity[self._changed].time
            if soonest is None or time < soonest:
                soonest = time

        if self._again is not None and (soonest is None or self._again < soonest):
            return self._again
        return soonest

    def next_instant(self) -> Sequence[Event]:
        """Return the events of the next instant. `apply` returns the events that the decision at this instant causes.

        Raise `ReplayError` if the instant is later than the latest time of an event.
        """
        time = self.next_time()
        if time is None:
            return ()
        if time > MAX_TIME:
            raise ReplayError(
                f"{self._workload.name}: the replay reaches {time}, beyond {MAX_TIME}, the latest time of an event: "
                f"{len(self._running)} jobs run and {len(self._waiting)} wait"
            )

        self._time = time
        self._again = None
        events: list[Event] = []  # in the order of `shared/cluster/event_order.py`
        while self._ends and self._ends[0][0] == time:
            events.append(self._end(heappop(self._ends)[1]))
        while self._changed < len(self._capacity) and self._capacity[self._changed].time == time:
            change = self._capacity[self._changed]
            self._left.change(change)
            self._changed += 1
            events.append(change)

        while (job := self._next) is not None and job.submit_time == time:
            self._waiting[job.job_number] = (self._arrived, job)
            self._arrived += 1
            self._next = next(self._arrivals, None)
            events.append(submission(job, self._traits, self._make))

        events.append(construct_unchecked(SchedulingPoint, time=time))
        return events

    def apply(self, decided: Decided) -> Sequence[Event]:
        """Kill jobs, then start jobs, as decided, and note the time of the requested pass. Return the resulting events.

        Raise `ReplayError` if a decision cannot be applied. The error names the job.
        """
        self._again = decided.again
        if not (decided.kills or decided.starts):
            return ()
        events: list[Event] = []
        for kill in decided.kills:
            if kill.job_number not in self._running:
                raise ReplayError(f"the policy kills job {kill.job_number} at {self._time}, but the job does not run")
            if kill.requeue and not self._traits.restartable:
                raise ReplayError(
                    f"the policy requeues job {kill.job_number} at {self._time}, but the job cannot be restarted"
                )
            self._ends.remove((self._running[kill.job_number][1].end_time, kill.job_number))
            heapify(self._ends)
            events.append(self._end(kill.job_number, killed=True, requeue=kill.requeue))

        waiting = self._waiting
        self._left.allot([waiting[start.job_number][1] for start in decided.starts if start.job_number in waiting])
        events += [self._start(start) for start in decided.starts]
        return events

    def can_start(self) -> bool:
        """Return whether any waiting job fits into the free resources. O(waiting jobs)."""
        return any(not self._left.lacking(job, job.processors) for _, job in self._waiting.values())

    def _start(self, start: Start) -> JobStarted:
        if start.job_number not in self._waiting:
            raise ReplayError(f"the policy starts job {start.job_number} at {self._time}, but the job does not wait")
        row, job = self._waiting[start.job_number]
        if start.processors != job.processors and not self._traits.moldable:
            raise ReplayError(
                f"the policy starts job {job.job_number} on {start.processors} processors, but the job requests "
                f"{job.processors}, and jobs are not moldable"
            )

        if lacking := self._left.lacking(job, start.processors):
            raise ReplayError(f"the policy starts job {job.job_number} at {self._time} on {lacking} free")
        return self._run(row, job, start.processors, start.limit)

    def _run(self, row: int, job: Job, processors: int, limit: int | None) -> JobStarted:
        execution = self._execution(job, self._time, processors, limit)
        del self._waiting[job.job_number]
        self._running[job.job_number] = row, execution
        self._left.take(job, processors)
        heappush(self._ends, (execution.end_time, job.job_number))
        return self._left.started(job, execution.started())

    def _end(self, job_number: int, *, killed: bool = False, requeue: bool = False) -> JobEnded:
        row, execution = self._running.pop(job_number)
        ended = execution.ended(self._time, killed=killed, requeue=requeue)
        if ended.requeued:
            self._waiting[job_number] = (row, execution.job)
        self._left.release(execution.job, execution.processors)
        return ended

    def _execution(self, job: Job, start_time: int, processors: int, limit: int | None) -> Execution:
        same = processors == job.processors
        by = SAME if same else ratio(job.processors, processors, self._traits.speedup)
        return Execution(job, start_time, processors, limit, by)

    def snapshot(self) -> Any:
        """Return the whole state as plain values."""
        running = [
            [row, execution.start_time, execution.processors, execution.limit]
            for row, execution in self._running.values()
        ]
        return {
            "time": self._time,
            "arrived": self._arrived,
            "changed": self._changed,
            "again": self._again,
            "waiting": [row for row, _ in self._waiting.values()],
            "running": running,
            "held": [[number, list(held)] for number, held in sorted(self._left.held.items())],
        }

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self._time, self._arrived, self._changed = state["time"], state["arrived"], state["changed"]
        self._again = state["again"]
        self._arrivals = self._workload.jobs_from(self._arrived)
        self._next = next(self._arrivals, None)
        jobs = self._workload.jobs_at([*state["waiting"], *(row for row, *_ in state["running"])])
        self._waiting = {jobs[row].job_number: (row, jobs[row]) for row in state["waiting"]}
        rows = [(row, self._execution(jobs[row], *rest)) for row, *rest in state["running"]]
        executions = [execution for _, execution in rows]
        self._running = {execution.job.job_number: (row, execution) for row, execution in rows}
        self._ends = [(execution.end_time, execution.job.job_number) for execution in executions]
        heapify(self._ends)
        self._left = FreeResources(self._workload.processors, self._workload.pools or ())
        for change in self._capacity[: self._changed]:
            self._left.change(change)
        held = {number: tuple(got) for number, got in state.get("held", ())}
        for execution in executions:
            self._left.take(execution.job, execution.processors, held.get(execution.job.job_number))
