"""Errors of wait forecasts, over the jobs that started."""

from typing import Any

from shadowtime.shared.bounds import restored, storable
from shadowtime.shared.messages import WaitForecast, WaitForecastScores


class WaitForecastErrors:
    """Forecasts of jobs with still unknown waits, and sums over the jobs with known waits.

    Memory is bounded by the waiting jobs.

    >>> errors = WaitForecastErrors()
    >>> errors.submit(1, WaitForecast(wait=90))
    >>> errors.reveal(1, wait=100)
    >>> scores = errors.scores()
    >>> scores.mean_absolute_error, scores.error_share
    (10.0, 0.1)

    References: docs/algorithms.md#errors-of-wait-forecasts (Smith 1999, section 3).
    """

    def __init__(self) -> None:
        self.waiting: dict[int, int | None] = {}
        self.forecasts = 0
        self.without = 0
        self.absolute_error = 0
        self.forecast_wait = 0
        self.wait = 0

    def submit(self, job_number: int, forecast: WaitForecast | None) -> None:
        """Keep the forecast of a job until its wait is known."""
        if forecast is not None:
            self.waiting[job_number] = forecast.wait

    def reveal(self, job_number: int, wait: int) -> None:
        """Score the forecast of a job that has waited `wait` seconds, and drop it. A second start is not scored."""
        if job_number not in self.waiting:
            return
        forecast = self.waiting.pop(job_number)
        if forecast is None:
            self.without += 1
            return
        self.forecasts += 1
        self.absolute_error += abs(forecast - wait)
        self.forecast_wait += forecast
        self.wait += wait

    def withdraw(self, job_number: int) -> None:
        """Forget the forecast of a job that leaves without starting."""
        self.waiting.pop(job_number, None)

    def scores(self) -> WaitForecastScores | None:
        """Return the means. Return None if no job had a forecast."""
        count = self.forecasts
        if not (count or self.without or self.waiting):
            return None
        return WaitForecastScores(
            forecasts=count,
            without=self.without,
            mean_absolute_error=self.absolute_error / count if count else None,
            mean_forecast=self.forecast_wait / count if count else None,
            mean_wait=self.wait / count if count else None,
            error_share=self.absolute_error / self.wait if self.wait else None,
        )

    def snapshot(self) -> dict[str, Any]:
        """Return forecasts and sums as plain values."""
        return storable(vars(self)) | {"waiting": list(self.waiting.items())}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        vars(self).update(restored(state))
        self.waiting = dict(state["waiting"])
