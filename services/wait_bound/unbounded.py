"""No bound on the wait."""

from shadowtime.services.wait_bound.bounder import Bounder
from shadowtime.shared.events import JobSubmitted
from shadowtime.shared.predictor import Passthrough


class Unbounded(Passthrough, Bounder):
    """Say nothing about the wait."""

    def bounds_at(self, x: JobSubmitted, now: int, quantile: float, confidence: float) -> tuple[()]:
        """Return no bounds."""
        return ()
