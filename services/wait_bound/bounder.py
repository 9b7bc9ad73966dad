"""The seam of bounds on waits."""

from typing import NamedTuple, Protocol

from shadowtime.shared.messages import ChangePoint, Coverage, JobSubmitted, RunTimePrediction, WaitBound
from shadowtime.shared.stages import Passthrough, Predictor


class Updates(NamedTuple):
    """News that a revealed wait has brought."""

    coverage: tuple[Coverage, ...] = ()
    change_points: tuple[ChangePoint, ...] = ()


class Bounder(Predictor[JobSubmitted, int, tuple[WaitBound, ...]], Protocol):
    """A predictor that bounds waits, and is asked about jobs that have not been submitted."""

    updates: Updates = Updates()
    """Changes that the last learned wait caused."""

    def foretold(self, x: JobSubmitted, run_time: RunTimePrediction | None) -> None:
        """Take in what is predicted of the run time of the job that is asked about next; most need not."""
        return  # not abstract

    def bounds_at(self, x: JobSubmitted, now: int, quantile: float, confidence: float) -> tuple[WaitBound, ...]:
        """Return the bounds that a job would have now, in seconds, at any quantile and confidence; pure."""
        ...


# No bound on the wait.


class Unbounded(Passthrough, Bounder):
    """Say nothing about the wait."""

    def bounds_at(self, x: JobSubmitted, now: int, quantile: float, confidence: float) -> tuple[()]:
        """Return no bounds."""
        return ()
