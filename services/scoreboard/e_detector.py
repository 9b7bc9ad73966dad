"""Evidence that the mean of values in 0 to 1 has come to lie above what it may be: docs/algorithms.md#drift.

The e-detector of the mixture form with Shiryaev-Roberts increments (Shin 2022, sections 2 and 4): bets of several sizes
against "given the past, no value is expected to be above `most`" that begin at every step, added up. As long as that
is true, whatever the values depend on, the evidence that is expected at any time at which one may choose to stop is at
most the steps until then. An alarm at an evidence of `c` is therefore false after `c` steps on average at the earliest.
"""

from math import log
from typing import Any

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
        self.sums = [(1.0 + each) * (1.0 - bet + bet * ratio) for each, bet in zip(self.sums, BETS, strict=True)]
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
