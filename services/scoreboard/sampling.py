"""Sample times of a run, and the state that is kept for samples besides the scores of the run."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from shadowtime.services.scoreboard.waits_by_group import WaitsByGroup
from shadowtime.shared.distributions import BINS, HOUR_AND_EIGHT, SHAPES, shape_of
from shadowtime.shared.messages import Decided, Envelope, JobSubmitted, ProbablyHarmless
from shadowtime.shared.statistics import WaitQuantiles

MAX_QUEUES = 20
"""Maximum number of queues with separate figures. All further queues share the label `OTHERS`."""

MAX_REASONS = 30
"""Maximum number of reasons of decisions that are counted separately. Further reasons count as `OTHERS`."""

MAX_SCOPES = 500
"""Maximum number of scopes (grouping, queue, quantile) with figures."""

ALL, NONE, OTHERS = "all", "none", "others"

Scope = tuple[str, int | None, float]
"""Grouping, queue and quantile of bounds on waits. The queue None means the whole cluster."""


class Sampling:
    """State of a sampled run besides its scores; memory is bounded by the limits above and those of `WaitsByGroup`.

    Samples are due at whole multiples of `every` seconds on the cluster's time line, and at the end. A sample covers
    all events up to its own time.
    """

    def __init__(self, every: int) -> None:
        self.every = every
        self.queues: dict[str, None] = {}
        self.waits = WaitQuantiles()
        self.shapes = [[0, 0] for _ in SHAPES]
        self.groups = WaitsByGroup()
        self.requests = [0, 0]
        self.decisions: Counter[tuple[str, str]] = Counter()
        self.start_probability = 0.0
        self.bounds: dict[Scope, int | None] = {}
        self.coverage: dict[Scope, tuple[float, float, float]] = {}
        self.change_points: Counter[tuple[str, int | None]] = Counter()
        self.interval: int | None = None
        self.started_waits: dict[str, int] = {}
        self.predicted = np.zeros(BINS)
        self.state: int | None = None

    def due(self, before: int, time: int) -> list[int]:
        """Return the sample times from the last event at `before` until before the next event at `time`.

        Only the first and the last are returned: nothing happens between them.

        >>> [Sampling(60).due(30, time) for time in (60, 90, 1_000)], Sampling(60).due(60, 61)
        ([[], [60], [60, 960]], [60])
        """
        first, last = self.moment_of(before), (time - 1) // self.every * self.every
        return [] if last < first else [first] if last == first else [first, last]

    def moment_of(self, time: int) -> int:
        """Return the first sample time at or after `time`."""
        return -(-time // self.every) * self.every

    def submit(self, envelope: Envelope, job: JobSubmitted) -> None:
        """Record the predictions of a submitted job."""
        self._enter(job.time)
        self.queue_of(job.queue_number)
        for bound in envelope.wait_bounds:
            scope = bound.grouping, bound.queue, bound.quantile
            if self._has_room(self.bounds, scope):
                self.bounds[scope] = bound.bound

        if envelope.run_time is not None and envelope.run_time.histogram:
            masses = envelope.run_time.histogram
            self.predicted[: len(masses)] += masses
            self.state = envelope.run_time.state

    def reveal(self, envelope: Envelope, job: JobSubmitted, wait: int) -> None:
        """Record a wait that is known now, in seconds, and the coverage and change points in its envelope."""
        self._enter(envelope.event.time)
        for queue in (ALL, self.queue_of(job.queue_number)):
            self.started_waits[queue] = max(wait, self.started_waits.get(queue, 0))
        for coverage in envelope.coverage:
            scope = coverage.grouping, coverage.queue, coverage.quantile
            if self._has_room(self.coverage, scope):
                self.coverage[scope] = coverage.covered, coverage.low, coverage.high

        for change_point in envelope.change_points:
            if self._has_room(self.change_points, (change_point.grouping, change_point.queue)):
                self.change_points[change_point.grouping, change_point.queue] += 1

    def end(self, job: JobSubmitted, wait: int, requested_time: int, run_time: int) -> None:
        """Add a job that has ended for good: its wait, in total and by group, and the error of its request.

        Times are in seconds. For a job without a request, `requested_time` is its run time.
        """
        self.waits.add(wait)
        self.groups.add(job, wait)
        if job.requested_time is not None:
            self.requests[0] += 1
            self.requests[1] += abs(job.requested_time - run_time)
        sums = self.shapes[shape_of(requested_time, job.requested_processors, HOUR_AND_EIGHT)]
        sums[0] += 1
        sums[1] += wait

    def decide(self, decided: Decided) -> None:
        """Count decisions by reason."""
        for start in decided.starts:
            self._count("start", start.reason.kind)
            if isinstance(start.reason, ProbablyHarmless):
                reason = start.reason
                self.start_probability += reason.probability if reason.recalibrated is None else reason.recalibrated

        for kill in decided.kills:
            self._count("kill", kill.reason)
        for cut in decided.cut_short or ():
            self._count("cut short", cut.by)

    def queue_of(self, number: int | None) -> str:
        """Return the label of a queue: its number, `NONE`, or `OTHERS` for a queue beyond the first `MAX_QUEUES`."""
        name = NONE if number is None else str(number)
        if name not in self.queues and len(self.queues) < MAX_QUEUES:
            self.queues[name] = None
        return name if name in self.queues else OTHERS

    def _has_room(self, scopes: Mapping[Any, Any], scope: tuple[Any, ...]) -> bool:
        """Return whether to keep figures of a scope: its queue has its own label, and `MAX_SCOPES` is not exceeded."""
        shown = scope[1] is None or str(scope[1]) in self.queues
        return shown and (scope in scopes or len(scopes) < MAX_SCOPES)

    def _enter(self, time: int) -> None:
        """Begin a new sampling interval if `time` is not in the current one."""
        if self.interval != (moment := self.moment_of(time)):
            self.interval = moment
            self.started_waits.clear()
            self.predicted[:] = 0.0

    def _count(self, kind: str, reason: str) -> None:
        known = (kind, reason) in self.decisions or len(self.decisions) < MAX_REASONS
        self.decisions[kind, reason if known else OTHERS] += 1

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as plain values."""
        return {
            "queues": list(self.queues),
            "waits": self.waits.snapshot(),
            "shapes": [list(shape) for shape in self.shapes],
            "groups": self.groups.snapshot(),
            "requests": list(self.requests),
            "decisions": [[*kind, count] for kind, count in self.decisions.items()],
            "start_probability": self.start_probability,
            "bounds": [[*scope, bound] for scope, bound in self.bounds.items()],
            "coverage": [[*scope, *values] for scope, values in self.coverage.items()],
            "change_points": [[*scope, count] for scope, count in self.change_points.items()],
            "interval": self.interval,
            "started_waits": list(self.started_waits.items()),
            "predicted": self.predicted.tolist(),
            "state": self.state,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        self.queues = dict.fromkeys(state["queues"])
        self.waits.restore(state["waits"])
        self.shapes = [list(row) for row in state["shapes"]]
        self.groups.restore(state["groups"])
        self.requests = list(state["requests"])
        self.interval, self.start_probability, self.state = (
            state[name] for name in ("interval", "start_probability", "state")
        )
        self.decisions = Counter({(kind, reason): count for kind, reason, count in state["decisions"]})
        self.bounds = {(name, queue, quantile): bound for name, queue, quantile, bound in state["bounds"]}
        self.coverage = {tuple(row[:3]): tuple(row[3:]) for row in state["coverage"]}
        self.change_points = Counter({(name, queue): count for name, queue, count in state["change_points"]})
        self.started_waits = dict(state["started_waits"])
        self.predicted = np.array(state["predicted"])
