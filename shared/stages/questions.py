"""The interfaces of stages that answer questions, about the jobs in the system and a job that you could submit now."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from shadowtime.shared.messages import (
    Explanation,
    JobSubmitted,
    RunTimePrediction,
    Side,
    WaitBound,
    WaitRanges,
)
from shadowtime.shared.stages.job_start import BoundDoubt
from shadowtime.shared.stages.jobs_in_system import RunningJob


class AdvisedStart(NamedTuple):
    """The forecast start of a job: mean wait in seconds, and `WaitForecast.starts_within`; or why it is unknown."""

    mean_wait: float | None = None
    starts_within: tuple[tuple[float, int], ...] = ()
    reason: str | None = None


class RiskOfRequests(Protocol):
    """The risk of one job of being cut, as a function of the time that it requests."""

    def of(self, time: float) -> float:
        """Return the probability that the job runs longer than `time`, in seconds."""
        ...

    def needed(self, risk: float) -> int:
        """Return the shortest request with at most this risk, in seconds."""
        ...


@runtime_checkable
class PredictsRunTimes(Protocol):
    """Questions to a stage that predicts run times."""

    def run_time_of(self, job: JobSubmitted) -> RunTimePrediction | None:
        """Return the prediction for a job if it were submitted now; None if there is none."""
        ...

    def cut_risk_of(self, job: JobSubmitted) -> RiskOfRequests | None:
        """Return the risk of a job of being cut, as if it were submitted now; None if nothing is known of it."""
        ...

    def longest_request(self, job: JobSubmitted) -> int:
        """Return the longest request so far in the job's pool, partition and queue, in seconds; 0 if there is none."""
        ...


@runtime_checkable
class ForecastsStarts(Protocol):
    """Questions to a stage that schedules."""

    def starts_of(self, asked: Sequence[tuple[JobSubmitted, RunTimePrediction | None]]) -> tuple[AdvisedStart, ...]:
        """Return the start of each job if it alone were submitted now, into the pool of the first one.

        `asked` has each job with its predicted run time, None if it is unknown. All jobs share the same futures.
        """
        ...


@runtime_checkable
class ListsJobs(Protocol):
    """Questions to a stage about all jobs in the system."""

    def waiting_jobs(self, wanted: Callable[[JobSubmitted], bool]) -> Iterator[tuple[JobSubmitted, Explanation]]:
        """Yield each wanted waiting job with a brief explanation."""
        ...

    def running_jobs(self) -> Iterator[tuple[RunningJob, int | None, bool]]:
        """Yield each running job, its expected end (None if unknown), and whether that is earlier than its limit."""
        ...


@runtime_checkable
class BoundsWaits(Protocol):
    """Questions to a stage that bounds waits."""

    def bounds_at(
        self, job: JobSubmitted, quantile: float, confidence: float, side: Side = "upper"
    ) -> tuple[WaitBound, ...]:
        """Return the bounds that a job would have if it were submitted now; empty if there are none on this side."""
        ...

    def ranges_at(self, job: JobSubmitted) -> tuple[WaitRanges, ...]:
        """Return the ranges of processors into which the bounds of the job divide waits; empty if they have none."""
        ...

    def doubt_at(self, bound: WaitBound) -> BoundDoubt | None:
        """Return whether the waiting jobs contradict a bound of `bounds_at`; None if that is unknown."""
        ...
