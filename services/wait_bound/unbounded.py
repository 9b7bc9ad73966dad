"""No bound on the wait."""

from shadowtime.shared.predictor import Passthrough


class Unbounded(Passthrough):
    """Say nothing about the wait."""
