"""A stage that bounds waits, as whoever asks it sees it."""

from typing import Protocol, runtime_checkable

from shadowtime.shared.events import JobSubmitted
from shadowtime.shared.predictions import WaitBound


@runtime_checkable
class BoundsWaits(Protocol):
    """What `ask` takes of the handler of a stage."""

    def bounds_at(self, job: JobSubmitted, quantile: float, confidence: float) -> tuple[WaitBound, ...]:
        """Return the bounds that a job would have if it were submitted now."""
        ...
