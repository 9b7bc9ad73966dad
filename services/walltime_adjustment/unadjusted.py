"""No adjustment: requests stand as they were made."""

from shadowtime.shared.predictor import Silent


class Unadjusted(Silent):
    """Leave every request as it is."""
