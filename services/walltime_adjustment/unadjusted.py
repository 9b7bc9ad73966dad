"""No adjustment: requests stand as they were made."""

from shadowtime.shared.predictor import Passthrough


class Unadjusted(Passthrough):
    """Leave every request as it is."""
