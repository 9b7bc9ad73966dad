"""All bounds on the waits of one queue, or of a whole cluster."""

import math
from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from shadowtime.services.wait_bound.binomial_ranks import fewest_observations, one_sided
from shadowtime.services.wait_bound.bounder import NO_UPDATES, IssuedBounds, Updates
from shadowtime.services.wait_bound.conformal import MIN_WAITS, Conformal
from shadowtime.services.wait_bound.coverage_monitor import LiveCoverage
from shadowtime.services.wait_bound.groups.group_bound import DETECTING, bound, bounds, lower_bound
from shadowtime.services.wait_bound.groups.groupings import MAX_PRODUCT, groupings, nodes, rtime
from shadowtime.services.wait_bound.settings import BoundSettings
from shadowtime.services.wait_bound.wait_history import SLACK
from shadowtime.services.wait_bound.young import YoungRun
from shadowtime.shared.distributions import packed_numbers, unpacked_numbers
from shadowtime.shared.kernels import IntegerTable
from shadowtime.shared.messages import (
    ChangePoint,
    Coverage,
    JobSubmitted,
    Side,
    WaitBound,
    WaitRanges,
    construct_unchecked,
)

# The grouping that has over-predicted least in the recent past, among those that hold their coverage.

ROUNDING = 0.005
"""Tolerance: a grouping holds its coverage if the coverage, rounded to whole per cent, reaches the quantile (Brevik
2006)."""

LAST = 1_000
"""Number of waits after which an over-prediction counts for little. Each wait has (1 - 1/1,000) times the weight of the
next one."""


class Ensemble:
    """Scores of several groupings over the same jobs, and the choice of one grouping.

    Coverage is over all waits. Over-predictions lose weight with time. Otherwise, one standstill of the queue would
    decide for ever. A job is scored only if all groupings had a bound for it. O(groupings) for each wait.

    >>> ensemble = Ensemble(groupings=2, quantile=0.5)
    >>> ensemble.add([100, 50], wait=10)
    >>> ensemble.chosen()
    1
    >>> ensemble.add([100, 50], wait=60)
    >>> ensemble.add([100, 50], wait=70)
    >>> ensemble.chosen()
    0

    References: docs/algorithms.md#ensemble (Brevik 2006, section 4.6, which proposes it; the forgetting is ours).
    """

    def __init__(self, groupings: int, quantile: float) -> None:
        self._quantile = quantile
        self._scored = 0
        self._covered = [0] * groupings
        self._counts = [0.0] * groupings
        """Number of covered waits of each grouping, with forgetting."""
        self._squares = [0.0] * groupings
        """Sum of (bound - wait)² over the same waits, with forgetting."""
        self._chosen: int | None = None
        """The choice, until another wait is scored."""

    def add(self, bounds: Sequence[int | None], wait: int) -> None:
        """Score the bounds of a job whose wait is known, all in seconds."""
        if None in bounds:
            return
        self._scored += 1
        self._chosen = None
        self._counts = [count * (1 - 1 / LAST) for count in self._counts]
        self._squares = [square * (1 - 1 / LAST) for square in self._squares]
        for index, seconds in enumerate(bounds):
            if seconds is not None and seconds >= wait:
                self._covered[index] += 1
                self._counts[index] += 1.0
                self._squares[index] += float(seconds - wait) ** 2

    def chosen(self) -> int:
        """Return the index of the grouping to follow.

        Of the groupings that hold their coverage, it is the one with the least root mean square over-prediction. If
        none holds its coverage, it is the one with the highest coverage.
        """
        if self._chosen is None:
            least = (self._quantile - ROUNDING) * self._scored
            holding = [index for index, covered in enumerate(self._covered) if covered >= least]
            if holding:
                self._chosen = min(holding, key=self._over_rms)
            else:
                self._chosen = max(range(len(self._covered)), key=self._covered.__getitem__)
        return self._chosen

    def _over_rms(self, grouping: int) -> float:
        count = self._counts[grouping]
        return math.sqrt(self._squares[grouping] / count) if count else 0.0

    def snapshot(self) -> Any:
        """Return the sums."""
        return [self._scored, list(self._covered), list(self._counts), list(self._squares)]

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self._scored, self._chosen = state[0], None
        self._covered, self._counts, self._squares = (list(values) for values in state[1:])


TABLE = (0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
"""Quantiles of the wait in `WaitBound.starts_within`."""

FIVE = ("plain", "static", "nodes", "rtime", "rnprod")
"""Names of the groupings of jobs."""

ALL = (*FIVE, "ensemble", "conformal")
"""Names of all bounds, in the order in which they are published."""


class CurrentBound(NamedTuple):
    """A bound in seconds, or None with too few waits, and the number of waits behind it.

    `lower` is the bound from below, if waits are bounded from below. `stated` is the published bound. In a young run it
    is `base` times the factor of `YoungRun`, and `base` also counts the jobs that still wait.
    """

    bound: int | None
    observations: int
    lower: int | None = None
    stated: int | None = None
    base: int | None = None


class Issued(NamedTuple):
    """Bounds of a waiting job: all computed bounds, and the bound of each grouping that detects change points.

    `lower` has all bounds from below; empty if waits are bounded only from above. `stated` has the published bounds of
    a young run; else it is empty.
    """

    bounds: tuple[int | None, ...]
    detecting: tuple[int | None, ...]
    lower: tuple[int | None, ...] = ()
    stated: tuple[int | None, ...] = ()


class QueueBounds:
    """Five groupings, their ensemble and a conformal bound, each learning from the waits as they become known.

    Only the published bounds are computed. The ensemble needs all groupings.

    O(groupings * log waits) for each submission and each start, and O(waits * log waits) every `recut` submissions.

    Parameters
    ----------
    queue
        None for all queues of a cluster together.
    most
        Maximum number of stored waits of each grouping; `history` of the settings by default.
    widens
        Whether bounds from above are wider while few waits are known; see `YoungRun`.
    """

    def __init__(
        self, queue: int | None, settings: BoundSettings, most: int | None = None, *, widens: bool = False
    ) -> None:
        self.queue = queue
        self._settings = settings
        self._most = settings.history if most is None else most
        self._side = side = settings.published_side
        self._detects = settings.quantile == one_sided(settings.confidence, side) == DETECTING
        """Whether the published bounds are those that detect change points."""
        known = ALL if side == "upper" else ALL[:-1]  # the conformal bound is an upper one
        self.published = known if settings.publish == "all" else (settings.publish,)
        self._computed = (*FIVE, "ensemble") if settings.publish == "ensemble" else self.published
        computed = groupings(settings, self._most)
        self.groupings = [grouping for grouping in computed if grouping.name in self._computed]
        """Computed groupings, in the order of `FIVE`."""
        self._ensemble = Ensemble(len(FIVE), settings.quantile)
        self._conformal = Conformal(settings.quantile, settings.gamma, self._most)
        covered = round(1 - settings.quantile, 12) if side == "lower" else settings.quantile
        self._coverage = {name: LiveCoverage(covered) for name in self.published}
        """Coverage of each bound. Bounds from below are to cover the waits that are no shorter."""
        self._monitors = [self._coverage.get(name) for name in self._computed]
        self._young = YoungRun(settings.quantile) if widens and side == "upper" else None
        self._open: dict[int, Issued] = {}
        self._submissions = 0
        self._revealed = tuple(array("q") for _ in range(3))
        """Processors, requested times and waits, oldest first."""

    def limit(self, most: int) -> None:
        """Store at most `most` waits of each grouping from now on. O(waits * log waits) if there are more."""
        self._most = most
        for grouping in self.groupings:
            grouping.limit(most)
        self._conformal.history.limit(most)
        for column in self._revealed:
            del column[:-most]

    def find(
        self, job: JobSubmitted, now: int, quantile: float, confidence: float, side: Side = "upper"
    ) -> list[CurrentBound]:
        """Return the computed bounds in the order of `ALL`.

        Upper bounds are computed for any side, because the ensemble chooses its grouping by them. The conformal bound
        is computed only for the side `upper` and the configured quantile.
        """
        tail = one_sided(confidence, side)
        results = []
        for grouping in self.groupings:
            at = grouping.at(job)
            seconds, count = bound(grouping.groups, at, quantile, tail)
            lower = None if side == "upper" else lower_bound(grouping.groups, at, quantile, tail)
            results.append(CurrentBound(seconds, count, lower, seconds))
        if "ensemble" in self._computed:
            results.append(results[self._ensemble.chosen()])
        if "conformal" in self._computed and quantile == self._settings.quantile and side == "upper":
            seconds = self._conformal.bound(now)
            results.append(CurrentBound(seconds, len(self._conformal.history), None, seconds))
        if self._young is None or side != "upper":
            return results
        self._young.advance(now)
        least = self._young.least(quantile, confidence, now)
        return [
            CurrentBound(
                answer.bound,
                answer.observations,
                stated=self._young.widened(answer.bound, least),
                base=None if answer.bound is None or least is None else max(answer.bound, least),
            )
            for answer in results
        ]

    def messages(
        self,
        job: JobSubmitted,
        now: int,
        results: list[CurrentBound],
        quantile: float,
        confidence: float,
        side: Side = "upper",
    ) -> list[WaitBound]:
        """Return the messages of the published bounds."""
        upper, lower = side != "lower", side != "upper"
        blank = construct_unchecked(
            WaitBound,
            grouping="",
            queue=self.queue,
            quantile=quantile,
            confidence=confidence,
            side=side if lower else None,
            young=True if self._young is not None and not lower else None,
        )
        made = []
        for name, answer in zip(self._computed, results, strict=False):
            if name not in self.published:
                continue
            reason = None
            if (upper and answer.stated is None) or (lower and answer.lower is None):
                young = None if self._young is None or answer.bound is None else self._young.reason
                need = MIN_WAITS if name == "conformal" else fewest_observations(quantile, confidence, side)
                reason = young or f"not enough history: {answer.observations} of {need} waits"
            made.append(
                blank.replaced(
                    grouping=name,
                    bound=answer.stated if upper else None,
                    lower=answer.lower,
                    observations=answer.observations,
                    reason=reason,
                    starts_within=self._table(job, confidence, now) if name == "ensemble" else (),
                )
            )
        return made

    def submit(self, job: JobSubmitted, results: list[CurrentBound]) -> bool:
        """Store the bounds of a job until it starts. Recut the ranges if this is due; return whether this was done."""
        upper = tuple([answer.bound for answer in results])
        lower = () if self._side == "upper" else tuple([answer.lower for answer in results])
        detecting = upper[: len(self.groupings)]
        if not self._detects:
            detecting = tuple(
                bound(grouping.groups, grouping.at(job), DETECTING, DETECTING)[0] for grouping in self.groupings
            )

        stated = () if self._young is None else tuple([answer.stated for answer in results])
        self._open[job.job_number] = Issued(upper, detecting, lower, stated)
        if self._young is not None:
            self._young.submit(job.job_number, job.since, self._shown([answer.base for answer in results]))
        if "conformal" in self._computed and upper[-1] is not None:
            self._conformal.submit(job.job_number, job.since, upper[-1])
        self._submissions += 1
        return self._submissions % self._settings.recut == 0 and self._recut()

    def ranges(self) -> tuple[WaitRanges, ...]:
        """Return the published ranges of processors, fixed or by the waits, with the number of waits in each range."""
        return tuple(
            WaitRanges(
                grouping=grouping.name,
                queue=self.queue,
                ends=tuple(grouping.ends),
                waits=tuple(len(group.history) for group in grouping.groups),
            )
            for grouping in self.groupings
            if grouping.value is nodes and grouping.name in self.published
        )

    def issued(self, grouping: str) -> IssuedBounds | None:
        """Return the upper bounds of waiting jobs in a grouping; None if it is not published, or only from below."""
        if grouping not in self._coverage or self._side == "lower":
            return None
        at, coverage = self._computed.index(grouping), self._coverage[grouping]

        def bound_of(number: int) -> int | None:
            issued = self._open.get(number)
            return None if issued is None else (issued.stated or issued.bounds)[at]

        return IssuedBounds(self._settings.quantile, bound_of, coverage.revealed, coverage.share)

    def reveal(self, job: JobSubmitted, wait: int) -> Updates:
        """Learn the wait in seconds of a job that starts. Return the messages that follow from it."""
        if "conformal" in self._computed:
            self._conformal.start(job.job_number, job.since + wait, wait)
        issued = self._open.pop(job.job_number, None)
        if self._young is not None:
            self._young.reveal(job.job_number, wait)
            if self._young.over:
                self._young = None
        if issued is None:  # the job starts again after it was requeued
            nothing = (None,) * len(self._computed)
            issued = Issued(nothing, (None,) * len(self.groupings), nothing)
        if "ensemble" in self._computed:
            self._ensemble.add(issued.bounds[: len(FIVE)], wait)
        processors, requests, waits = self._revealed
        processors.append(nodes(job))
        requests.append(rtime(job))
        waits.append(wait)
        if len(waits) > self._most + SLACK:
            for column in self._revealed:
                del column[: -self._most]

        change_points: list[ChangePoint] = []
        for group, detecting in zip(self.groupings, issued.detecting, strict=True):
            at = group.at(job)
            misses = group.groups[at].add(wait, detecting)
            if misses and group.name in self.published:
                lowest, highest = group.span(at)
                change_points.append(
                    ChangePoint(
                        grouping=group.name,
                        queue=self.queue,
                        lowest=lowest,
                        highest=highest,
                        misses=misses,
                        kept=len(group.groups[at].history),
                    )
                )

        coverages = self._cover(issued, wait)
        return Updates(tuple(coverages), tuple(change_points)) if coverages or change_points else NO_UPDATES

    def withdraw(self, job_number: int, now: int) -> None:
        """Forget the bounds of a job that leaves without starting, after scoring the misses before `now`."""
        if self._young is not None:
            self._young.withdraw(job_number)
        if self._open.pop(job_number, None) is not None:
            self._conformal.withdraw(job_number, now)

    def advance(self, now: int) -> None:
        """Advance the time to `now`, in seconds."""
        self._conformal.advance(now)

    def _cover(self, issued: Issued, wait: int) -> list[Coverage]:
        coverages: list[Coverage] = []
        from_below = self._side == "lower"
        stated = issued.lower if from_below else issued.stated or issued.bounds
        for at, (live, seconds) in enumerate(zip(self._monitors, stated, strict=True)):
            if live is None or seconds is None:
                continue
            if live.add(covered=seconds <= wait if from_below else seconds >= wait):
                coverages.append(live.message(self._computed[at], self.queue))

        return coverages

    def _shown(self, bounds: Sequence[int | None]) -> int | None:
        """Return the bound by which a young run is judged: the ensemble's, else the first; None if it is unknown."""
        at = self._computed.index("ensemble") if "ensemble" in self._computed else 0
        return bounds[at]

    def _table(self, job: JobSubmitted, confidence: float, now: int) -> tuple[tuple[float, int], ...]:
        """Return each quantile with enough waits and the seconds within which the job starts with that probability."""
        grouping = self.groupings[self._ensemble.chosen()]
        table: list[tuple[float, int]] = []
        highest = 0
        for row, seconds in zip(TABLE, bounds(grouping.groups, grouping.at(job), TABLE, confidence), strict=True):
            if self._young is not None:
                seconds = self._young.widened(seconds, self._young.least(row, confidence, now))
            if seconds is not None:  # a higher quantile may borrow shorter waits, but its bound must not be lower
                highest = max(seconds, highest)
                table.append((row, highest))

        return tuple(table)

    def _recut(self) -> bool:
        processors, requests, waits = self._last_revealed()
        if not len(waits):
            return False
        values = {
            "nodes": processors,
            "rtime": requests,
            "rnprod": np.minimum(1.0 * processors * requests, MAX_PRODUCT).astype(np.int64),
        }
        for grouping in self.groupings:
            if grouping.cut is not None:
                grouping.recut(values[grouping.name], waits)
        return True

    def _last_revealed(self) -> IntegerTable:
        return np.array([column[-self._most :] for column in self._revealed], dtype=np.int64)

    def snapshot(self) -> Any:
        """Return everything as plain values."""
        return {
            "groupings": [grouping.snapshot() for grouping in self.groupings],
            "ensemble": self._ensemble.snapshot(),
            "conformal": self._conformal.snapshot(),
            "coverage": [live.snapshot() for live in self._coverage.values()],
            "open": [[number, *issued] for number, issued in self._open.items()],
            "submissions": self._submissions,
            **({} if self._young is None else {"young": self._young.snapshot()}),
            "revealed": packed_numbers(self._last_revealed()),
        }

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        for grouping, saved in zip(self.groupings, state["groupings"], strict=True):
            grouping.restore(saved)
        self._ensemble.restore(state["ensemble"])
        self._conformal.restore(state["conformal"])
        for live, saved in zip(self._coverage.values(), state["coverage"], strict=True):
            live.restore(saved)
        self._open = {number: Issued(*map(tuple, issued)) for number, *issued in state["open"]}
        self._submissions = state["submissions"]
        if self._young is not None and (young := state.get("young")) is not None:
            self._young.restore(young)
        else:
            self._young = None
        self._revealed = tuple(array("q", column.tobytes()) for column in unpacked_numbers(state["revealed"]))
