"""The interfaces of stages that answer questions about a job that you could submit now."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from shadowtime.shared.messages import JobSubmitted, RunTimePrediction, Side, WaitBound, WaitRanges


class AdvisedStart(NamedTuple):
    """The forecast start of a job: mean wait in seconds, and `WaitForecast.starts_within`; or why there is none."""

    mean_wait: float | None = None
    starts_within: tuple[tuple[float, int], ...] = ()
    reason: str | None = None


@runtime_checkable
class PredictsRunTimes(Protocol):
    """Questions to a stage that predicts run times."""

    def run_time_of(self, job: JobSubmitted) -> RunTimePrediction | None:
        """Return the prediction for a job if it were submitted now; None if there is none."""
        ...


@runtime_checkable
class ForecastsStarts(Protocol):
    """Questions to a stage that schedules."""

    def starts_of(self, asked: Sequence[tuple[JobSubmitted, RunTimePrediction | None]]) -> tuple[AdvisedStart, ...]:
        """Return the start of each job if it alone were submitted now. All jobs share the same futures."""
        ...


# The interface of a stage that bounds waits.


@runtime_checkable
class BoundsWaits(Protocol):
    """Questions to a stage that bounds waits."""

    def bounds_at(
        self, job: JobSubmitted, quantile: float, confidence: float, side: Side = "upper"
    ) -> tuple[WaitBound, ...]:
        """Return the bounds that a job would have if it were submitted now; empty if there are none on this side."""
        ...

    def ranges_at(self, job: JobSubmitted) -> tuple[WaitRanges, ...]:
        """Return the ranges of processors behind these bounds; empty if they have none."""
        ...
