"""The times that a job is planned with, each as it is and as its adjusted request has it."""

from typing import NamedTuple

from shadowtime.shared.predictions import RunTimePrediction, WalltimeAdjustment


class PlannedTimes(NamedTuple):
    """Whole seconds that a job may be planned with, each once as it is and once at most its adjusted request."""

    requested_time: int
    adjusted_time: int
    predicted_time: int
    adjusted_prediction: int


def planned_times(
    requested_time: int, prediction: RunTimePrediction | None, adjustment: WalltimeAdjustment | None
) -> PlannedTimes:
    """Return the times of a job with this request, what is predicted of it, and its adjusted request.

    A prediction counts as at least a second and at most the request, which stands for one that is not there.

    >>> adjustment = WalltimeAdjustment(adjusted_time=60, observations=12)
    >>> tuple(planned_times(100, RunTimePrediction(point=80.5, observations=2), adjustment))
    (100, 60, 80, 60)
    >>> tuple(planned_times(100, None, None))
    (100, 100, 100, 100)
    """
    adjusted_time = requested_time if adjustment is None else min(adjustment.adjusted_time, requested_time)
    predicted_time = requested_time if prediction is None else min(max(int(prediction.point), 1), requested_time)
    return PlannedTimes(requested_time, adjusted_time, predicted_time, min(predicted_time, adjusted_time))
