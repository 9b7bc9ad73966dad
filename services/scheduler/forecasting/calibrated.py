"""Calibrated quantiles of waits: outcomes move each quantile until its coverage equals its level."""

from typing import Any

import numpy as np

from shadowtime.shared.kernels import Floats, FloatTable, NumberedRows, kernel
from shadowtime.shared.statistics import NEAR, seconds_of

# Levels of the quantiles of a wait.

LEVELS = (0.025, 0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 0.95, 0.975)
"""Levels of the quantiles of a sampled forecast: the ends of intervals of 50, 60, 80, 90 and 95 %, and tenths."""

Within = tuple[tuple[float, int], ...]
"""Pairs of a probability and a wait in seconds, both rising. The job starts within the wait with this probability.
Empty if unknown."""


STEP = 0.01
"""Step size. One wait moves the logarithm of a quantile up by `STEP * level`, or down by `STEP * (1 - level)`."""

COUNT = len(LEVELS)
SHARES: Floats = np.array(LEVELS)

FORECAST_AT, KIND, LOGS, OPEN = 0, 1, 2, 2 + COUNT
"""Columns of the forecast of a waiting job: its time, its kind (0 if all quantiles are equal, else 1), the logarithm of
each forecast quantile, and for each quantile 1 until the wait has exceeded it."""


@kernel
def count_missed(now: float, forecasts: FloatTable, shifts: FloatTable, shares: Floats) -> None:
    """Move up the quantiles that the waits so far exceed, once for each waiting job. O(jobs * levels).

    Parameters
    ----------
    forecasts
        `FORECAST_AT`, `KIND`, `LOGS` and `OPEN` of each job. Changed in place.
    shifts
        Shift of each kind and quantile, shape (kinds, levels). Changed in place.
    shares
        Level of each quantile, shape (levels,).
    """
    for job in range(len(forecasts)):
        waited, kind = np.log(now - forecasts[job, FORECAST_AT] + NEAR), int(forecasts[job, KIND])
        for level in range(COUNT):
            if forecasts[job, OPEN + level] > 0.0:
                least = max(forecasts[job, LOGS + level] + shifts[kind, level], np.log(NEAR))
                if waited > least:
                    forecasts[job, OPEN + level] = 0.0
                    shifts[kind, level] += STEP * shares[level]


class CalibratedStarts:
    """Shifts of the logarithms of quantiles, learned online, and the forecasts of the waiting jobs.

    A wait above the shifted quantile moves the shift up by `STEP` times the level of the quantile. Any other wait moves
    the shift down by `STEP` times (1 - level). A quantile is known to be too low as soon as a job has waited for
    longer. Over time, the share of waits within the quantile equals its level. This holds for quantiles with the shift
    of the time at which the outcome is known. Forecasts whose quantiles are all equal have separate shifts. If a job
    starts at once, a shifted quantile of 0 seconds is not moved.

    O(waiting jobs * levels) for each forecast, O(levels) for each start; memory O(waiting jobs).

    >>> starts = CalibratedStarts()
    >>> for number in range(500):
    ...     _ = starts.tell(number, 1_000 * number, tuple((level, 600 + round(60 * level)) for level in LEVELS))
    ...     starts.start(number, 1_000 * number + 900)
    >>> dict(starts.shifted(tuple((level, 600 + round(60 * level)) for level in LEVELS)))[0.5]
    900

    References: docs/algorithms.md#calibrated-starts (Angelopoulos 2025, for the constant step).
    """

    def __init__(self) -> None:
        self.shifts: FloatTable = np.zeros((2, COUNT))
        self._forecasts = NumberedRows(OPEN + COUNT)

    def tell(self, job_number: int, now: int, within: Within) -> Within:
        """Return the calibrated quantiles of a submitted job, and keep its forecast to learn from its wait.

        If `within` is empty, so is the result, and nothing is kept.
        """
        count_missed(float(now), self._forecasts.table, self.shifts, SHARES)
        if not within:
            return within
        logs = _logs(within)
        self._forecasts.add(job_number, np.concatenate(([now, logs[0] < logs[-1]], logs, np.ones(COUNT))))
        return self._moved(logs)

    def shifted(self, within: Within) -> Within:
        """Return the calibrated quantiles in seconds, rising. Nothing is kept."""
        return self._moved(_logs(within))

    def _moved(self, logs: Floats) -> Within:
        seconds = seconds_of(logs + self.shifts[int(logs[0] < logs[-1])]).astype(np.int64)
        return tuple(zip(LEVELS, np.sort(seconds).tolist(), strict=True))

    def start(self, job_number: int, now: int) -> None:
        """Learn from the wait of a job that starts, if it has a forecast."""
        rows = self._forecasts.of(job_number)
        if rows is None:
            return
        count_missed(float(now), rows, self.shifts, SHARES)
        row = rows[0]
        shifts, wait = self.shifts[int(row[KIND])], now - row[FORECAST_AT]
        held = (row[OPEN:] > 0.0) & ((wait > 0.0) | (seconds_of(row[LOGS:OPEN] + shifts) > 0.0))
        shifts[held] -= STEP * (1.0 - SHARES[held])
        self.withdraw(job_number)

    def withdraw(self, job_number: int) -> None:
        """Drop the forecast of a job."""
        self._forecasts.remove(job_number)

    def snapshot(self) -> dict[str, Any]:
        """Return shifts and waiting jobs as plain values."""
        forecasts = self._forecasts
        return {"shifts": self.shifts.tolist(), "numbers": forecasts.numbers.copy(), "told": forecasts.table.tolist()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        self.shifts = np.array(state["shifts"])
        self._forecasts = NumberedRows(OPEN + COUNT, state["numbers"], state["told"])


def _logs(within: Within) -> Floats:
    return np.log(np.array([seconds for _, seconds in within], dtype=np.float64) + NEAR)
