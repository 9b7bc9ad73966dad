"""No prediction: the request is all that is known."""

from shadowtime.shared.predictor import Passthrough


class Requested(Passthrough):
    """Predict nothing, so that every decision rests on the request, as batch systems do today."""

    name = "requested"
