"""When a difference is real: a bet on every ten days that stays honest however often one looks."""

from math import exp, log1p
from typing import Any

BET_DAYS = 10
"""Days of a bet: what a day leaves behind for the next ones is within one bet for the most part."""

STAKES = (-0.9, -0.6, -0.3, 0.3, 0.6, 0.9)
"""Shares of the capital that are bet on later (+) and on sooner (-)."""

ENOUGH = 20.0
"""Times the capital at which a difference is real: one in twenty of those who bet where there is none get there."""


class Evidence:
    """Bets on which of two is better, ten days at a time, where each bet is fair if neither is.

    Each stake begins with the same capital, and wins or loses its share of it times y, the difference of the ten days
    over the largest one before, between -1 and 1. While neither is better, y is 0 on average whatever came before: the
    capital of all together is a martingale, and ever gets to `ENOUGH` times what it was with a probability of at most
    1 / `ENOUGH` (Ville), at all looks together. O(1) a day.

    Examples
    --------
    >>> evidence = Evidence()
    >>> for day in range(120):
    ...     evidence.add(day, over=-900.0, jobs=10)
    >>> evidence.since, evidence.sooner
    (80, True)

    References
    ----------
    docs/algorithms.md#real-since (Waudby-Smith 2024, section 4; Ville 1939).
    """

    def __init__(self) -> None:
        self._log_capital = [0.0] * len(STAKES)
        self._scale = 0.0
        self._bet: int | None = None
        self._over, self._jobs = 0.0, 0.0
        self.since: int | None = None
        self.sooner: bool | None = None

    def add(self, day: int, over: float, jobs: float) -> None:
        """Take in a day: what its jobs had more in the shadow, added up, and how many they are; days ascend."""
        bet = day // BET_DAYS
        if self._bet is not None and bet != self._bet:
            self._settle((self._bet + 1) * BET_DAYS)
        self._bet = bet
        self._over += over
        self._jobs += jobs

    def _settle(self, day: int) -> None:
        """Bet on the ten days that end before a day."""
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
        """How many times the first capital there is by now, of all stakes together."""
        most = max(self._log_capital)
        return exp(min(most, 700.0)) * sum(exp(capital - most) for capital in self._log_capital) / len(STAKES)

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state."""
        return {name.removeprefix("_"): value for name, value in vars(self).items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Take on what `snapshot` returned."""
        for name in vars(self):
            setattr(self, name, state[name.removeprefix("_")])
        self._log_capital = list(self._log_capital)
