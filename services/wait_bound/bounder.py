"""The interface of bounds on waits."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from shadowtime.shared.messages import (
    ChangePoint,
    Coverage,
    JobSubmitted,
    RunTimePrediction,
    RunTimeRevision,
    Side,
    WaitBound,
    WaitRanges,
)
from shadowtime.shared.stages import Passthrough, Predictor


class Updates(NamedTuple):
    """Messages to publish after a wait was learned, or after a submission was observed (`wait_ranges`)."""

    coverage: tuple[Coverage, ...] = ()
    change_points: tuple[ChangePoint, ...] = ()
    wait_ranges: tuple[WaitRanges, ...] | None = None


class IssuedBounds(NamedTuple):
    """The bounds of the waiting jobs, in seconds by job number, and how well earlier bounds held.

    All are upper bounds of one grouping, at one quantile. `covered` is the share of the last `revealed` known waits
    within their bounds.
    """

    quantile: float
    bounds: Mapping[int, int]
    revealed: int
    covered: float


class Bounder(Predictor[JobSubmitted, int, tuple[WaitBound, ...]], Protocol):
    """A predictor of bounds on waits, also for jobs that have not been submitted."""

    updates: Updates = Updates()
    """Messages to publish after the last learned wait or observed submission."""

    def note_prediction(self, x: JobSubmitted, run_time: RunTimePrediction | None) -> None:
        """Record the predicted run time of the job whose bounds are asked for next. Most bounders ignore it."""
        return  # not abstract

    def note_revisions(self, revisions: Sequence[RunTimeRevision]) -> None:
        """Record run times of jobs in the system that were predicted anew. Most bounders ignore them."""
        return  # not abstract

    def bounds_at(self, x: JobSubmitted, now: int, quantile: float, confidence: float) -> tuple[WaitBound, ...]:
        """Return the bounds that a job would have now, in seconds, at any quantile and confidence; pure."""
        ...

    def sided_bounds_at(
        self, x: JobSubmitted, now: int, quantile: float, confidence: float, side: Side
    ) -> tuple[WaitBound, ...]:
        """Return the bounds of a side that a job would have now; empty if the bounder has none on this side; pure."""
        return self.bounds_at(x, now, quantile, confidence) if side == "upper" else ()

    def ranges_at(self, x: JobSubmitted) -> tuple[WaitRanges, ...]:
        """Return the ranges of processors behind the bounds that a job would have; most bounders have none; pure."""
        return ()

    def issued(self, grouping: str, queue: int | None) -> IssuedBounds | None:
        """Return the upper bounds that waiting jobs got in a grouping of a queue; None if they are not kept; pure."""
        return None


# No bound on the wait.


class Unbounded(Passthrough, Bounder):
    """Give no bound on the wait."""

    def bounds_at(self, x: JobSubmitted, now: int, quantile: float, confidence: float) -> tuple[()]:
        """Return no bounds."""
        return ()
