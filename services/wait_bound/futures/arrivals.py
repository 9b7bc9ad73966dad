"""Arrivals of the last weeks, which are repeated in simulated futures."""

from typing import Any

import numpy as np

from shadowtime.services.wait_bound.futures.kernels import ARRIVING, LIMIT, RUN_TIME, TIME
from shadowtime.shared.chance import uniform
from shadowtime.shared.distributions import packed_numbers, unpacked_numbers
from shadowtime.shared.kernels import Integers, IntegerTable
from shadowtime.shared.messages import JobSubmitted

WEEK = 7 * 86_400
WEEKS = 4
"""Number of past weeks from which arrivals are taken."""

NEAR = 2 * 3_600
"""Maximum number of seconds by which a future begins earlier or later in the week than now."""

MOST = 20_000
"""Maximum number of stored arrivals."""

UNLIMITED = 1 << 40
"""Stands for the requested time in seconds of a job that requested none."""


class Arrivals:
    """The submissions of the last `WEEKS` + 1 weeks, at most `MOST` of them. `key` seeds the random numbers of `draw`.

    O(1) amortised for each submission.

    >>> arrivals = Arrivals(key=1)
    >>> for hour in range(200):
    ...     arrivals.add(JobSubmitted(time=3600 * hour, job_number=hour, requested_processors=1, requested_time=60))
    >>> table, firsts, shifts = arrivals.draw(now=3600 * 199, futures=3)
    >>> bool((table[firsts, TIME] + shifts > 3600 * 199).all()), table.shape
    (True, (200, 4))
    """

    def __init__(self, key: int) -> None:
        self.key = key
        self._table: IntegerTable = np.zeros((256, 4), dtype=np.int64)
        self._numbers: dict[int, int] = {}
        """Number of arrivals before each job that has not ended, by job number. A reused number stands for its last
        arrival."""
        self._first, self._end, self._gone = 0, 0, 0
        """Begin and end of the rows in use, and number of rows that have been dropped."""

    def add(self, job: JobSubmitted) -> None:
        """Store a submitted job. Until it ends, its run time is its request."""
        if self._end == len(self._table):
            self._make_room()
        limit = UNLIMITED if job.requested_time is None else job.requested_time
        self._table[self._end] = job.time, job.requested_processors, limit, limit
        self._numbers[job.job_number] = self._gone + self._end - self._first
        self._end += 1
        while self._end - self._first > MOST or self._table[self._first, TIME] < job.time - (WEEKS + 1) * WEEK:
            self._first += 1
            self._gone += 1

    def end(self, job_number: int, run_time: int) -> None:
        """Learn the run time of a job, in seconds."""
        place = self._numbers.pop(job_number, -1) - self._gone + self._first
        if place >= self._first:
            row = self._table[place, ARRIVING:]
            row[RUN_TIME] = max(min(run_time, row[LIMIT]), 1)

    def forget(self, job_number: int) -> None:
        """Stop tracking a job that leaves without starting. Its arrival stays stored, with its request as run time."""
        self._numbers.pop(job_number, None)

    def draw(self, now: int, futures: int) -> tuple[IntegerTable, Integers, Integers]:
        """Return all arrivals, and for each future the index of the first repeated arrival and the shift in seconds.

        Futures cycle through the known weeks. During the first week there are no arrivals to repeat.
        """
        table = self._table[self._first : self._end]
        weeks = min((now - int(table[0, TIME])) // WEEK, WEEKS) if len(table) else 0
        if weeks == 0:
            return np.empty((0, 4), dtype=np.int64), *np.zeros((2, futures), dtype=np.int64)
        turns = np.arange(futures)
        off = np.rint(NEAR * (2.0 * uniform(self.key, turns, now) - 1.0)).astype(np.int64)
        shifts = WEEK * (1 + turns % weeks) + off
        return table, np.searchsorted(table[:, TIME], now - shifts, side="right"), shifts

    def snapshot(self) -> Any:
        """Return the arrivals, oldest first, and the jobs that have not ended."""
        numbers = [[number, place - self._gone] for number, place in self._numbers.items() if place >= self._gone]
        return {"table": packed_numbers(self._table[self._first : self._end]), "numbers": numbers}

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        table = unpacked_numbers(state["table"])
        self._first, self._end, self._gone = 0, len(table), 0
        self._table = np.concatenate((table, np.zeros((256, 4), dtype=np.int64)))
        self._numbers = dict(state["numbers"])

    def _make_room(self) -> None:
        kept = self._table[self._first : self._end]
        self._table = np.concatenate((kept, np.zeros((max(len(kept), 256), 4), dtype=np.int64)))
        self._first, self._end = 0, len(kept)
