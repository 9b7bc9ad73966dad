"""What a run-time distribution says of a job as a whole: mean, slowdown at stake, rate at which it may end.

The derivations: docs/ordering.md#an-index-of-the-distribution.
"""

import math
from typing import Literal, NamedTuple

import numpy as np

from shadowtime.services.scheduler.histograms import Histograms
from shadowtime.services.scheduler.job_table import Queue
from shadowtime.shared.arrays import Floats, FloatTable, Integers
from shadowtime.shared.kernel import kernel
from shadowtime.shared.run_time_bins import EDGES
from shadowtime.shared.slowdown import RUN_TIME_FLOOR

TimesBy = Literal["plan", "request", "predicted", "expected"]
"""Which run times put jobs in order."""

FLOOR = float(RUN_TIME_FLOOR)


class Measures(NamedTuple):
    """Of each job, shape (jobs,): mean time left in seconds, slowdown a second, and end rate, see `measures_of`."""

    means: Floats
    slowdowns_a_second: Floats
    end_rates: Floats


@kernel
def measures_of(masses: Floats, elapsed: float, limit: float) -> tuple[float, float, float]:
    """Return what is left of a distribution once a job has run for `elapsed` seconds, as three numbers. O(bins).

    The job ends at `limit` at the latest. Within a bin the logarithm of the run time is uniform. A job that has
    outlived all of it, or its limit, is taken to end in a second.

    Parameters
    ----------
    masses
        Probability of each bin of `shared.run_time_bins`, from bin 0 on; they need not add up to 1.
    elapsed, limit
        Seconds; infinity bounds nothing.

    Returns
    -------
    mean
        The expected time left, E[p - elapsed], in seconds.
    slowdown_a_second
        E[1 / max(p, 10 s)]: what a second of waiting adds to the bounded slowdown.
    end_rate
        The best ratio, over thresholds x at the ends of bins and at the limit, of the probability that the job ends
        within x more seconds to the time that it is then expected to have run, E[min(p - elapsed, x)].

    Examples
    --------
    >>> mean, slowdown, rate = measures_of(np.array([0.5] + [0.0] * 11 + [0.5]), 0.0, 3600.0)
    >>> round(mean, 2), round(slowdown, 4), round(rate, 4)
    (437.61, 0.0506, 0.6667)
    """
    total, sum_left, sum_slowdown = 0.0, 0.0, 0.0
    weights, lefts, ends = np.zeros(len(masses)), np.zeros(len(masses)), np.zeros(len(masses))
    for j in range(len(masses)):
        low, high = EDGES[j], EDGES[j + 1]
        if masses[j] <= 0.0 or high <= elapsed:
            continue
        start, end = max(low, elapsed), min(high, limit)
        if start >= limit:
            weight, mean, slowdown = masses[j], limit, 1.0 / max(limit, FLOOR)
            end = limit
        elif j == 0:
            weight, mean, slowdown = masses[j], (start + end) / 2.0, 1.0 / FLOOR
        else:
            width = math.log(high / low)
            weight = masses[j] * math.log(high / start) / width
            left = math.log(high / start)
            mean = ((end - start) + end * math.log(high / end)) / left
            slowdown = math.log(high / end) / max(end, FLOOR)
            if start < FLOOR:
                slowdown += math.log(min(end, FLOOR) / start) / FLOOR
            if end > FLOOR:
                slowdown += 1.0 / max(start, FLOOR) - 1.0 / end
            slowdown /= left
        weights[j], lefts[j], ends[j] = weight, mean - elapsed, end - elapsed
        total += weight
        sum_left += weight * (mean - elapsed)
        sum_slowdown += weight * slowdown
    if total <= 0.0 or limit <= elapsed:
        last = elapsed + 1.0
        return 1.0, 1.0 / max(last, FLOOR), 1.0
    best, ended, work = 0.0, 0.0, 0.0
    for j in range(len(masses)):
        if weights[j] > 0.0:
            ended += weights[j]
            work += weights[j] * lefts[j]
            best = max(best, ended / max(work + (total - ended) * ends[j], 1e-9))
    return max(sum_left / total, 1e-9), sum_slowdown / total, best


@kernel
def measure(slots: Integers, limits: Integers, histograms: FloatTable, table: FloatTable) -> None:
    """Write the measures of the distributions in `slots` into the same rows of a table. O(slots * bins)."""
    for job in range(len(slots)):
        table[slots[job]] = measures_of(histograms[slots[job]], 0.0, float(limits[job]))


class RunTimeMeasures:
    """The measures of waiting jobs, each worked out once; what is kept follows from the queue, and only saves work.

    A job without a distribution runs as predicted. O(jobs) a pass, and O(bins) for each job that is new.
    """

    def __init__(self) -> None:
        self._histograms: Histograms | None = None
        self._changes: Integers = np.empty(0, dtype=np.int64)
        self._table: FloatTable = np.empty((0, 3))

    def of(self, queue: Queue) -> Measures:
        """Return the measures of the waiting jobs.

        >>> queue = Queue()
        >>> queue.add((1, 0, 2, 300, 300, 20, 20, -1))
        >>> [each.round(3).tolist() for each in RunTimeMeasures().of(queue)]
        [[20.0], [0.05], [0.05]]
        """
        points = queue.predicted_time.astype(np.float64)
        found = np.stack((points, 1.0 / np.maximum(points, FLOOR), 1.0 / points))
        rows = np.flatnonzero(queue.slot >= 0)
        if len(rows):
            slots = queue.slot[rows]
            changes = queue.histograms.changes
            if queue.histograms is not self._histograms:
                self._histograms = queue.histograms
                self._changes.fill(0)
            if len(self._changes) < len(changes):
                more = len(changes) - len(self._changes)
                self._changes = np.concatenate((self._changes, np.zeros(more, dtype=np.int64)))
                self._table = np.concatenate((self._table, np.empty((more, 3))))
            new = self._changes[slots] != changes[slots]
            if new.any():
                measure(slots[new], queue.limit_time[rows[new]], queue.histograms.masses, self._table)
                self._changes[slots[new]] = changes[slots[new]]
            found[:, rows] = self._table[slots].T
        return Measures(*found)
