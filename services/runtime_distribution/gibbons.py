"""Gibbons' profiler: six templates of similar jobs, tried from closest to widest.

The first template with enough jobs predicts.
"""

import math
from collections.abc import Iterable

import numpy as np
from pydantic import Field

from shadowtime.services.runtime_distribution.history import (
    RememberedJob,
    RememberingSettings,
    WindowedPredictor,
    remembered,
)
from shadowtime.services.runtime_distribution.revisable import Group, PointOutlook, as_predicted
from shadowtime.shared.bounds import MAX_PROCESSORS
from shadowtime.shared.kernels import Floats, IntegerCube, Integers, IntegerTable, kernel
from shadowtime.shared.messages import JobSubmitted, RunTimePrediction

MIN_VARIANCE = 1.0
"""Smallest variance in square seconds. It keeps equal run times from outweighing all others."""

NEVER = 1 << 40
"""Seconds beyond any run time."""

MIN_ENDED = 2
"""Fewest ended jobs for a mean, and for the variance that weights it."""

Key = tuple[int, ...]


class GibbonsSettings(RememberingSettings):
    """Settings of `Gibbons`."""

    degree: int = Field(1, ge=1, le=2, description="degree of regressions: 1 as in Smith 1999, 2 as in Gibbons 1997")


class RangeSums:
    """The number of jobs in one range of processors, and the sums of processors, run times and squared run times.

    All are integers, so adding and removing a job leaves no rounding error.
    """

    __slots__ = ("count", "processors", "run_times", "squares")

    def __init__(self, count: int = 0, processors: int = 0, run_times: int = 0, squares: int = 0) -> None:
        self.count, self.processors, self.run_times, self.squares = count, processors, run_times, squares

    def add(self, job: RememberedJob, sign: int) -> None:
        """Add a job, or remove it with `sign` -1."""
        self.count += sign
        self.processors += sign * job.requested_processors
        self.run_times += sign * job.run_time
        self.squares += sign * job.run_time**2

    @property
    def variance(self) -> float:
        """Return the variance of the run times of two or more jobs, at least `MIN_VARIANCE`."""
        variance = (self.count * self.squares - self.run_times**2) / (self.count * (self.count - 1))
        return max(variance, MIN_VARIANCE)


def range_of(processors: int) -> int:
    """Return the number of the range that contains `processors`: 1, 2 to 3, 4 to 7, 8 to 15 and so on.

    >>> [range_of(value) for value in (1, 2, 3, 4, 7, 8)]
    [1, 2, 2, 3, 3, 4]
    """
    return processors.bit_length()


RANGES = MAX_PROCESSORS.bit_length() + 1
"""Number of ranges of processors."""


@kernel
def longer_than(
    elapsed: int, user: int, executable: int, jobs: IntegerTable, count: int
) -> tuple[IntegerCube, Integers]:
    """Return the sums of the jobs that ran longer than `elapsed` seconds, by group and range of processors. O(count).

    `jobs` has run time, processors, user and executable of the first `count` jobs, shape (4, at least `count`). Run
    times are limited so that sums of squares do not overflow: with 20,000 jobs, to half a year.

    Returns
    -------
    sums
        The fields of `RangeSums` for the three groups of `keys_of`, shape (3, RANGES, 4).
    least
        Shortest of these run times in each group, `NEVER` if there is none; shape (3,).

    >>> jobs = np.array([[60, 90, 700], [1, 4, 4], [7, 7, 8], [3, 3, 3]])
    >>> sums, least = longer_than(60, 7, 3, jobs, 3)
    >>> sums[:, 3].tolist(), least.tolist()
    ([[1, 4, 90, 8100], [2, 8, 790, 498100], [2, 8, 790, 498100]], [90, 90, 90])
    """
    sums, least = np.zeros((3, RANGES, 4), np.int64), np.full(3, NEVER)
    largest = int(math.sqrt(2.0**62 / max(count, 1)))
    for job in range(count):
        if jobs[0, job] <= elapsed:
            continue
        run_time, number, left = min(jobs[0, job], largest), 0, jobs[1, job]
        while left > 0:
            number += 1
            left >>= 1
        closest = 2 if jobs[3, job] != executable else 1 if jobs[2, job] != user else 0
        for group in range(closest, 3):
            row = sums[group, number]
            row[0] += 1
            row[1] += jobs[1, job]
            row[2] += run_time
            row[3] += run_time * run_time
            least[group] = min(least[group], jobs[0, job])

    return sums, least


def weighted_fit(x: Floats, y: Floats, weights: Floats, degree: int) -> Floats:
    """Return the coefficients of the weighted least-squares polynomial of y in x, highest power first.

    The arguments have shape (n,), n > degree; the result has shape (degree + 1,).

    >>> weighted_fit(np.array([1.0, 2.0, 3.0]), np.array([11.0, 21.0, 90.0]), np.array([1.0, 1.0, 1e-12]), 1).round(3)
    array([10.,  1.])
    """
    roots = np.sqrt(weights)
    fit = np.linalg.lstsq(np.vander(x, degree + 1) * roots[:, None], y * roots, rcond=None)[0]
    return fit.astype(np.float64)


class Gibbons(WindowedPredictor):
    """Predict from jobs of the same user and executable, else of the same executable, else from all jobs.

    In each of these three groups, the mean run time of the same range of processors is tried first. If the range has
    too few jobs, a regression over all ranges is tried. It fits mean run times to mean processors, weighted by the
    inverse of the variance. The first of these six templates with enough jobs predicts. An unknown executable or user
    counts as a value like any other. A log without executables is therefore predicted by user.

    Memory is bounded by `history`; a prediction is O(log processors), an end O(1).

    >>> predictor = Gibbons(GibbonsSettings())
    >>> job = JobSubmitted(time=0, job_number=1, requested_processors=1, user_id=7, executable_number=3)
    >>> for processors, run_time in ((1, 100), (1, 120), (4, 60), (4, 80), (4, 70), (16, 40), (16, 50)):
    ...     predictor.learn_one(job.model_copy(update={"requested_processors": processors}), run_time)
    >>> asked = [job.model_copy(update={"requested_processors": processors}) for processors in (4, 8)]
    >>> [round(predictor.predict_one(value).point, 3) for value in asked]
    [70.0, 69.101]

    References: docs/algorithms.md#gibbons (Gibbons 1997; Smith 1999, section 2.2 and Table 3).
    """

    name = "gibbons"
    Settings = GibbonsSettings

    def __init__(self, settings: GibbonsSettings) -> None:
        super().__init__(settings.history)
        self._degree = settings.degree
        self._sums: dict[Key, dict[int, RangeSums]] = {}  # by key of a group (`keys_of`), and by range of processors
        self._table: IntegerTable = np.zeros((4, 64), dtype=np.int64)
        """The jobs of the window for `longer_than`: the newest replaces the oldest."""
        self._next = 0

    def predict_one(self, x: JobSubmitted, elapsed: int = 0) -> RunTimePrediction | None:
        """Return the prediction of the first template with enough jobs, or None if no template has enough.

        For a job that has run for `elapsed` seconds, only jobs that ran longer count; finding them is O(history).
        """
        return self.outlook(x, elapsed).prediction

    def outlook(self, x: JobSubmitted, elapsed: int) -> PointOutlook:
        """Return the prediction. It depends on the groups up to the group that predicts.

        Once a job has run, the prediction changes when the elapsed time reaches the next run time of these groups.
        """
        job = remembered(x)
        keys = keys_of(job)
        ranges_of, next_times = self._ranges(job, keys, elapsed)
        for depth, ranges in enumerate(ranges_of, 1):
            estimated = self._estimate(ranges, job.requested_processors)
            if estimated is not None:
                point, observations = as_predicted(estimated[0], x, elapsed), estimated[1]
                prediction = RunTimePrediction(point=point, observations=observations)
                return PointOutlook.of(prediction, keys[:depth], min(next_times[:depth]))
        return PointOutlook.of(None, keys, min(next_times))

    def _ranges(
        self, job: RememberedJob, keys: tuple[Key, ...], elapsed: int
    ) -> tuple[list[dict[int, RangeSums]], list[int]]:
        """Return the ranges of each group, from the jobs that ran longer than `elapsed`, and their least run time."""
        if not elapsed:  # the job has not run yet, so ended jobs of 0 s count, too
            return [self._sums.get(key, {}) for key in keys], [1] * len(keys)
        sums, least = longer_than(elapsed, job.user_id, job.executable_number, self._table, len(self.jobs))
        ranges_of = [{number: RangeSums(*row) for number, row in enumerate(group) if row[0]} for group in sums.tolist()]
        return ranges_of, least.tolist()

    def _estimate(self, ranges: dict[int, RangeSums], processors: int) -> tuple[float, int] | None:
        """Return an estimate in seconds and its number of jobs (mean of the range, else regression), or None."""
        own = ranges.get(range_of(processors))
        if own is not None and own.count >= MIN_ENDED:
            return own.run_times / own.count, own.count
        known = [
            statistics for _, statistics in sorted(ranges.items()) if statistics.count >= MIN_ENDED
        ]  # sorted: the rounding of the fit must not depend on the order of insertion
        if len(known) <= self._degree:
            return None
        fit = weighted_fit(*_points(known), self._degree)
        return float(np.polyval(fit, processors)), sum(statistics.count for statistics in known)

    def groups_of(self, job: RememberedJob) -> tuple[Group, ...]:
        """Return the keys of the job's three groups."""
        return keys_of(job)

    def add(self, job: RememberedJob) -> None:
        """Add the newest job."""
        slot = self._next = 0 if len(self.jobs) == 1 else self._next % self._history
        if slot == self._table.shape[1]:
            self._table = np.concatenate((self._table, np.zeros_like(self._table)), axis=1)
        self._table[:, slot] = job.run_time, job.requested_processors, job.user_id, job.executable_number
        self._next += 1
        for key in keys_of(job):
            self._sums.setdefault(key, {}).setdefault(range_of(job.requested_processors), RangeSums()).add(job, 1)

    def remove(self, job: RememberedJob) -> None:
        """Remove the oldest job."""
        number = range_of(job.requested_processors)
        for key in keys_of(job):
            ranges = self._sums[key]
            ranges[number].add(job, -1)
            if not ranges[number].count:
                del ranges[number]
            if not ranges:
                del self._sums[key]


def keys_of(job: RememberedJob) -> tuple[Key, ...]:
    """Return the keys of a job's groups: by user and executable, by executable, and the empty key of all jobs."""
    return (job.user_id, job.executable_number), (job.executable_number,), ()


def _points(known: Iterable[RangeSums]) -> tuple[Floats, Floats, Floats]:
    """Return mean processors, mean run time and weight of each range, shapes (ranges,)."""
    rows = [
        (statistics.processors / statistics.count, statistics.run_times / statistics.count, 1 / statistics.variance)
        for statistics in known
    ]
    x, y, weights = np.array(rows).T
    return x, y, weights
