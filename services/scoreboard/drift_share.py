"""One share that is watched day by day: whether it lies above what is stated and above its own record.

What is tested is not that nothing changes, but that nothing fails by more than a tolerance (Podkopaev 2022); the rule:
docs/algorithms.md#drift.
"""

from collections import deque
from math import log, sqrt
from typing import Any, Literal

# Evidence that the mean of values in 0 to 1 has come to lie above what it may be: docs/algorithms.md#drift.
#
# The e-detector of the mixture form with Shiryaev-Roberts increments (Shin 2022, sections 2 and 4): bets of several
# sizes against "given the past, no value is expected to be above `most`" that begin at every step, added up. As long
# as that is true, whatever the values depend on, the evidence that is expected at any time at which one may choose to
# stop is at most the steps until then. An alarm at an evidence of `c` is therefore false after `c` steps on average at
# the earliest.

BETS = (0.1, 0.3, 0.6, 0.9)
"""Shares of what there is that are bet, all alike at the beginning: the small ones find small changes."""

TRACED = 0.3
"""The bet by which the beginning of a change is estimated."""


class EDetector:
    """Adds up bets that a mean is above what it may be; O(1) for each value, of constant size.

    Examples
    --------
    >>> detector = EDetector()
    >>> [round(detector.add(step, 0.9, most=0.3), 1) for step in range(4)], detector.began
    ([2.0, 6.1, 15.7, 39.1], 0)
    >>> [round(detector.add(step, 0.0, most=0.3), 1) for step in range(4, 10)][-1] < 5
    True
    """

    def __init__(self) -> None:
        self.sums = [0.0] * len(BETS)
        self.score = 0.0
        self.began = 0
        self.total = 0.0
        self.count = 0

    def add(self, step: int, value: float, most: float) -> float:
        """Take in the value of a step, in 0 to 1, whose expectation may be `most`, above 0; return the evidence."""
        ratio = value / most
        self.sums = [(1.0 + total) * (1.0 - bet + bet * ratio) for total, bet in zip(self.sums, BETS, strict=True)]
        if self.score <= 0.0:
            self.score, self.began, self.total, self.count = 0.0, step, 0.0, 0
        self.score += log(1.0 - TRACED + TRACED * ratio)
        self.total += value
        self.count += 1
        return self.evidence

    @property
    def evidence(self) -> float:
        """Return the mean over the sizes of bets."""
        return sum(self.sums) / len(self.sums)

    @property
    def mean(self) -> float:
        """Return the mean of the values since the change began that is most likely."""
        return self.total / self.count if self.count else 0.0

    def snapshot(self) -> list[Any]:
        """Return the sums."""
        return [self.sums, self.score, self.began, self.total, self.count]

    def restore(self, state: list[Any]) -> None:
        """Take on what `snapshot` returned."""
        sums, self.score, self.began, self.total, self.count = state
        self.sums = list(sums)


TOLERANCE = 0.05
"""Tolerance of a share above the stated share, and above its record."""

RECORD = 20
"""Days before anything is tested: how the share has been until now."""

LAG = 10
"""Days after which one enters the record, so that a change is found before it is taken for granted."""

DOUBT = 60
"""The same of days on which the share may have risen already."""

HORIZON = 90
"""Days over which the record is taken; those before fade."""

ERRORS = 2.0
"""Standard errors of the record by which a share may be above it, where that is more than the tolerance."""

HIGHEST = 0.95
"""A share that may be higher is not tested: nothing could be found."""

STILL = 30.0
"""Days that a share that is still too high is under alarm on average, at the least, before it is said to hold again."""

Change = Literal["drifts", "holds"]


class WatchedShare:
    """A share with its record, a detector that it has risen, and one that it holds again; O(1) a day.

    Parameters
    ----------
    stated
        What the share is by what was said, such as 0.05 of waits beyond a bound of 95 %; 0 where nothing is said.
    limit
        The evidence at which it alarms.

    Examples
    --------
    >>> share = WatchedShare(stated=0.1, limit=1e4)
    >>> [share.add(day, 0.1) for day in range(40)] == [None] * 40
    True
    >>> result = [share.add(day, 0.6) for day in range(40, 60)]
    >>> result.index("drifts"), share.since, round(share.most, 2)
    (6, 40, 0.15)
    >>> [share.add(day, 0.1) for day in range(60, 80)].index("holds")
    18
    """

    def __init__(self, stated: float, limit: float) -> None:
        self.stated = stated
        self.limit = limit
        self.days = 0
        self.mean = 0.0
        self.variance = 0.0
        self.waiting: deque[tuple[int, float]] = deque()
        self.rising = EDetector()
        self.falling = EDetector()
        self.since: int | None = None
        self.most = 0.0
        """Largest share that is allowed, as of the last day that was tested."""
        self.share = 0.0
        """Share from `since` until the alarm, or since it holds again."""

    def add(self, day: int, value: float) -> Change | None:
        """Take in the share of a day, in 0 to 1; return whether an alarm begins or ends."""
        if self.since is not None:
            return self._recover(day, value)
        if self.days < RECORD:
            self._learn(value)
            return None
        self.most = max(self.stated, self.mean) + max(TOLERANCE, ERRORS * sqrt(self.variance / min(self.days, HORIZON)))
        self.waiting.append((day, value))
        failing = self.most <= HIGHEST and self.rising.add(day, value, self.most) >= self.limit
        while len(self.waiting) > (LAG if self.rising.score <= 0 or self.waiting[0][0] < self.rising.began else DOUBT):
            self._learn(self.waiting.popleft()[1])
        if not failing:
            return None
        self.since, self.share = self.rising.began, self.rising.mean
        self.waiting.clear()
        self.falling = EDetector()
        return "drifts"

    def _recover(self, day: int, value: float) -> Change | None:
        if self.falling.add(day, 1.0 - value, 1.0 - self.most) < STILL:
            return None
        self.since, self.share = None, 1.0 - self.falling.mean
        self.rising = EDetector()
        return "holds"

    def _learn(self, value: float) -> None:
        self.days += 1
        step = 1.0 / min(self.days, HORIZON)
        off = value - self.mean
        self.mean += step * off
        self.variance = (1.0 - step) * (self.variance + step * off * off)

    @property
    def evidence(self) -> float:
        """Return the evidence as a share of that at which it alarms; at least 1 under alarm."""
        return 1.0 if self.since is not None else self.rising.evidence / self.limit

    def snapshot(self) -> list[Any]:
        """Return the whole state as plain values."""
        record = [self.days, self.mean, self.variance, list(self.waiting)]
        episode = [self.since, self.most, self.share]
        return [self.stated, self.limit, record, self.rising.snapshot(), self.falling.snapshot(), episode]

    def restore(self, state: list[Any]) -> None:
        """Take on what `snapshot` returned."""
        self.stated, self.limit, record, rising, falling, episode = state
        self.days, self.mean, self.variance, waiting = record
        self.waiting = deque((day, value) for day, value in waiting)
        self.rising.restore(rising)
        self.falling.restore(falling)
        self.since, self.most, self.share = episode
