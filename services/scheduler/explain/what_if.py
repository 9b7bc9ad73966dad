"""Hypothetical passes: the policy itself runs to see whether another request would start a waiting job now."""

import copy
import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import orjson

from shadowtime.services.scheduler.explain.release_time import ended_by
from shadowtime.services.scheduler.pool_scheduler import PoolScheduler, open_policy
from shadowtime.services.scheduler.tables import NEVER, REQUESTED, SHORTENED, SIZE, SLOT, UNKNOWN, Queue
from shadowtime.shared.messages import DIGITS, ClusterOpened, Sooner, Start

MAX_QUEUE = 5_000
"""Other requests are tried only if at most this many jobs wait. Each request takes a pass."""

MAX_PASSES = 12
"""Maximum number of passes in the search for the largest request that would start."""

MINUTE = 60


class WhatIf:
    """Passes over a copy of a pool's state: the policy's next pass, as if due now. The pool does not change.

    Parameters
    ----------
    pool
        The pool. All starts that it has decided must have been applied.
    opened
        The `ClusterOpened` of the run for this pool, as `handler.alone` returns it.
    now
        Time of the passes in seconds.
    """

    def __init__(self, pool: PoolScheduler, opened: ClusterOpened, now: int) -> None:
        self._pool, self._opened, self._now = pool, opened, now
        self._policy = orjson.dumps(pool.policy.snapshot(), option=orjson.OPT_SERIALIZE_NUMPY)
        self._idle = pool.idle if pool.further else None

    @cached_property
    def started(self) -> frozenset[int]:
        """The jobs that a pass now would start."""
        return self._pass(copied(self._pool.queue))

    def starts(self, number: int, requested_time: int | None = None, processors: int | None = None) -> bool:
        """Return whether a pass now would start the job with this request. None keeps a value.

        The cost is one pass and O(jobs).
        """
        return number in self._pass(changed(self._pool.queue, number, requested_time, processors))

    def _pass(self, queue: Queue) -> frozenset[int]:
        """Return the numbers of the jobs that a pass over a queue starts."""
        pool = self._pool
        policy = open_policy(self._opened, pool.policy.pool)
        state: Any = orjson.loads(self._policy)
        if state is not None:
            policy.restore(state)
        policy.force_pass()
        if self._idle is not None:
            pool.running.idle[:] = self._idle
        decisions = policy.schedule(self._now, queue, pool.running, pool.free)
        return frozenset(decision.job_number for decision in decisions if isinstance(decision, Start))

    def sooner(self, number: int, shortest: int | None) -> list[Sooner]:
        """Return up to two other requests with which a pass now would start the job: a shorter and a smaller one.

        They have the longest tried time, and the largest tried size, with which the job starts. The list is empty if
        there is none, or if more than `MAX_QUEUE` jobs wait.

        `shortest` is the first request to try: the seconds until the shadow time of the head; None without a shadow
        time.
        """
        queue = self._pool.queue
        row = queue.row(number)
        if row is None or len(queue) > MAX_QUEUE:
            return []
        plans = []
        if (seconds := self._shorter(number, row[REQUESTED], shortest)) is not None:
            masses = None if row[SLOT] == UNKNOWN else self._pool.histograms.masses[row[SLOT]]
            within = ended_by(masses, 0.0, float(row[REQUESTED]), float(seconds))
            plans.append(Sooner(requested_time=seconds, cut=None if within is None else round(1.0 - within, DIGITS)))

        if (processors := self._smaller(number, row[SIZE])) is not None:
            plans.append(Sooner(processors=processors))
        return plans

    def _shorter(self, number: int, asked: int, shortest: int | None) -> int | None:
        """Return the longest of the tried run times that would start, in seconds; None if none does.

        Tried run times of a minute or more are whole minutes.
        """
        if shortest is not None and 0 < shortest < asked:
            whole = shortest - shortest % MINUTE if shortest >= MINUTE else shortest
            if self.starts(number, requested_time=whole):
                return whole

        if asked <= MINUTE or not self.starts(number, requested_time=MINUTE):
            return None
        most = min(-(-asked // MINUTE), NEVER // MINUTE)
        return MINUTE * _largest(most, lambda minutes: self.starts(number, requested_time=minutes * MINUTE), 4)

    def _smaller(self, number: int, asked: int) -> int | None:
        """Return the largest of the tried sizes on which the job would start, in processors; None if there is none."""
        if asked <= 1 or not self.starts(number, processors=1):
            return None
        return _largest(asked, lambda size: self.starts(number, processors=size))


def _largest(high: int, starts: Callable[[int], bool], apart: float = math.inf) -> int:
    """Return the largest of the tried numbers below `high` with which a job starts, by bisection from 1 on.

    The geometric mean of two limits is tried while the higher is more than `apart` times the lower.
    """
    low = 1
    for _ in range(MAX_PASSES):
        if high - low <= 1:
            break
        middle = int((low * high) ** 0.5) if high > apart * low else (low + high) // 2
        low, high = (middle, high) if starts(middle) else (low, middle)

    return low


def changed(queue: Queue, number: int, requested_time: int | None, processors: int | None) -> Queue:
    """Return a copy of the queue with another request of one job. None keeps a value.

    A new requested time caps all planned times of the job.

    >>> queue = Queue()
    >>> queue.add((7, 0, 4, 600, 600, 90, 90, -1))
    >>> other = changed(queue, 7, 60, 2)
    >>> other.processors.tolist(), other.least, other.requested_time.tolist(), other.predicted_time.tolist()
    ([2], 2, [60], [60])
    >>> queue.processors.tolist(), queue.requested_time.tolist()
    ([4], [600])
    """
    other = copied(queue)
    row = list(other.remove(number))
    if requested_time is not None:
        row[REQUESTED : SHORTENED + 1] = [min(value, requested_time) for value in row[REQUESTED : SHORTENED + 1]]
        row[REQUESTED] = requested_time
    if processors is not None:
        row[SIZE] = processors
    other.add(tuple(row))
    return other


def copied(queue: Queue) -> Queue:
    """Return a copy of a queue: changes of the copy leave the queue as it is."""
    other = copy.copy(queue)
    other.table, other.rows = queue.table.copy(), dict(queue.rows)
    return other
