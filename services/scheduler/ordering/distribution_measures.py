"""Measures of a run-time distribution: mean, slowdown that a second of waiting adds, and end rate.

The derivations: docs/ordering.md#an-index-of-the-distribution.
"""

import math
from typing import Literal, NamedTuple

import numpy as np

from shadowtime.services.scheduler.tables import Histograms, Queue
from shadowtime.shared.distributions import EDGES
from shadowtime.shared.kernels import Floats, FloatTable, Integers, IntegerTable, kernel
from shadowtime.shared.statistics import RUN_TIME_FLOOR

TimesBy = Literal["plan", "request", "predicted", "expected"]
"""Run times by which jobs are ordered."""

FLOOR = float(RUN_TIME_FLOOR)


class Measures(NamedTuple):
    """Mean time left in seconds, slowdown per second and end rate of each job, shape (jobs,): see `measures_of`."""

    means: Floats
    slowdowns_a_second: Floats
    end_rates: Floats


@kernel
def measures_of(masses: Floats, elapsed: float, limit: float) -> tuple[float, float, float]:
    """Return three measures of a job's remaining distribution after it has run for `elapsed` seconds. O(bins).

    The job ends at `limit` at the latest. Within a bin the logarithm of the run time is uniform. A job that has
    outlived its whole distribution, or its limit, is taken to end in a second.

    Parameters
    ----------
    masses
        Probability of each bin of `shared.distributions.histogram`, from bin 0 on; they need not add up to 1.
    elapsed, limit
        Seconds; infinity stands for no limit.

    Returns
    -------
    mean
        The expected time left, E[p - elapsed] for the run time p, in seconds.
    slowdown_a_second
        E[1 / max(p, 10 s)]: the bounded slowdown that a second of waiting adds.
    end_rate
        The highest ratio of two values over all thresholds x, which are the ends of bins and the limit. The first is
        the probability that the job ends within x more seconds. The second is its expected run time in these seconds,
        E[min(p - elapsed, x)].

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
def outlasted(masses: Floats, limit: float, tau: float) -> float:
    """Return the run time that a job outlasts with probability `tau`, in seconds, from 1 to `limit`. O(bins).

    Within a bin the logarithm of the run time is uniform.

    >>> outlasted(np.array([0.0] * 12 + [1.0]), 3600.0, 0.5) == outlasted(np.array([0.0] * 12 + [2.0]), 3600.0, 0.5)
    True
    """
    longer = tau * masses.sum()
    j = len(masses) - 1
    while j > 0 and masses[j] < longer:
        longer -= masses[j]
        j -= 1
    low, high = EDGES[j], EDGES[j + 1]
    share = min(longer / masses[j], 1.0) if masses[j] > 0.0 else 0.0
    time = high - share * (high - low) if j == 0 else high * (low / high) ** share
    return float(max(min(time, limit), 1.0))


@kernel
def measure(slots: Integers, limits: Integers, histograms: FloatTable, taus: Floats, table: FloatTable) -> None:
    """Write the measures of each distribution in `slots` into its row of `table`. O(slots * bins * taus).

    A row has the three values of `measures_of`, then the `outlasted` time for each of `taus`.
    """
    for job in range(len(slots)):
        masses, row = histograms[slots[job]], table[slots[job]]
        row[0], row[1], row[2] = measures_of(masses, 0.0, float(limits[job]))
        for column in range(len(taus)):
            row[3 + column] = outlasted(masses, float(limits[job]), taus[column])


class RunTimeMeasures:
    """Measures of waiting jobs, each computed once. The cache follows from the queue, so it is not part of the state.

    For a job without a distribution, the predicted run time counts. O(jobs) for each pass, O(bins) for each new job.

    `taus` are the probabilities for which `outlasted` returns times.
    """

    def __init__(self, taus: tuple[float, ...] = ()) -> None:
        self.taus = np.array(taus, dtype=np.float64)
        self._histograms: Histograms | None = None
        self._changes: Integers = np.empty(0, dtype=np.int64)
        self._table: FloatTable = np.empty((0, 3 + len(taus)))

    def of(self, queue: Queue) -> Measures:
        """Return the measures of the waiting jobs.

        >>> queue = Queue()
        >>> queue.add((1, 0, 2, 300, 300, 20, 20, -1))
        >>> [value.round(3).tolist() for value in RunTimeMeasures().of(queue)]
        [[20.0], [0.05], [0.05]]
        """
        points = queue.predicted_time.astype(np.float64)
        measures = np.stack((points, 1.0 / np.maximum(points, FLOOR), 1.0 / points))
        rows = np.flatnonzero(queue.slot >= 0)
        if len(rows):
            measures[:, rows] = self._rows(queue, rows)[:, :3].T
        return Measures(*measures)

    def outlasted(self, queue: Queue) -> IntegerTable:
        """Return the time that each waiting job outlasts with each of the `taus`, in whole seconds, shape (taus, jobs).

        If tau is 0 or the job has no distribution, the time is the predicted run time.
        """
        ends = np.repeat(queue.predicted_time[np.newaxis], len(self.taus), axis=0)
        rows = np.flatnonzero(queue.slot >= 0)
        probabilistic = np.flatnonzero(self.taus > 0)
        if len(rows) and len(probabilistic):
            ends[np.ix_(probabilistic, rows)] = self._rows(queue, rows)[:, 3 + probabilistic].T.astype(np.int64)
        return ends

    def _rows(self, queue: Queue, rows: Integers) -> FloatTable:
        """Return the measures of the jobs in these rows of the queue, a row for each job: see `measure`.

        The measures of new distributions are computed first.
        """
        slots = queue.slot[rows]
        changes = queue.histograms.changes
        if queue.histograms is not self._histograms:
            self._histograms = queue.histograms
            self._changes.fill(0)
        if len(self._changes) < len(changes):
            more = len(changes) - len(self._changes)
            self._changes = np.concatenate((self._changes, np.zeros(more, dtype=np.int64)))
            self._table = np.concatenate((self._table, np.empty((more, self._table.shape[1]))))

        new = self._changes[slots] != changes[slots]
        if new.any():
            measure(slots[new], queue.limit_time[rows[new]], queue.histograms.masses, self.taus, self._table)
            self._changes[slots[new]] = changes[slots[new]]
        table: FloatTable = self._table[slots]
        return table
