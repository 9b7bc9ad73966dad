"""The mean of the user's last two run times."""

from typing import Any

from shadowtime.services.runtime_distribution.renewed import renew
from shadowtime.shared.events import JobSubmitted
from shadowtime.shared.predictions import RunTimePrediction
from shadowtime.shared.predictor import Predictor
from shadowtime.shared.spec import SpecSettings


class LastTwo(Predictor[JobSubmitted, int, RunTimePrediction]):
    """Predict the mean run time of the two jobs of the same user that ended last.

    A user with fewer than two ended jobs gets no prediction. Memory is two numbers a user, of the last `MAX_OWNERS`.

    Examples
    --------
    >>> predictor = LastTwo(SpecSettings())
    >>> job = JobSubmitted(time=0, job_number=1, requested_processors=1, requested_time=3600, user_id=7)
    >>> predictor.learn_one(job, 100)
    >>> predictor.learn_one(job, 301)
    >>> predictor.predict_one(job).point
    200.5

    References
    ----------
    docs/algorithms.md#last-two (Tsafrir 2007, section 4).
    """

    name = "last-two"
    Settings = SpecSettings

    def __init__(self, settings: SpecSettings) -> None:
        del settings
        self._last: dict[int, tuple[int, ...]] = {}

    def predict_one(self, x: JobSubmitted) -> RunTimePrediction | None:
        """Return the mean in seconds, at most the request, or None for a user with fewer than two ended jobs."""
        last = self._last.get(x.user_id, ()) if x.user_id is not None else ()
        if len(last) < 2:
            return None
        mean = max(sum(last) / 2, 1.0)
        return RunTimePrediction(
            point=mean if x.requested_time is None else min(mean, x.requested_time), observations=2
        )

    def learn_one(self, x: JobSubmitted, y: int) -> None:
        """Remember the run time `y` in seconds."""
        if x.user_id is not None:
            renew(self._last, x.user_id, (*self._last.get(x.user_id, ()), y)[-2:])

    def snapshot(self) -> Any:
        """Return the last run times of every user."""
        return [[user, *last] for user, last in self._last.items()]

    def restore(self, state: Any) -> None:
        """Take on what `snapshot` returned."""
        self._last = {user: tuple(last) for user, *last in state}
