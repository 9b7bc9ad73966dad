"""Requests cut to a percentile of the ratios of run time to request of similar jobs."""

from typing import Any, Literal

from pydantic import Field

from shadowtime.services.walltime_adjustment.cut import cut, positions
from shadowtime.services.walltime_adjustment.keys import WINDOWS, Traits, coarser
from shadowtime.services.walltime_adjustment.settings import AdjustmentSettings
from shadowtime.services.walltime_adjustment.sliding_ratios import MAX_ENDED, SlidingRatios
from shadowtime.shared.messages import Event, JobEnded, JobSubmitted, WalltimeAdjustment
from shadowtime.shared.spec import Price
from shadowtime.shared.stages import Predictor


class PercentileSettings(AdjustmentSettings):
    """Settings of `Percentile`."""

    key: Literal["user", "project", "user+project", "user+request", "project+request", "user+project+request"] = Field(
        "user", description="traits that earlier jobs must share with the job to count; a project is the job's group ID"
    )
    window: Literal["1m", "2m", "3m", "6m", "12m", "all"] = Field(
        "1m", description="how long ago these jobs may have ended, in months of 30 days"
    )
    percentile: int = Field(
        85, ge=1, le=100, description="percentile of the ratios of run time to request of these jobs; 100: the maximum"
    )
    fallback: Literal["none", "coarser"] = Field(
        "none", description="if the key has too few jobs: no adjustment (none), or the next coarser key (coarser)"
    )

    def price(self) -> Price:
        """Return the price of the ratios of `MAX_ENDED` jobs, no two of them similar, sorted for each key in use."""
        keys = len(coarser(self.key)) if self.fallback == "coarser" else 1
        return Price((300 + 380 * keys) * MAX_ENDED, (150 + 100 * keys) * MAX_ENDED, steps=1_000 * keys * MAX_ENDED)


def ratio(run_time: int, requested_time: int) -> float:
    """Return the run time of a job as a share of its request, at most 1 (Tang 2013, equation 1).

    >>> ratio(1800, 3600), ratio(4000, 3600)
    (0.5, 1.0)
    """
    return min(run_time / requested_time, 1.0)


class Percentile(Predictor[JobSubmitted, JobEnded, WalltimeAdjustment]):
    """Cut a request to a percentile of the ratio of run time to request, over similar jobs within a window of time.

    A job without a request gets no adjustment. A job whose key has too little history gets an adjustment that changes
    nothing. O(log n) in the jobs of the window for each submission and each end; memory is that of the window.

    >>> adjuster = Percentile(PercentileSettings(percentile=80))
    >>> job = JobSubmitted(time=0, job_number=1, requested_processors=1, requested_time=1000, user_id=7)
    >>> for run_time in range(100, 1100, 100):
    ...     adjuster.learn_one(job, JobEnded(time=2000, job_number=1, run_time=run_time))
    >>> adjuster.predict_one(job.model_copy(update={"time": 3000, "requested_time": 3600})).adjusted_time
    2880

    References: docs/algorithms.md#percentile-adjustment (Tang 2013, section 4.1).
    """

    name = "percentile"
    Settings = PercentileSettings

    def __init__(self, settings: PercentileSettings) -> None:
        self._settings = settings
        self._names = coarser(settings.key) if settings.fallback == "coarser" else [settings.key]
        self.history = SlidingRatios(self._names, [WINDOWS[settings.window]])
        """Learned ratios. Schemes that differ only in their percentiles may share them."""

    def predict_one(self, x: JobSubmitted) -> WalltimeAdjustment | None:
        """Return the adjusted request in seconds, or None for a job without a request."""
        if x.requested_time is None:
            return None
        settings, most = self._settings, 0
        job = Traits.of(x, x.requested_time)
        for name in self._names:
            sample = self.history.sample(name, 0, job, x.time)
            count = len(sample)
            if count >= settings.minimum:
                (position,) = positions(count, (settings.percentile,), settings.rank)
                return WalltimeAdjustment(
                    adjusted_time=cut(x.requested_time, sample[position], settings.threshold),
                    observations=count,
                    key=name,
                    window=settings.window,
                    percentile=settings.percentile,
                )

            most = max(most, count)

        return WalltimeAdjustment(adjusted_time=x.requested_time, observations=most)

    def learn_one(self, x: JobSubmitted, y: JobEnded) -> None:
        """Record the ratio of the job's run time to its request. Ignore a job without a request."""
        if x.requested_time is not None:
            self.history.add(Traits.of(x, x.requested_time), y.time, ratio(y.own_run_time, x.requested_time))

    def observe(self, event: Event) -> None:
        """Expire ratios that are older than the window."""
        self.history.expire(event.time)

    def snapshot(self) -> Any:
        """Return the ratios within the window."""
        return self.history.snapshot()

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self.history.restore(state)
