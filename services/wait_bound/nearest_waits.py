"""The waits of the jobs that were most like one when they were submitted."""

from typing import Any

import numpy as np

from shadowtime.shared.arrays import Floats, FloatTable
from shadowtime.shared.kernel import kernel
from shadowtime.shared.packed_table import packed_numbers, unpacked_numbers

REMEMBERED = 8_000
"""Waits that are looked at."""

NEAREST = 300
"""Waits that are taken."""

AGE = 20 * 86_400.0
"""Seconds that count as much as a forecast that differs by the factor e."""

OF_USER = 0.3
"""What a difference of the user's waits counts, by that of a forecast."""

FORECAST, USER, WHEN, WAIT = range(4)
"""Columns: logarithm of the forecast wait, mean logarithm of the user's waits, time of submission, wait in seconds."""


@kernel
def nearest(waits: FloatTable, forecast: float, user: float, now: float, most: int) -> Floats:
    """Return the waits of the `most` nearest jobs in seconds, rising; more where several are as near. O(waits)."""
    far = np.empty(len(waits))
    for job in range(len(waits)):
        near = abs(waits[job, FORECAST] - forecast) + OF_USER * abs(waits[job, USER] - user)
        far[job] = near + (now - waits[job, WHEN]) / AGE
    found = waits[:, WAIT].copy()
    if len(waits) > most:
        found = found[far <= np.partition(far, most - 1)[most - 1]]
    return np.sort(found)


class NearestWaits:
    """The last `REMEMBERED` waits, with what was known of each job at its submission.

    Examples
    --------
    >>> waits = NearestWaits()
    >>> for hour in range(1000):
    ...     waits.add(forecast=4.0 * (hour % 2), user=0.0, submitted=3600.0 * hour, wait=100.0 * (hour % 2))
    >>> float(waits.near(forecast=4.0, user=0.0, now=3.6e6).mean())
    100.0
    """

    def __init__(self) -> None:
        self._waits: FloatTable = np.zeros((REMEMBERED, 4))
        self._count = 0

    def __len__(self) -> int:
        return min(self._count, REMEMBERED)

    def add(self, forecast: float, user: float, *, submitted: float, wait: float) -> None:
        """Take in a wait; the oldest gives way. O(1)."""
        self._waits[self._count % REMEMBERED] = forecast, user, submitted, wait
        self._count += 1

    def near(self, forecast: float, user: float, now: float) -> Floats:
        """Return the waits of the nearest jobs, in seconds, rising."""
        return nearest(self._waits[: len(self)], forecast, user, now, NEAREST)

    def snapshot(self) -> Any:
        """Return the waits."""
        return [self._count, packed_numbers(self._waits[: len(self)])]

    def restore(self, state: Any) -> None:
        """Take on what `snapshot` returned."""
        self._count, table = state[0], unpacked_numbers(state[1])
        self._waits[: len(table)] = table
