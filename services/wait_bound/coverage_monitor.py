"""Live coverage: the share of the last waits within their bounds, and whether it lies in the expected band.

See docs/algorithms.md#live-coverage.
"""

import math
from bisect import bisect_left, bisect_right
from collections import deque
from functools import lru_cache
from typing import Any, Literal

from shadowtime.shared.messages import Coverage

LAST = 1000
"""Number of the last waits that count."""

SPREADS = 3.0
"""Half-width of the band, in standard deviations that the share of as many independent waits would have."""

EVERY = 100
"""Number of waits after which the share is published even if it has not left or entered its band."""

Place = Literal["below", "within", "above"]
"""Position of the share relative to its band."""


@lru_cache(maxsize=4 * LAST)
def band(quantile: float, count: int) -> tuple[float, float]:
    """Return the expected band, least and largest, of the share of covered waits among `count`.

    >>> tuple(round(value, 3) for value in band(0.95, 1000))
    (0.929, 0.971)
    """
    spread = SPREADS * math.sqrt(quantile * (1 - quantile) / count)
    return max(quantile - spread, 0.0), min(quantile + spread, 1.0)


@lru_cache(maxsize=4 * LAST)
def allowed(quantile: float, count: int) -> tuple[int, int]:
    """Return the fewest and the most covered waits among `count` whose share lies in its band.

    >>> allowed(0.95, 1000), allowed(0.95, 1)
    ((930, 970), (1, 1))
    """
    low, high = band(quantile, count)
    numbers = range(count + 1)
    fewest = bisect_left(numbers, low, key=lambda covered: covered / count)
    return fewest, bisect_right(numbers, high, key=lambda covered: covered / count) - 1


class LiveCoverage:
    """The share of covered waits among the last 1,000. O(1) for each wait.

    >>> live = LiveCoverage(quantile=0.95)
    >>> [live.add(covered=False) for _ in range(3)], live.share, live.place
    ([True, False, False], 0.0, 'below')
    """

    def __init__(self, quantile: float) -> None:
        self._quantile = quantile
        self._last: deque[int] = deque(maxlen=LAST)
        self._covered = 0
        self._unpublished = 0
        self._allowed = 0, 0
        self.place: Place = "within"

    def add(self, *, covered: bool) -> bool:
        """Record a wait. Return whether the share is to be published now."""
        last = self._last
        if len(last) == LAST:
            self._covered -= last[0]
        else:
            self._allowed = allowed(self._quantile, len(last) + 1)
        last.append(1 if covered else 0)
        self._covered += covered
        fewest, most = self._allowed
        place: Place = "below" if self._covered < fewest else "above" if self._covered > most else "within"
        self._unpublished += 1
        if place == self.place and self._unpublished < EVERY:
            return False
        self.place, self._unpublished = place, 0
        return True

    @property
    def revealed(self) -> int:
        """Return the number of waits that count."""
        return len(self._last)

    @property
    def share(self) -> float:
        """Return the share of these waits that was covered; 1 without waits."""
        return self._covered / len(self._last) if self._last else 1.0

    @property
    def band(self) -> tuple[float, float]:
        """Return the least and the largest expected share; without waits, those of one wait."""
        return band(self._quantile, max(len(self._last), 1))

    def message(self, grouping: str, queue: int | None) -> Coverage:
        """Return the message of the share, for the bounds of a grouping in a queue, or in the cluster (None)."""
        low, high = self.band
        return Coverage(
            grouping=grouping,
            queue=queue,
            quantile=self._quantile,
            revealed=self.revealed,
            covered=self.share,
            low=low,
            high=high,
        )

    def snapshot(self) -> Any:
        """Return the last waits as text of 1 (covered) and 0, the number since the last publication, and `place`."""
        return ["".join(map(str, self._last)), self._unpublished, self.place]

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        last, self._unpublished, self.place = state
        self._last = deque(map(int, last), maxlen=LAST)
        self._covered = sum(self._last)
        self._allowed = allowed(self._quantile, max(len(self._last), 1))
