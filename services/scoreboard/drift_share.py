"""Test of a share of failures, day by day: whether it rises above the stated share and above its own record.

The record is the mean of earlier days. The hypothesis allows changes: it says that the share exceeds the larger of the
stated share and the record by at most a tolerance (Podkopaev 2022). See docs/algorithms.md#drift.
"""

from collections import deque
from math import log, sqrt
from typing import Any, Literal

# Evidence that the mean of values in 0 to 1 has risen above its limit `most`: docs/algorithms.md#drift.
#
# The e-detector of the mixture form with Shiryaev-Roberts increments (Shin 2022, sections 2 and 4). Bets of several
# sizes begin at every step and are added up. They bet against the hypothesis "given the past, no value is expected to
# be above `most`". While the hypothesis is true, the expected evidence at any stopping time is at most the number of
# steps until then, whatever the dependence of the values. With an alarm at an evidence of `c`, the mean time until a
# false alarm is therefore at least `c` steps.

BETS = (0.1, 0.3, 0.6, 0.9)
"""Shares of the capital that are bet. All bets begin with the same capital. Small bets detect small changes."""

TRACED = 0.3
"""The bet by which the beginning of a change is estimated."""


class EDetector:
    """E-detector of a mean above its limit.

    At every step, a bet of each size begins. The evidence is the total capital of the bets of a size, averaged
    over the sizes.

    O(1) for each value, constant memory.

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
        """Add the value of a step, in 0 to 1, and return the evidence. `most` > 0 is the limit of its expectation."""
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
        """The evidence: the mean of `sums` over the sizes of bets."""
        return sum(self.sums) / len(self.sums)

    @property
    def mean(self) -> float:
        """The mean of the values since `began`, the most likely beginning of a change; 0 without values."""
        return self.total / self.count if self.count else 0.0

    def snapshot(self) -> list[Any]:
        """Return the whole state as plain values."""
        return [self.sums, self.score, self.began, self.total, self.count]

    def restore(self, state: list[Any]) -> None:
        """Restore the state that `snapshot` returned."""
        sums, self.score, self.began, self.total, self.count = state
        self.sums = list(sums)


TOLERANCE = 0.05
"""Least tolerance by which a share may exceed both the stated share and its record."""

RECORD = 20
"""Number of days at the beginning that are only added to the record. Tests begin after these days."""

LAG = 10
"""Delay in days before a day enters the record, so that a change is detected before it becomes part of the record."""

DOUBT = 60
"""Delay in days that replaces `LAG` if the share may have risen by the day that would enter the record."""

HORIZON = 90
"""Days over which the record is averaged. Earlier days fade."""

ERRORS = 2.0
"""The tolerance is this number of standard errors of the record if they exceed `TOLERANCE`."""

HIGHEST = 0.95
"""Largest limit at which a share is tested. Above this limit, no rise could be detected."""

STILL = 30.0
"""Evidence at which an alarm ends. A share that is still too high stays under alarm for 30 days or more on average."""

Change = Literal["drifts", "holds"]


class WatchedShare:
    """A share that is watched day by day; O(1) a day.

    It keeps the mean of earlier days (the record). One detector finds a rise of the share above both the stated share
    and the record. A second detector finds its return.

    Parameters
    ----------
    stated
        The share that the prediction states, such as 0.05 of waits beyond a bound of 95 %; 0 if it states none.
    limit
        The evidence at which an alarm begins.

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
        """Mean share from `since` until the alarm. After the alarm: the mean share since the prediction holds again."""

    def add(self, day: int, value: float) -> Change | None:
        """Add the share of a day, in 0 to 1. Return `drifts` if an alarm begins, `holds` if one ends, else None."""
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
        """The evidence as a fraction of the limit at which an alarm begins; 1 under alarm."""
        return 1.0 if self.since is not None else self.rising.evidence / self.limit

    def snapshot(self) -> list[Any]:
        """Return the whole state as plain values."""
        record = [self.days, self.mean, self.variance, list(self.waiting)]
        episode = [self.since, self.most, self.share]
        return [self.stated, self.limit, record, self.rising.snapshot(), self.falling.snapshot(), episode]

    def restore(self, state: list[Any]) -> None:
        """Restore the state that `snapshot` returned."""
        self.stated, self.limit, record, rising, falling, episode = state
        self.days, self.mean, self.variance, waiting = record
        self.waiting = deque((day, value) for day, value in waiting)
        self.rising.restore(rising)
        self.falling.restore(falling)
        self.since, self.most, self.share = episode
