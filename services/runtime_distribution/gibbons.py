"""Gibbons' profiler: six templates of similar jobs, tried from closest to widest.

The first template with enough jobs predicts.
"""

from collections.abc import Iterable

import numpy as np
from pydantic import Field

from shadowtime.services.runtime_distribution.history import (
    RememberedJob,
    RememberingSettings,
    WindowedPredictor,
    as_predicted,
    remembered,
)
from shadowtime.shared.kernels import Floats
from shadowtime.shared.messages import JobSubmitted, RunTimePrediction

MIN_VARIANCE = 1.0
"""Smallest variance in square seconds. It keeps equal run times from outweighing all others."""

MIN_ENDED = 2
"""Fewest ended jobs for a mean, and for the variance that weights it."""

Key = tuple[int, ...]


class GibbonsSettings(RememberingSettings):
    """Settings of `Gibbons`."""

    degree: int = Field(1, ge=1, le=2, description="of the regressions: 1 as Smith et al. have them, 2 as Gibbons has")


class RangeSums:
    """The number of jobs in one range of processors, and the sums of processors, run times and squared run times.

    All are integers, so adding and removing a job leaves no rounding error.
    """

    __slots__ = ("count", "processors", "run_times", "squares")

    def __init__(self) -> None:
        self.count = self.processors = self.run_times = self.squares = 0

    def add(self, job: RememberedJob, sign: int) -> None:
        """Add a job, or remove it with `sign` -1."""
        self.count += sign
        self.processors += sign * job.requested_processors
        self.run_times += sign * job.run_time
        self.squares += sign * job.run_time**2

    @property
    def variance(self) -> float:
        """Return the variance of the run times, at least `MIN_VARIANCE`."""
        variance = (self.count * self.squares - self.run_times**2) / (self.count * (self.count - 1))
        return max(variance, MIN_VARIANCE)


def range_of(processors: int) -> int:
    """Return the number of the range that contains `processors`: 1, 2 to 3, 4 to 7, 8 to 15 and so on.

    >>> [range_of(value) for value in (1, 2, 3, 4, 7, 8)]
    [1, 2, 2, 3, 3, 4]
    """
    return processors.bit_length()


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
    too few jobs, a regression over all ranges is tried: mean run times on mean processors, weighted by the inverse of
    the variance. The first of these six templates with enough jobs predicts. An unknown executable or user counts as a
    value like any other. A log without executables is therefore predicted by user.

    Memory is bounded by `history`; a prediction is O(log processors), an end O(1).

    Examples
    --------
    >>> predictor = Gibbons(GibbonsSettings())
    >>> job = JobSubmitted(time=0, job_number=1, requested_processors=1, user_id=7, executable_number=3)
    >>> for processors, run_time in ((1, 100), (1, 120), (4, 60), (4, 80), (4, 70), (16, 40), (16, 50)):
    ...     predictor.learn_one(job.model_copy(update={"requested_processors": processors}), run_time)
    >>> asked = [job.model_copy(update={"requested_processors": processors}) for processors in (4, 8)]
    >>> [round(predictor.predict_one(value).point, 3) for value in asked]
    [70.0, 69.101]

    References
    ----------
    docs/algorithms.md#gibbons (Gibbons 1997; Smith 1999, section 2.2 and Table 3).
    """

    name = "gibbons"
    Settings = GibbonsSettings

    def __init__(self, settings: GibbonsSettings) -> None:
        super().__init__(settings.history)
        self._degree = settings.degree
        self._sums: dict[Key, dict[int, RangeSums]] = {}  # by key of a group (`keys_of`), and by range of processors

    def predict_one(self, x: JobSubmitted, elapsed: int = 0) -> RunTimePrediction | None:
        """Return the prediction of the first template with enough jobs, or None if no template has enough.

        The stage asks at submission, with `elapsed` 0. For a job that has run for `elapsed` seconds, only jobs that ran
        longer count; finding them is O(history).
        """
        job = remembered(x)
        if elapsed:
            among = Gibbons(GibbonsSettings(history=len(self.jobs) + 1, degree=self._degree))
            for other in self.jobs:
                if other.run_time > elapsed:
                    among.add(other)
            sums = among._sums
        else:
            sums = self._sums

        for key in keys_of(job):
            ranges = sums.get(key, {})
            own = ranges.get(range_of(job.requested_processors))
            if own is not None and own.count >= MIN_ENDED:
                return RunTimePrediction(
                    point=as_predicted(own.run_times / own.count, x, elapsed), observations=own.count
                )

            known = [
                statistics for _, statistics in sorted(ranges.items()) if statistics.count >= MIN_ENDED
            ]  # sorted: the rounding of the fit must not depend on the order of insertion
            if len(known) > self._degree:
                fit = weighted_fit(*_points(known), self._degree)
                fitted = float(np.polyval(fit, job.requested_processors))
                return RunTimePrediction(
                    point=as_predicted(fitted, x, elapsed), observations=sum(statistics.count for statistics in known)
                )

        return None

    def add(self, job: RememberedJob) -> None:
        """Add the newest job."""
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
