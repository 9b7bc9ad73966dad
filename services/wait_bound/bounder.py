"""The seam of bounds on waits."""

from typing import NamedTuple, Protocol

from shadowtime.shared.events import JobSubmitted
from shadowtime.shared.predictions import ChangePoint, Coverage, RunTimePrediction, WaitBound
from shadowtime.shared.predictor import Predictor


class Updates(NamedTuple):
    """What a revealed wait has brought to light."""

    coverage: tuple[Coverage, ...] = ()
    change_points: tuple[ChangePoint, ...] = ()


class Bounder(Predictor[JobSubmitted, int, tuple[WaitBound, ...]], Protocol):
    """A predictor that bounds waits, and is asked about jobs that have not been submitted."""

    updates: Updates = Updates()
    """What the last learned wait has brought to light."""

    def foretold(self, x: JobSubmitted, run_time: RunTimePrediction | None) -> None:
        """Take in what is predicted of the run time of the job that is asked about next; most need not."""
        return  # not abstract

    def bounds_at(self, x: JobSubmitted, now: int, quantile: float, confidence: float) -> tuple[WaitBound, ...]:
        """Return the bounds that a job would have now, in seconds, at any quantile and confidence; pure."""
        ...
