"""The order in which the jobs of a pass are served."""

import math
from typing import ClassVar

import numpy as np

from shadowtime.services.scheduler.ordering.columns import WaitingColumns
from shadowtime.services.scheduler.ordering.distribution_measures import RunTimeMeasures, TimesBy
from shadowtime.services.scheduler.ordering.orders import ORDERS, Key, fcfs, spf
from shadowtime.services.scheduler.ordering.settings import AS_QUEUE, OrderedSettings
from shadowtime.services.scheduler.tables import Queue, fitting_together
from shadowtime.shared.chance import key_of
from shadowtime.shared.kernels import Floats, Integers
from shadowtime.shared.messages import ClusterOpened


class Ordering:
    """The orders of one policy, for its queue and for its candidates. Random numbers are seeded by the run.

    O(queue log queue) for each pass; no sort if jobs are served in order of arrival.

    Parameters
    ----------
    on_requests
        Whether the policy plans with requests.
    weight
        Weight of the wait in seconds. The weighted wait is subtracted from the sort key, so that no job starves.
    """

    def __init__(self, settings: OrderedSettings, *, on_requests: bool = False, weight: float = 0.0) -> None:
        self.key, candidates = ORDERS[settings.queue], settings.candidates
        self.candidate_key = self.key if candidates == AS_QUEUE else ORDERS[candidates]
        self.by: TimesBy = "request" if on_requests and settings.by == "plan" else settings.by
        self.threshold, self.weight = settings.threshold, weight
        self.as_submitted = self.key is fcfs
        """Whether the queue is served in order of arrival."""
        self.alike = candidates == AS_QUEUE or self.key is self.candidate_key
        """Whether candidates are tried in the order of the queue."""
        self.steady = getattr(self.candidate_key, "steady", False) and not weight
        """Whether the order of candidates stays the same as time passes."""
        in_seconds = self.candidate_key is spf and self.by in ("plan", "request")
        self.whole_seconds = in_seconds and self.as_submitted and not weight
        """Whether run times can serve as ranks themselves. If so, a pass only sorts its candidates."""
        self.chance = 0
        self.measures = RunTimeMeasures()

    def open(self, opened: ClusterOpened) -> None:
        """Set the key of the random numbers from the run."""
        self.chance = key_of(opened.seed, opened.cluster)

    def rows(self, now: int, queue: Queue) -> Integers:
        """Return the rows of the queue in order of service. Jobs that have waited longer than `threshold` are first."""
        if self.as_submitted:
            return np.arange(len(queue))
        values = self.keys(self.key, now, queue)
        if self.threshold == math.inf:
            return np.argsort(values, kind="stable")
        aged = int((now - queue.submit_time > self.threshold).sum())  # these come first in submission order
        return np.concatenate((np.arange(aged), aged + np.argsort(values[aged:], kind="stable")))

    def candidates(self, now: int, queue: Queue) -> Integers:
        """Return the rows of the queue in the order in which candidates are tried."""
        return (
            self.rows(now, queue)
            if self.alike
            else np.argsort(self.keys(self.candidate_key, now, queue), kind="stable")
        )

    def among(self, now: int, queue: Queue, rows: Integers) -> Integers:
        """Return the order in which `rows` are tried, as indices into them. `rows` are in order of submission."""
        if len(rows) < 2 or (self.as_submitted and self.alike):
            return np.arange(len(rows))
        values = self.ranks(now, queue) if self.alike else self.keys(self.candidate_key, now, queue)
        return np.argsort(values[rows], kind="stable")

    def ranks(self, now: int, queue: Queue) -> Integers:
        """Return the rank of each waiting job as a candidate. The lowest is tried first.

        The array is in order of submission, which also breaks ties.

        >>> queue = Queue()
        >>> for number, seconds in ((1, 300), (2, 30), (3, 100)):
        ...     queue.add((number, 0, 1, *[seconds] * 4, -1))
        >>> Ordering(OrderedSettings(candidates="saf")).ranks(0, queue).tolist()
        [2, 0, 1]
        """
        if self.whole_seconds:
            return queue.order_request if self.by == "request" else queue.order_time
        ranks = np.empty(len(queue), dtype=np.int64)
        ranks[self.candidates(now, queue)] = np.arange(len(queue))
        return ranks

    def in_turn(self, now: int, queue: Queue, free: Integers) -> Integers:
        """Return the rows of the queue in the order in which they are planned.

        Jobs are in the order of the queue up to the first that does not fit beside the jobs before it. The jobs behind
        it are in the order of candidates.
        """
        rows = self.rows(now, queue)
        if self.alike:
            return rows
        heads = 1 + fitting_together(free, queue.sizes[rows])
        first = np.zeros(len(queue), dtype=np.bool_)
        first[rows[:heads]] = True
        behind = self.candidates(now, queue)
        return np.concatenate((rows[:heads], behind[~first[behind]]))

    def keys(self, key: Key, now: int, queue: Queue) -> Floats:
        """Return the sort key of each job, in order of submission. The smallest key is served first.

        Raise `ValueError` if `key` does not return one value for each job.
        """
        waiting = WaitingColumns(now, queue, self.by, self.measures, self.chance)
        values = np.asarray(key(waiting), dtype=np.float64)
        if values.shape != (len(queue),):  # a plug-in may return another shape; kernels read one key for each job
            name = getattr(key, "__name__", key)
            raise ValueError(f"order {name}: expected keys of shape ({len(queue)},), found {values.shape}")
        return values - self.weight * waiting.waits if self.weight and key is not fcfs else values


class InOrder:
    """Mixin of a policy that serves the queue in the order of `ordering`, and backfills behind the head as EASY."""

    as_easy: ClassVar[bool] = True
    ordering: Ordering

    def served(self, now: int, queue: Queue, idle: Integers) -> Integers:
        """Return the rows of the queue in the order of the policy."""
        return self.ordering.rows(now, queue)
