"""Sequential test of a difference between shadow and cluster, with one bet every ten days. It is valid at any time."""

from math import exp, log1p
from typing import Any

BET_DAYS = 10
"""Days of a bet. The dependence between days is mostly within one bet."""

STAKES = (-0.9, -0.6, -0.3, 0.3, 0.6, 0.9)
"""Shares of the capital that are bet on later starts (+) and on sooner starts (-) in the shadow."""

ENOUGH = 20.0
"""Multiple of the first capital at which a difference counts as real. At most 1 in 20 tests reach it by chance."""


class Evidence:
    """Bets on the better of two policies, ten days at a time. Each bet is fair if neither policy is better.

    Each stake begins with the same capital. A bet multiplies the capital by 1 + stake * y. Here y is the mean
    difference of the ten days, divided by the largest absolute mean difference of earlier bets, and cut to [-1, 1]. If
    neither policy is better, y has mean 0 given the past, so the total capital is a martingale. The probability that
    the capital ever reaches `ENOUGH` times its first value is at most 1 / `ENOUGH` (Ville). O(1) a day.

    `since` is the day from which on the difference is real. `sooner` says whether the shadow is better. Both are None
    before that day.

    >>> evidence = Evidence()
    >>> for day in range(120):
    ...     evidence.add(day, over=-900.0, jobs=10)
    >>> evidence.since, evidence.sooner
    (80, True)

    References: docs/algorithms.md#real-since (Waudby-Smith 2024, section 4; Ville 1939).
    """

    def __init__(self) -> None:
        self._log_capital = [0.0] * len(STAKES)
        self._scale = 0.0
        self._bet: int | None = None
        self._over, self._jobs = 0.0, 0.0
        self.since: int | None = None
        self.sooner: bool | None = None

    def add(self, day: int, over: float, jobs: float) -> None:
        """Add the next day, which has `jobs` jobs. `over` is the sum of their differences: shadow minus real."""
        bet = day // BET_DAYS
        if self._bet is not None and bet != self._bet:
            self._settle((self._bet + 1) * BET_DAYS)
        self._bet = bet
        self._over += over
        self._jobs += jobs

    def _settle(self, day: int) -> None:
        """Settle the bet on the ten days that end before `day`."""
        mean = self._over / self._jobs if self._jobs else 0.0
        self._over, self._jobs = 0.0, 0.0
        if self._scale:
            won = max(-1.0, min(mean / self._scale, 1.0))
            self._log_capital = [
                capital + log1p(stake * won) for capital, stake in zip(self._log_capital, STAKES, strict=True)
            ]

        self._scale = max(self._scale, abs(mean))
        if self.since is None and self.times >= ENOUGH:
            best = max(range(len(STAKES)), key=self._log_capital.__getitem__)
            self.since, self.sooner = day, STAKES[best] < 0

    @property
    def times(self) -> float:
        """Current capital of all stakes together, as a multiple of the first capital."""
        most = max(self._log_capital)
        return exp(min(most, 700.0)) * sum(exp(capital - most) for capital in self._log_capital) / len(STAKES)

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state."""
        return {name.removeprefix("_"): value for name, value in vars(self).items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        for name in vars(self):
            setattr(self, name, state[name.removeprefix("_")])
        self._log_capital = list(self._log_capital)
