"""Stages that say something of a job that one might submit now, as whoever asks them sees them."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from shadowtime.shared.messages import JobSubmitted, RunTimePrediction, WaitBound


class AdvisedStart(NamedTuple):
    """When a job would start: mean wait in seconds, and as `WaitForecast.starts_within`; or why there is no telling."""

    mean_wait: float | None = None
    starts_within: tuple[tuple[float, int], ...] = ()
    reason: str | None = None


@runtime_checkable
class PredictsRunTimes(Protocol):
    """Questions to a stage that predicts run times."""

    def run_time_of(self, job: JobSubmitted) -> RunTimePrediction | None:
        """Return what would be predicted of a job if it were submitted now; None for nothing."""
        ...


@runtime_checkable
class ForecastsStarts(Protocol):
    """Questions to a stage that schedules."""

    def starts_of(self, asked: Sequence[tuple[JobSubmitted, RunTimePrediction | None]]) -> tuple[AdvisedStart, ...]:
        """Return when each of some jobs would start if it alone were submitted now, all from the same futures."""
        ...


# A stage that bounds waits, as whoever asks it sees it.


@runtime_checkable
class BoundsWaits(Protocol):
    """Questions of `ask` to the handler of a stage."""

    def bounds_at(self, job: JobSubmitted, quantile: float, confidence: float) -> tuple[WaitBound, ...]:
        """Return the bounds that a job would have if it were submitted now."""
        ...
