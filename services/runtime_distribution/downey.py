"""Downey's model: the run times of a queue are log-uniform."""

import math
from abc import abstractmethod
from typing import ClassVar

import numpy as np

from shadowtime.services.runtime_distribution.history import (
    RememberedJob,
    RememberingSettings,
    WindowedPredictor,
    remembered,
)
from shadowtime.services.runtime_distribution.revisable import Group, PointOutlook, as_predicted
from shadowtime.shared.kernels import Floats, kernel
from shadowtime.shared.messages import JobSubmitted, RunTimePrediction

Logarithms = Floats
"""Logarithms of run times of at least one second, ascending; shape (jobs,)."""

MAX_EXPONENT = 700.0
"""Largest exponent used: its exponential is still a finite floating-point number."""


@kernel
def fit(logarithms: Floats, omitted: float) -> tuple[float, float]:
    """Return beta0 and beta1 of the line beta0 + beta1 ln t that fits the distribution function best. O(jobs).

    Parameters
    ----------
    logarithms
        Logarithms of run times, ascending. The distribution function at the i-th of n is (i - 1/2) / n.
    omitted
        Share of the jobs that is left out at each end.

    Returns
    -------
    tuple
        beta0 and beta1. Both are 0 if fewer than two different run times are left.

    >>> beta0, beta1 = fit(np.log([60.0, 120.0, 600.0, 3600.0, 7200.0]), 0.1)
    >>> round(beta0, 4), round(beta1, 4)
    (-0.4733, 0.1504)
    """
    n = len(logarithms)
    out = int(omitted * n)
    kept = n - 2 * out
    if kept < 2 or logarithms[out] == logarithms[n - 1 - out]:
        return 0.0, 0.0
    mean = 0.0
    for i in range(out, n - out):
        mean += logarithms[i]
    mean /= kept
    sxx, sxy = 0.0, 0.0
    for i in range(out, n - out):
        off = logarithms[i] - mean
        sxx += off * off
        sxy += off * (i + 0.5) / n

    beta1 = sxy / sxx
    return 0.5 - beta1 * mean, beta1  # equally many jobs are omitted at both ends: the mean of the function is 1/2


def domain(beta0: float, beta1: float, age: float) -> tuple[float, float] | None:
    """Return the age of a job and the longest run time of the model, in seconds. The total run time lies between them.

    The age is raised to the shortest run time of the model. Return None if the job has outlived the longest run time,
    if the longest run time exceeds e^`MAX_EXPONENT` seconds, or if the distribution function does not rise.
    """
    if beta1 <= 0 or (1 - beta0) / beta1 > MAX_EXPONENT:
        return None
    longest = math.exp((1 - beta0) / beta1)
    age = max(age, math.exp(-beta0 / beta1))
    return (age, longest) if 0 < age < longest else None


def conditional_median(beta0: float, beta1: float, age: float) -> float | None:
    """Return the median total run time of a job of this age, in seconds; None if the model does not apply (`domain`).

    >>> round(conditional_median(-0.2, 0.12, 600.0), 6), conditional_median(-0.2, 0.12, 1e6)
    (3635.365109, None)
    """
    reached = domain(beta0, beta1, age)
    return None if reached is None else math.sqrt(reached[0] * reached[1])


def conditional_mean(beta0: float, beta1: float, age: float) -> float | None:
    """Return the mean total run time of a job of this age, in seconds; None if the model does not apply (`domain`).

    >>> round(conditional_mean(-0.2, 0.12, 600.0), 5)
    5946.72425
    """
    reached = domain(beta0, beta1, age)
    return None if reached is None else (reached[1] - reached[0]) / math.log(reached[1] / reached[0])


class DowneyRunTimes(WindowedPredictor):
    """Predict from the log-uniform distribution of the run times of the job's queue.

    Jobs without a known queue form one queue. Memory is bounded by `history`. A prediction and an end are O(history),
    which is some tens of microseconds.
    """

    Settings = RememberingSettings
    omitted: ClassVar[float] = 0.1
    """Share of the shortest jobs, and of the longest jobs, that is left out of the fit, as in Downey's paper."""

    def __init__(self, settings: RememberingSettings) -> None:
        super().__init__(settings.history)
        self._logarithms: dict[int, Logarithms] = {}  # by queue
        self._fits: dict[int, tuple[float, float]] = {}
        """The result of `fit` by queue, computed on demand. It follows from the logarithms."""

    @abstractmethod
    def lifetime(self, beta0: float, beta1: float, age: float) -> float | None:
        """Return the predicted total run time in seconds of a job of this age, or None if the model does not apply."""

    def predict_one(self, x: JobSubmitted, elapsed: int = 0) -> RunTimePrediction | None:
        """Return the prediction for a job that has run for `elapsed` seconds.

        Return None if no job of the queue has ended, or if the model does not apply (`domain`).
        """
        queue = remembered(x).queue_number
        logarithms = self._logarithms.get(queue)
        if logarithms is None:
            return None
        if queue not in self._fits:
            self._fits[queue] = fit(logarithms, self.omitted)
        lifetime = self.lifetime(*self._fits[queue], float(elapsed))
        if lifetime is None:
            return None
        return RunTimePrediction(point=as_predicted(lifetime, x, elapsed), observations=len(logarithms))

    def outlook(self, x: JobSubmitted, elapsed: int) -> PointOutlook:
        """Return the prediction. It depends on the ended jobs of the job's queue, and on each second that it runs."""
        return super().outlook(x, elapsed)._replace(until=elapsed + 1)

    def groups_of(self, job: RememberedJob) -> tuple[Group, ...]:
        """Return the queue as a group."""
        return ((job.queue_number,),)

    def add(self, job: RememberedJob) -> None:
        """Add the newest job."""
        self._fits.pop(job.queue_number, None)
        known = self._logarithms.get(job.queue_number, np.empty(0))
        logarithm = math.log(max(job.run_time, 1))
        self._logarithms[job.queue_number] = np.insert(known, np.searchsorted(known, logarithm), logarithm)

    def remove(self, job: RememberedJob) -> None:
        """Remove the oldest job."""
        self._fits.pop(job.queue_number, None)
        known = self._logarithms[job.queue_number]
        left = np.delete(known, np.searchsorted(known, math.log(max(job.run_time, 1))))
        if len(left):
            self._logarithms[job.queue_number] = left
        else:
            del self._logarithms[job.queue_number]


class DowneyMean(DowneyRunTimes):
    """Predict the mean of the log-uniform distribution that fits the run times of the job's queue.

    >>> predictor = DowneyMean(RememberingSettings())
    >>> job = JobSubmitted(time=0, job_number=1, requested_processors=1, queue_number=2)
    >>> for run_time in (60, 120, 600, 3600, 7200):
    ...     predictor.learn_one(job, run_time)
    >>> round(predictor.predict_one(job).point), round(predictor.predict_one(job, elapsed=3600).point)
    (2692, 8921)

    References: docs/algorithms.md#downey (Downey 1997; Smith 1999, section 2.2).
    """

    name = "downey-mean"

    def lifetime(self, beta0: float, beta1: float, age: float) -> float | None:
        """Return the conditional mean, or None if the model does not apply."""
        return conditional_mean(beta0, beta1, age)


class DowneyMedian(DowneyRunTimes):
    """Predict the median of the log-uniform distribution that fits the run times of the job's queue.

    >>> predictor = DowneyMedian(RememberingSettings())
    >>> job = JobSubmitted(time=0, job_number=1, requested_processors=1, queue_number=2)
    >>> for run_time in (60, 120, 600, 3600, 7200):
    ...     predictor.learn_one(job, run_time)
    >>> round(predictor.predict_one(job).point), round(predictor.predict_one(job, elapsed=3600).point)
    (645, 8031)

    References: see `DowneyMean`.
    """

    name = "downey-median"

    def lifetime(self, beta0: float, beta1: float, age: float) -> float | None:
        """Return the conditional median, or None if the model does not apply."""
        return conditional_median(beta0, beta1, age)
