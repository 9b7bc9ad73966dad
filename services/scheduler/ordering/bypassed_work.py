"""The work by which waiting jobs have been overtaken: work of jobs that were submitted later and started earlier."""

from typing import Any

import numpy as np

from shadowtime.services.scheduler.tables import NEVER, Queue, Running
from shadowtime.shared.kernels import Floats, Integers
from shadowtime.shared.messages import Event, JobEnded, JobStarted, JobSubmitted, JobWithdrawn


class BypassedWork:
    """Processor seconds by which each waiting job has been overtaken, in order of (submit time, job number).

    A started job counts with its planned run time until it ends, and then with its actual run time. A requeued job
    starts again at 0. O(waiting) for each start or end.
    """

    def __init__(self) -> None:
        self.submit_times: Integers = np.empty(0, dtype=np.int64)
        self.numbers: Integers = np.empty(0, dtype=np.int64)
        self.work: Floats = np.empty(0)
        self.submitted: dict[int, int] = {}
        """Submit time of each job in the system, in seconds."""
        self.counted: dict[int, tuple[int, float]] = {}
        """Processors and counted work of each running job. The work is 0 until a pass has seen the job run."""
        self.unseen: dict[int, None] = {}
        """Running jobs that no pass has seen yet; a dict used as an ordered set."""

    def observe(self, event: Event) -> None:
        """Update the counts by an event."""
        if isinstance(event, JobSubmitted):
            self.submitted[event.job_number] = event.since
            self._insert(event.job_number)
        elif isinstance(event, JobWithdrawn):
            self._remove(event.job_number)
            del self.submitted[event.job_number]
        elif isinstance(event, JobStarted):
            self._remove(event.job_number)
            self.counted[event.job_number] = event.processors, 0.0
            self.unseen[event.job_number] = None
        elif isinstance(event, JobEnded):
            processors, counted = self.counted.pop(event.job_number)
            self.unseen.pop(event.job_number, None)
            self._count(event.job_number, float(processors) * event.run_time - counted)
            if event.requeued:
                self._insert(event.job_number)
            else:
                del self.submitted[event.job_number]

    def of(self, queue: Queue, running: Running) -> Floats:
        """Return the work that has overtaken each waiting job, in processor seconds.

        Jobs that this pass sees running for the first time count from now on.
        """
        if self.unseen:
            rows = np.flatnonzero(np.isin(running.job_number, list(self.unseen)))
            more = np.zeros(len(self.work) + 1)
            for number, run_time in zip(
                running.job_number[rows].tolist(), running.predicted_time[rows].tolist(), strict=True
            ):
                processors, _ = self.counted[number]
                work = float(processors) * run_time if run_time < NEVER else 0.0
                self.counted[number] = processors, work
                more[self._row(number)] += work

            self.work = self.work + more[::-1].cumsum()[::-1][1:]  # of the jobs behind each waiting job
            self.unseen.clear()

        if np.array_equal(self.numbers, queue.job_number):
            return self.work
        known = dict(zip(self.numbers.tolist(), self.work.tolist(), strict=True))
        return np.array([known.get(number, 0.0) for number in queue.job_number.tolist()])

    def snapshot(self) -> Any:
        """Return the whole state as plain values."""
        waiting = zip(self.submit_times.tolist(), self.numbers.tolist(), self.work.tolist(), strict=True)
        return {
            "waiting": [list(row) for row in waiting],
            "running": [[number, self.submitted[number], *counted] for number, counted in self.counted.items()],
            "unseen": list(self.unseen),
        }

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        waiting, running = state["waiting"], state["running"]
        self.submit_times = np.array([row[0] for row in waiting], dtype=np.int64)
        self.numbers = np.array([row[1] for row in waiting], dtype=np.int64)
        self.work = np.array([row[2] for row in waiting], dtype=np.float64)
        self.submitted = {number: time for time, number, _ in waiting} | {row[0]: row[1] for row in running}
        self.counted = {row[0]: (row[2], row[3]) for row in running}
        self.unseen = dict.fromkeys(state["unseen"])

    def _row(self, number: int) -> int:
        """Return the number of waiting jobs that are ahead of a job by (submit time, job number)."""
        time = self.submitted[number]
        first, last = (int(np.searchsorted(self.submit_times, time, side)) for side in ("left", "right"))
        return first + int(np.searchsorted(self.numbers[first:last], number))

    def _remove(self, number: int) -> None:
        keep = np.arange(len(self.numbers)) != self._row(number)
        self.submit_times, self.numbers, self.work = self.submit_times[keep], self.numbers[keep], self.work[keep]

    def _insert(self, number: int) -> None:
        row = self._row(number)
        self.submit_times = np.insert(self.submit_times, row, self.submitted[number])
        self.numbers = np.insert(self.numbers, row, number)
        self.work = np.insert(self.work, row, 0.0)

    def _count(self, number: int, work: float) -> None:
        """Add `work` to all waiting jobs that are ahead of a job by (submit time, job number)."""
        self.work = self.work + work * (np.arange(len(self.work)) < self._row(number))
