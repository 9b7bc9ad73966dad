"""No bound on the wait."""

from shadowtime.shared.predictor import Silent


class Unbounded(Silent):
    """Say nothing about the wait."""
