"""Coverage and tightness of bounds on the wait: docs/algorithms.md#coverage-of-wait-bounds."""

from collections.abc import Iterable, Sequence
from itertools import islice
from math import sqrt
from typing import Any, NamedTuple

from shadowtime.services.scoreboard.scores.event_probabilities import PARTS
from shadowtime.shared.bounds import MAX_EXPECTED_QUEUES, MAX_KINDS
from shadowtime.shared.messages import StartsByScores, WaitBound, WaitBoundScores, bound_to_show

WINDOW = 1_000
"""Number of scored jobs in a window; windows are disjoint."""

WITHIN = 20
"""Maximum difference, in jobs, between coverage and quantile at which a window counts as good: 2 % of `WINDOW`."""


LOWER = " (lower)"
"""Suffix of a grouping's name for bounds from below. A share of 1 - quantile of the waits should be no shorter."""

MAX_OF_A_JOB = 32
"""Maximum number of bounds that are kept for a job: more than twice as many as `bmbp` publishes for a job."""


class BoundKind(NamedTuple):
    """Common traits of bounds that are scored together. `queue` is None for bounds of the whole cluster."""

    grouping: str
    queue: int | None
    quantile: float
    confidence: float


class Bound(NamedTuple):
    """A bound on the wait of one job, in seconds, and its quantile: the share of jobs that such bounds should cover."""

    quantile: float
    seconds: int


class CoverageSums:
    """Running sums over the bounds of one kind; memory is constant.

    `quantile` is the share of jobs that should wait no longer than their bounds.

    >>> sums = CoverageSums(quantile=0.5)
    >>> sums.add(bound=100, wait=90)
    >>> sums.add(bound=200, wait=250)
    >>> sums.summary()["coverage"], sums.summary()["over_rms"]
    (0.5, 10.0)
    """

    def __init__(self, quantile: float) -> None:
        self.quantile = quantile
        self.predictions = 0
        self.without = 0
        self.covered = 0
        self.squares = 0.0  # in s²; a float, because an integer could exceed the 64 bits of a snapshot
        self.windows = 0
        self.windows_within = 0
        self.covered_before = 0  # as of the end of the last complete window

    def add(self, bound: int | None, wait: int) -> None:
        """Add a wait and its bound, which is None if there was none. Times in seconds."""
        if bound is None:
            self.without += 1
            return
        self.predictions += 1
        if bound >= wait:
            self.covered += 1
            self.squares += float(bound - wait) ** 2
        if self.predictions % WINDOW == 0:
            off = self.covered - self.covered_before - self.quantile * WINDOW
            self.windows += 1
            self.windows_within += round(abs(off), 6) <= WITHIN
            self.covered_before = self.covered

    def summary(self) -> dict[str, Any]:
        """Return the fields of `WaitBoundScores` that are computed from these sums."""
        return {
            "predictions": self.predictions,
            "without": self.without,
            "coverage": self.covered / self.predictions if self.predictions else None,
            "over_rms": sqrt(self.squares / self.covered) if self.covered else None,
            "windows": self.windows,
            "windows_within": self.windows_within,
        }

    def snapshot(self) -> dict[str, Any]:
        """Return the sums."""
        return vars(self).copy()

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        vars(self).update(state)


class WaitBoundCoverage:
    """The bounds of jobs with still unknown waits, and sums over the jobs with known waits.

    Memory is bounded by the waiting jobs and by the kinds of bounds. Only the first `MAX_KINDS` kinds are kept.
    """

    def __init__(self) -> None:
        self.waiting: dict[int, list[tuple[BoundKind, int | None]]] = {}
        self.waiting_lower: dict[int, list[tuple[BoundKind, int | None]]] = {}
        """Bounds from below."""
        self.sums: dict[BoundKind, CoverageSums] = {}

    def submit(self, job_number: int, bounds: Iterable[WaitBound]) -> None:
        """Keep the first `MAX_OF_A_JOB` bounds of a job until its wait is known."""
        first = list(islice(bounds, MAX_OF_A_JOB))
        upper = [
            (BoundKind(of.grouping, of.queue, of.quantile, of.confidence), of.bound)
            for of in first
            if of.side != "lower"
        ]
        lower = [
            (BoundKind(of.grouping + LOWER, of.queue, round(1 - of.quantile, 12), of.confidence), of.lower)
            for of in first
            if of.side is not None
        ]
        for waiting, kept in ((self.waiting, upper), (self.waiting_lower, lower)):
            for kind, _ in kept:
                if kind not in self.sums and len(self.sums) < MAX_KINDS:
                    self.sums[kind] = CoverageSums(kind.quantile)
            if len(self.sums) == MAX_KINDS:
                kept = [candidate for candidate in kept if candidate[0] in self.sums]
            if kept:
                waiting[job_number] = kept

    def named(self, job_number: int) -> Bound | None:
        """Return the upper bound to show for a waiting job; None if the job has none."""
        kept = self.waiting.get(job_number, ())
        place = bound_to_show((kind.grouping, kind.queue, bound) for kind, bound in kept)
        kind, bound = kept[place] if place is not None else (None, None)
        return None if kind is None or bound is None else Bound(kind.quantile, bound)

    def reveal(self, job_number: int, wait: int) -> None:
        """Score, then drop the bounds of a job that has waited `wait` seconds. A second start is not scored."""
        for kind, bound in self.waiting.pop(job_number, ()):
            if kind in self.sums:
                self.sums[kind].add(bound, wait)
        for kind, lower in self.waiting_lower.pop(job_number, ()):
            if lower is None:
                self.sums[kind].without += 1
            else:
                self.sums[kind].add(wait, lower)  # the bound holds if the wait is no shorter

    def withdraw(self, job_number: int, waited: int) -> None:
        """Score the bounds that the wait of a leaving job exceeded, and the lower bounds that it reached.

        Drop the job's other bounds without a score.
        """
        for kind, bound in self.waiting.pop(job_number, ()):
            if kind in self.sums and bound is not None and bound < waited:
                self.sums[kind].add(bound, waited)
        for kind, lower in self.waiting_lower.pop(job_number, ()):
            if lower is not None and lower <= waited:
                self.sums[kind].add(waited, lower)

    def scores(self) -> tuple[WaitBoundScores, ...]:
        """Return the scores of the whole cluster, then of its queues by number; groupings in order of appearance."""
        kinds = sorted(self.sums, key=lambda kind: (kind.queue is not None, kind.queue or 0))
        return tuple(WaitBoundScores(**kind._asdict(), **self.sums[kind].summary()) for kind in kinds)

    def snapshot(self) -> dict[str, Any]:
        """Return bounds and sums as plain values."""
        return {
            "waiting": _as_values(self.waiting),
            "lower": _as_values(self.waiting_lower),
            "sums": [[[*kind], sums.snapshot()] for kind, sums in self.sums.items()],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        self.waiting, self.waiting_lower = (
            {number: [_kept(candidate) for candidate in kept] for number, kept in state.get(name, ())}
            for name in ("waiting", "lower")
        )
        self.sums = {}
        for kind, sums in state["sums"]:
            restored = self.sums[BoundKind(*kind)] = CoverageSums(kind[2])
            restored.restore(sums)


def _as_values(waiting: dict[int, list[tuple[BoundKind, int | None]]]) -> list[Any]:
    return [[number, [[*kind, bound] for kind, bound in kept]] for number, kept in waiting.items()]


def _kept(values: Sequence[Any]) -> tuple[BoundKind, int | None]:
    *kind, bound = values
    return BoundKind(*kind), bound


class StartsBy:
    """Sums over the started jobs that had a bound to show: in total, and for the first `MAX_EXPECTED_QUEUES` queues.

    >>> starts = StartsBy()
    >>> for wait in (10, 61):
    ...     starts.add(3, Bound(0.95, 60), wait)
    >>> [(row.queue, row.jobs, row.came_true) for row in starts.scores() or ()]
    [(None, 2, 0.5), (3, 2, 0.5)]
    """

    def __init__(self) -> None:
        self.sums: dict[int | None, list[int]] = {}
        """Jobs, jobs in time, stated probabilities in parts of `PARTS`, and seconds of bounds, by queue."""

    def add(self, queue: int | None, bound: Bound, wait: int) -> None:
        """Add a job that started after `wait` seconds."""
        for name in dict.fromkeys((None, queue)):
            if name in self.sums or len(self.sums) <= MAX_EXPECTED_QUEUES:
                row = self.sums.setdefault(name, [0, 0, 0, 0])
                news = 1, wait <= bound.seconds, round(bound.quantile * PARTS), bound.seconds
                row[:] = (before + more for before, more in zip(row, news, strict=True))

    def scores(self) -> tuple[StartsByScores, ...] | None:
        """Return the scores of all jobs, then of the queues by number; None if no job had a bound."""
        rows = []
        for queue in sorted(self.sums, key=lambda queue: (queue is not None, queue or 0)):
            jobs, came, stated, seconds = self.sums[queue]
            rows.append(
                StartsByScores(
                    queue=queue,
                    jobs=jobs,
                    stated=stated / (PARTS * jobs),
                    came_true=came / jobs,
                    mean_bound=seconds / jobs,
                )
            )
        return tuple(rows) or None

    def snapshot(self) -> list[list[int | None]]:
        """Return the sums as plain values."""
        return [[queue, *row] for queue, row in self.sums.items()]

    def restore(self, state: Sequence[Sequence[Any]]) -> None:
        """Restore the sums that `snapshot` returned."""
        self.sums = {queue: list(row) for queue, *row in state}
