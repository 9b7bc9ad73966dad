"""Coverage and tightness of bounds on the wait: docs/algorithms.md#coverage-of-wait-bounds."""

from collections.abc import Sequence
from itertools import islice
from math import sqrt
from operator import attrgetter
from typing import Any, Final, NamedTuple

from shadowtime.services.scoreboard.drift_scopes import Reach, Statistic
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


MAX_SHAPES = 1_000
"""Maximum number of remembered sequences of kinds. Beyond it, all are forgotten, and found again when they appear."""


class MissesOfReach(NamedTuple):
    """Places of bounds whose misses count in the same scopes: all, the cluster, or a queue."""

    reach: Reach
    queue: int | None
    misses: Sequence[tuple[int, Statistic]]


class KindsOfJob:
    """Kinds of a job's bounds from one side, in their order. Jobs with equal kinds share one object.

    `sums` has the sums of each kind. `misses` has, for each kind, the share of waits beyond the bound that is watched
    for drifts; the stated share is 1 - quantile. `shown` is the place of the bound to show if no bound is missing.
    """

    __slots__ = ("_by_reach", "kinds", "misses", "shown", "sums")

    def __init__(self, kinds: Sequence[BoundKind], sums: dict[BoundKind, CoverageSums]) -> None:
        self.kinds = kinds
        self.sums = [sums[kind] for kind in kinds]
        self.misses = [Statistic("wait_bound", kind.grouping, round(1.0 - kind.quantile, 9)) for kind in kinds]
        self.shown = bound_to_show((kind.grouping, kind.queue, 0) for kind in kinds)
        self._by_reach: dict[tuple[tuple[int, ...], int | None], list[MissesOfReach]] = {}

    def by_reach(self, places: tuple[int, ...], shown: int | None) -> list[MissesOfReach]:
        """Return the misses of the bounds at some places by their reach, in the order of the places.

        `shown` is the place of the bound to show. Its miss counts in all scopes of the job.
        """
        if (known := self._by_reach.get((places, shown))) is not None:
            return known
        misses: dict[tuple[Reach, int | None], list[tuple[int, Statistic]]] = {}
        for place in places:
            queue = self.kinds[place].queue
            reach: Reach = "queue" if queue is not None else "all" if place == shown else "cluster"
            misses.setdefault((reach, queue), []).append((place, self.misses[place]))
        if len(self._by_reach) >= MAX_SHAPES:
            self._by_reach.clear()
        self._by_reach[places, shown] = [MissesOfReach(*key, of_reach) for key, of_reach in misses.items()]
        return self._by_reach[places, shown]


class BoundsOfJob(NamedTuple):
    """The bounds of a job from one side, in seconds, and their kinds."""

    of: KindsOfJob
    bounds: Sequence[int | None]

    @property
    def shown(self) -> int | None:
        """The place of the bound to show; None if no bound is to be shown."""
        if None not in self.bounds:
            return self.of.shown
        kept = zip(self.of.kinds, self.bounds, strict=True)
        return bound_to_show((kind.grouping, kind.queue, bound) for kind, bound in kept)


class PlacesOfKinds(NamedTuple):
    """Kinds of bounds, and the place of each in the message of a job."""

    of: KindsOfJob
    places: Sequence[int]


KIND_AND_SIDE: Final = attrgetter("grouping", "queue", "quantile", "confidence", "side")


class WaitBoundCoverage:
    """The bounds of jobs with still unknown waits, and sums over the jobs with known waits.

    Memory is bounded by the waiting jobs and by the kinds of bounds. Only the first `MAX_KINDS` kinds are kept.
    """

    def __init__(self) -> None:
        self.waiting: dict[int, BoundsOfJob] = {}
        self.waiting_lower: dict[int, BoundsOfJob] = {}
        """Bounds from below."""
        self.sums: dict[BoundKind, CoverageSums] = {}
        self._shapes: dict[tuple[Any, ...], tuple[PlacesOfKinds, PlacesOfKinds]] = {}
        """Kinds of upper and of lower bounds, by the kinds and sides in a message."""

    def submit(self, job_number: int, bounds: Sequence[WaitBound]) -> None:
        """Keep the first `MAX_OF_A_JOB` bounds of a job until its wait is known."""
        shape = tuple(map(KIND_AND_SIDE, islice(bounds, MAX_OF_A_JOB)))
        sides = self._shapes.get(shape)
        if sides is None:
            sides = self._of_shape(shape)
        (upper, places), (lower, lower_places) = sides
        if places:
            self.waiting[job_number] = BoundsOfJob(upper, [bounds[place].bound for place in places])
        if lower_places:
            self.waiting_lower[job_number] = BoundsOfJob(lower, [bounds[place].lower for place in lower_places])

    def _of_shape(self, shape: Sequence[tuple[Any, ...]]) -> tuple[PlacesOfKinds, PlacesOfKinds]:
        """Note the kinds of a new shape, and return those that are kept."""
        upper = {place: BoundKind(*kind) for place, (*kind, side) in enumerate(shape) if side != "lower"}
        lower = {
            place: BoundKind(name + LOWER, queue, round(1 - quantile, 12), confidence)
            for place, (name, queue, quantile, confidence, side) in enumerate(shape)
            if side is not None
        }
        for kinds in (upper, lower):
            for kind in kinds.values():
                if kind not in self.sums and len(self.sums) < MAX_KINDS:
                    self.sums[kind] = CoverageSums(kind.quantile)

        upper, lower = ({at: kind for at, kind in kinds.items() if kind in self.sums} for kinds in (upper, lower))
        if len(self._shapes) >= MAX_SHAPES:
            self._shapes.clear()
        sides = (
            PlacesOfKinds(KindsOfJob(list(upper.values()), self.sums), list(upper)),
            PlacesOfKinds(KindsOfJob(list(lower.values()), self.sums), list(lower)),
        )
        self._shapes[tuple(shape)] = sides
        return sides

    def named(self, job_number: int) -> Bound | None:
        """Return the upper bound to show for a waiting job; None if the job has none."""
        kept = self.waiting.get(job_number)
        if kept is None or (place := kept.shown) is None or (bound := kept.bounds[place]) is None:
            return None
        return Bound(kept.of.kinds[place].quantile, bound)

    def reveal(self, job_number: int, wait: int) -> None:
        """Score, then drop the bounds of a job that has waited `wait` seconds. A second start is not scored."""
        if (kept := self.waiting.pop(job_number, None)) is not None:
            for sums, bound in zip(kept.of.sums, kept.bounds, strict=True):
                sums.add(bound, wait)
        if (kept := self.waiting_lower.pop(job_number, None)) is not None:
            for sums, lower in zip(kept.of.sums, kept.bounds, strict=True):
                if lower is None:
                    sums.without += 1
                else:
                    sums.add(wait, lower)  # the bound holds if the wait is no shorter

    def withdraw(self, job_number: int, waited: int) -> None:
        """Score the bounds that the wait of a leaving job exceeded, and the lower bounds that it reached.

        Drop the job's other bounds without a score.
        """
        if (kept := self.waiting.pop(job_number, None)) is not None:
            for sums, bound in zip(kept.of.sums, kept.bounds, strict=True):
                if bound is not None and bound < waited:
                    sums.add(bound, waited)
        if (kept := self.waiting_lower.pop(job_number, None)) is not None:
            for sums, lower in zip(kept.of.sums, kept.bounds, strict=True):
                if lower is not None and lower <= waited:
                    sums.add(waited, lower)

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
        self.sums, self._shapes = {}, {}
        for kind, sums in state["sums"]:
            restored = self.sums[BoundKind(*kind)] = CoverageSums(kind[2])
            restored.restore(sums)
        self.waiting, self.waiting_lower = (
            {number: self._kept(rows) for number, rows in state.get(name, ())} for name in ("waiting", "lower")
        )

    def _kept(self, rows: Sequence[Sequence[Any]]) -> BoundsOfJob:
        return BoundsOfJob(KindsOfJob([BoundKind(*kind) for *kind, _ in rows], self.sums), [row[-1] for row in rows])


def _as_values(waiting: dict[int, BoundsOfJob]) -> list[Any]:
    return [
        [number, [[*kind, bound] for kind, bound in zip(kept.of.kinds, kept.bounds, strict=True)]]
        for number, kept in waiting.items()
    ]


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
