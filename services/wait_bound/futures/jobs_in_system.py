"""A table of the waiting and running jobs, from which futures begin."""

from itertools import islice
from typing import Any

import numpy as np

from shadowtime.services.wait_bound.futures.arrivals import UNLIMITED
from shadowtime.shared.distributions import BINS, mean_run_time, packed_numbers, sampled_times, unpacked_numbers
from shadowtime.shared.kernels import Floats, FloatTable, Integers, IntegerTable
from shadowtime.shared.messages import JobChanged, JobEnded, JobStarted, JobSubmitted, moment

NUMBER, ASKED, REQUEST, HELD, LIMIT, START, USER, QUEUE, SINCE, EXPECTED = range(10)
"""Columns: job number; requested processors and time; processors, time limit and start of a job that runs; user and
queue, -1 if there is none; beginning of the wait; expected run time. Times in seconds."""

UNKNOWN = -1


class JobsThere:
    """Waiting and running jobs, each with its distribution of run times.

    Blocked and suspended jobs are stored, but left out of all results.

    O(1) for each event, O(jobs) for each question; memory O(jobs).

    >>> jobs = JobsThere()
    >>> jobs.submit(JobSubmitted(time=0, job_number=7, requested_processors=2, requested_time=60), (0.0, 0.5, 0.5))
    >>> jobs.waiting().tolist(), jobs.start(JobStarted(time=5, job_number=7, processors=2, limit=60))
    ([[2], [60]], None)
    >>> jobs.held, jobs.running(now=9).tolist()
    (2, [[2], [65]])
    """

    def __init__(self) -> None:
        self._table: IntegerTable = np.zeros((64, 10), dtype=np.int64)
        self._masses: FloatTable = np.zeros((64, BINS))
        self._free = list(range(63, -1, -1))
        self._waiting: dict[int, int] = {}
        """Row of each waiting job, in the order in which they joined the queue."""
        self._blocked: dict[int, int] = {}
        """Row of each blocked job, which may not start for now."""
        self._running: dict[int, int] = {}
        self._suspended: dict[int, int] = {}
        self.held = 0
        """Processors that the running jobs hold."""

    def __len__(self) -> int:
        return len(self._waiting) + len(self._running)

    def submit(self, job: JobSubmitted, histogram: tuple[float, ...]) -> None:
        """Add a job with the probability of each bin of its run time, from bin 0 on; if empty, it runs to its limit."""
        limit = UNLIMITED if job.requested_time is None else job.requested_time
        group = self._blocked if job.blocked else self._waiting
        row = group[job.job_number] = self._new_row()
        self._table[row, :USER] = job.job_number, job.requested_processors, limit, 0, 0, 0
        user, queue = (UNKNOWN if value is None else value for value in (job.user_id, job.queue_number))
        self._table[row, USER:] = user, queue, job.since, limit
        self._expect(row, histogram)

    def revise(self, job_number: int, histogram: tuple[float, ...]) -> None:
        """Replace the distribution of a job, if the new one has mass and the job is known."""
        row = next((group[job_number] for group in self._groups if job_number in group), None)
        if row is not None and any(histogram):
            self._masses[row] = 0.0
            self._expect(row, histogram)

    def _expect(self, row: int, histogram: tuple[float, ...]) -> None:
        self._masses[row, : len(histogram)] = histogram
        if any(histogram):
            self._table[row, EXPECTED] = int(mean_run_time(self._masses[row], float(self._table[row, REQUEST])))

    def withdraw(self, job_number: int) -> None:
        """Forget a waiting job."""
        self._forget(self._left(job_number))

    def start(self, event: JobStarted) -> None:
        """Move a job to the running jobs. A job that is unknown, because it was withdrawn, is added."""
        row, began = self._left(event.job_number), moment(event)
        if row is None:
            row = self._new_row()
            self._table[row, USER:] = UNKNOWN, UNKNOWN, began, event.limit or UNLIMITED
        limit = UNLIMITED if event.limit is None else event.limit
        self._running[event.job_number] = row
        self._table[row, NUMBER], self._table[row, HELD:USER] = event.job_number, (event.processors, limit, began)
        self.held += event.processors

    def end(self, event: JobEnded) -> None:
        """Release the processors of a job. A requeued job with a known request waits again, at the end of the queue."""
        row = self._running.pop(event.job_number, None)
        if row is None:
            row = self._suspended.pop(event.job_number, None)
        else:
            self.held -= int(self._table[row, HELD])

        if event.requeued and row is not None and self._table[row, ASKED]:
            self._waiting[event.job_number] = row
        else:
            self._forget(row)

    def suspend(self, job_number: int) -> None:
        """Release the processors of a running job until it is resumed."""
        row = self._running.pop(job_number, None)
        if row is not None:
            self._suspended[job_number] = row
            self.held -= int(self._table[row, HELD])

    def resume(self, job_number: int) -> None:
        """Let a suspended job hold its processors again."""
        row = self._suspended.pop(job_number, None)
        if row is not None:
            self._running[job_number] = row
            self.held += int(self._table[row, HELD])

    def change(self, event: JobChanged) -> None:
        """Apply a change: block or unblock a waiting job, or set the processors or the time that a job has or requests.

        The change is ignored if the job is unknown.
        """
        number, at = event.job_number, ASKED
        if event.blocked is not None and (row := self._left(number)) is not None:
            (self._blocked if event.blocked else self._waiting)[number] = row
        row = self._waiting.get(number, self._blocked.get(number))
        if row is None:
            at, row = HELD, self._running.get(number, self._suspended.get(number))
        if row is None:
            return
        if event.requested_processors is not None:
            if number in self._running:
                self.held += event.requested_processors - int(self._table[row, HELD])
            self._table[row, at] = event.requested_processors

        if event.requested_time is not None or event.unlimited:
            self._table[row, at + 1] = event.requested_time or UNLIMITED

    def waiting(self) -> IntegerTable:
        """Return processors and requested times of the waiting jobs, in seconds, shape (2, jobs)."""
        return np.ascontiguousarray(self._table[_rows(self._waiting), ASKED:HELD].T)

    def running(self, now: int) -> IntegerTable:
        """Return processors and latest ends of the running jobs, in seconds, shape (2, jobs)."""
        sizes, limits, starts = self._table[_rows(self._running), HELD:USER].T
        return np.stack((sizes, np.maximum(starts + limits, now + 1)))

    def run_times(self, draws: FloatTable) -> IntegerTable:
        """Return a run time in seconds for each of the `draws`, which are in [0, 1), shape (futures, waiting jobs)."""
        rows = _rows(self._waiting)
        limits = self._table[rows, REQUEST].astype(np.float64)
        return sampled_times(self._masses[rows], np.zeros(len(rows)), limits, limits, draws)

    def ends(self, now: int, draws: FloatTable) -> IntegerTable:
        """Return an end in seconds of each running job in each future, given its elapsed time; see `run_times`."""
        rows = _rows(self._running)
        limits, starts = self._table[rows, LIMIT].astype(np.float64), self._table[rows, START]
        elapsed: Floats = (now - starts).astype(np.float64)
        ends: IntegerTable = starts + sampled_times(self._masses[rows], elapsed, limits, limits, draws)
        return ends

    def rows(self) -> tuple[IntegerTable, IntegerTable]:
        """Return all columns of the waiting and of the running jobs, shape (jobs, columns)."""
        return self._table[_rows(self._waiting)], self._table[_rows(self._running)]

    def snapshot(self) -> Any:
        """Return the jobs as plain values."""
        groups = [_rows(group) for group in self._groups]
        rows = np.concatenate(groups)
        tables = packed_numbers(self._table[rows]), packed_numbers(self._masses[rows])
        return {"counts": [len(group) for group in groups], "tables": list(tables)}

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned. The table must be empty."""
        table, masses = (unpacked_numbers(numbers) for numbers in state["tables"])
        saved = zip(table, masses, strict=True)
        for group, count in zip(self._groups, state["counts"], strict=True):
            for values, histogram in islice(saved, count):
                row = group[int(values[NUMBER])] = self._new_row()
                self._table[row], self._masses[row] = values, histogram

        self.held = int(self._table[_rows(self._running), HELD].sum())

    @property
    def _groups(self) -> tuple[dict[int, int], ...]:
        return self._waiting, self._blocked, self._running, self._suspended

    def _left(self, job_number: int) -> int | None:
        """Remove a job from the waiting and blocked jobs. Return its row, or None if it is in neither."""
        row = self._waiting.pop(job_number, None)
        return self._blocked.pop(job_number, None) if row is None else row

    def _new_row(self) -> int:
        if not self._free:
            size = len(self._table)
            self._table = np.concatenate((self._table, np.zeros_like(self._table)))
            self._masses = np.concatenate((self._masses, np.zeros_like(self._masses)))
            self._free = list(range(2 * size - 1, size - 1, -1))
        return self._free.pop()

    def _forget(self, row: int | None) -> None:
        if row is not None:
            self._table[row], self._masses[row] = 0, 0.0
            self._free.append(row)


def _rows(jobs: dict[int, int]) -> Integers:
    return np.fromiter(jobs.values(), dtype=np.int64, count=len(jobs))
