"""When a difference is real: a bet on each week that stays honest however often one looks."""

from math import exp, log1p
from typing import Any

from shadowtime.shared.formatting import DAY

WEEK = 7
"""Days of a bet: what one day leaves behind for the next ones is in one week for the most part."""

STAKES = (-0.9, -0.6, -0.3, 0.3, 0.6, 0.9)
"""Shares of the capital that are bet on later (+) and on sooner (-)."""

ENOUGH = 20.0
"""Times the capital at which a difference is real: one in twenty of those who bet where there is none get there."""


class Evidence:
    """Bets on which of two is better, week by week, where each week is fair if neither is.

    Each stake begins with the same capital, and wins or loses its share of it times y, the difference of the week over
    the largest one before, between -1 and 1. While neither is better, y is 0 on average whatever came before, so that
    the capital of all together is a martingale, and it ever gets to `ENOUGH` times what it was with a probability of
    at most 1 / `ENOUGH` (Ville): at all looks together. O(1) a day.

    Examples
    --------
    >>> evidence = Evidence()
    >>> for day in range(7 * 12):
    ...     evidence.add(day, over=-900.0, jobs=10)
    >>> evidence.since, evidence.sooner
    (62, True)

    References
    ----------
    docs/algorithms.md#real-since (Waudby-Smith 2024, section 4; Ville 1939).
    """

    def __init__(self) -> None:
        self._log_capital = [0.0] * len(STAKES)
        self._scale = 0.0
        self._week: int | None = None
        self._over, self._jobs = 0.0, 0
        self.since: int | None = None
        self.sooner: bool | None = None

