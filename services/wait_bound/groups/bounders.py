"""Bounds on the waits of jobs, by queue and by cluster, in all groupings."""

from typing import Any, ClassVar

from shadowtime.services.wait_bound.bounder import NO_UPDATES, Bounder, IssuedBounds, Updates, beyond_queues, scopes_of
from shadowtime.services.wait_bound.groups.groupings import fewest_waits
from shadowtime.services.wait_bound.groups.queue_bounds import CurrentBound, QueueBounds
from shadowtime.services.wait_bound.settings import MAX_WAITS, BoundSettings
from shadowtime.shared.messages import (
    ClusterOpened,
    Event,
    JobSubmitted,
    JobWithdrawn,
    Side,
    WaitBound,
    WaitRanges,
)
from shadowtime.shared.stages import LastValue

BoundsByScope = list[tuple[QueueBounds, list[CurrentBound]]]


def waits_each(settings: BoundSettings, queues: int) -> int:
    """Return the number of waits that the cluster and each of `queues` queues remember in one grouping.

    >>> [waits_each(BoundSettings(), queues) for queues in (19, 20, 39, 40, 64)]
    [20000, 10000, 10000, 5000, 5000]
    """
    most = settings.history
    while (queues + 1) * most > MAX_WAITS and most // 2 >= fewest_waits(settings):
        most //= 2

    return most


class BmbpBounds(Bounder):
    """Bound each wait by groupings of jobs, their ensemble and a conformal bound, for the queue and the cluster.

    With probability `confidence`, at least the share `quantile` of the waits does not exceed the bound; the conformal
    bound has no confidence. With too little history, the message has a reason instead of a bound. Memory is bounded by
    `history` for each grouping of the cluster and of the first `MAX_QUEUES` queues, and by `MAX_WAITS` for all of them.
    A submission or a start costs as much as in `QueueBounds`, for the cluster and for one queue.

    >>> bounder = BmbpBounds(BoundSettings())
    >>> for number in range(100):
    ...     job = JobSubmitted(time=number, job_number=number, requested_processors=1, requested_time=60)
    ...     bounder.observe(job)
    ...     bounder.learn_one(job, 10 * number)
    >>> [(value.grouping, value.bound) for value in bounder.predict_one(job)][:2]
    [('plain', 990), ('static', 990)]

    References: docs/algorithms.md#wait-bounds (Brevik 2006, sections 3 and 4).
    """

    name: ClassVar[str] = "bmbp"
    Settings = BoundSettings

    def __init__(self, settings: BoundSettings) -> None:
        self._settings = settings
        self._most = settings.history
        self._widens = False
        self._cluster = self._new(None)
        self._queues: dict[int, QueueBounds] = {}
        self._find = LastValue(self._look)
        """Bounds of a job in each scope. They are computed once for its prediction and its observation."""

    def predict_one(self, x: JobSubmitted) -> tuple[WaitBound, ...]:
        """Return the bounds at submission, those of the cluster first."""
        settings = self._settings
        return self._published(
            x, x.time, self._find(x), settings.quantile, settings.confidence, settings.published_side
        )

    def bounds_at(self, x: JobSubmitted, now: int, quantile: float, confidence: float) -> tuple[WaitBound, ...]:
        """Return the bounds that a job would have now, in seconds, at any quantile and confidence."""
        return self.sided_bounds_at(x, now, quantile, confidence, "upper")

    def sided_bounds_at(
        self, x: JobSubmitted, now: int, quantile: float, confidence: float, side: Side
    ) -> tuple[WaitBound, ...]:
        """Return the bounds of a side that a job would have now, in seconds, at any quantile and confidence."""
        results = [(scope, scope.find(x, now, quantile, confidence, side)) for scope in self._scopes(x)]
        return self._published(x, now, results, quantile, confidence, side)

    def ranges_at(self, x: JobSubmitted) -> tuple[WaitRanges, ...]:
        """Return the ranges of processors of the cluster and of the job's queue."""
        return tuple(ranges for scope in self._scopes(x) for ranges in scope.ranges())

    def issued(self, grouping: str, queue: int | None) -> IssuedBounds | None:
        """Return the upper bounds of waiting jobs, as `QueueBounds.issued`; also None for a queue without bounds."""
        scope = self._cluster if queue is None else self._queues.get(queue)
        return None if scope is None else scope.issued(grouping)

    def learn_one(self, x: JobSubmitted, y: int) -> None:
        """Learn the wait `y` in seconds."""
        self.updates = NO_UPDATES
        for scope in self._scopes(x):
            news = scope.reveal(x, y)
            if news is not NO_UPDATES:
                before = self.updates
                self.updates = Updates(before.coverage + news.coverage, before.change_points + news.change_points)
        self._find.forget()

    def observe(self, event: Event) -> None:
        """Store the bounds of a submitted job, and advance the time. Publish ranges that were cut anew.

        In a run that follows a cluster, bounds are wider while few waits are known.
        """
        if type(event) is ClusterOpened:
            self._widens = event.follows
            self._cluster = self._new(None)
        self._cluster.advance(event.time)  # queues are advanced at their own events
        if type(event) is JobSubmitted:
            recut: list[WaitRanges] = []
            for scope, results in self._find(event):
                if scope.queue is not None:
                    self._add(scope.queue, scope)
                    scope.advance(event.time)
                if scope.submit(event, results):
                    recut += scope.ranges()

            self.updates = Updates(wait_ranges=tuple(recut)) if recut else NO_UPDATES
        elif type(event) is JobWithdrawn:
            for scope in (self._cluster, *self._queues.values()):
                scope.withdraw(event.job_number, event.time)

        self._find.forget()

    def snapshot(self) -> Any:
        """Return the state of the cluster and of each queue."""
        queues = [[queue, bounds_of_queue.snapshot()] for queue, bounds_of_queue in self._queues.items()]
        return {"cluster": self._cluster.snapshot(), "queues": queues}

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self._most = waits_each(self._settings, len(state["queues"]))
        self._cluster = self._new(None)
        self._cluster.restore(state["cluster"])
        self._queues = {queue: self._new(queue) for queue, _ in state["queues"]}
        for queue, saved in state["queues"]:
            self._queues[queue].restore(saved)
        self._find.forget()

    def _add(self, queue: int, own: QueueBounds) -> None:
        """Store the bounds of a queue. If it is new, all scopes may have to remember fewer waits than before."""
        self._queues[queue] = own
        most = waits_each(self._settings, len(self._queues))
        if most != self._most:
            self._most = most
            for scope in (self._cluster, *self._queues.values()):
                scope.limit(most)

    def _new(self, queue: int | None) -> QueueBounds:
        return QueueBounds(queue, self._settings, self._most, widens=self._widens)

    def _scopes(self, x: JobSubmitted) -> list[QueueBounds]:
        return scopes_of(x, self._cluster, self._queues, self._new)

    def _look(self, x: JobSubmitted) -> BoundsByScope:
        settings = self._settings
        asked = x.time, settings.quantile, settings.confidence, settings.published_side
        return [(scope, scope.find(x, *asked)) for scope in self._scopes(x)]

    def _published(
        self, x: JobSubmitted, now: int, by_scope: BoundsByScope, quantile: float, confidence: float, side: Side
    ) -> tuple[WaitBound, ...]:
        messages = [
            message
            for scope, results in by_scope
            for message in scope.messages(x, now, results, quantile, confidence, side)
        ]
        return (*messages, *beyond_queues(x, by_scope, quantile, confidence, self._cluster.published))
