"""The mean run time of a user's like jobs and one and a half standard deviations: rather too long than too short."""

import math

from shadowtime.services.runtime_distribution.owner_classes import MIN_ENDED, Key, OwnerClassSettings
from shadowtime.services.runtime_distribution.remembered_jobs import (
    RememberedJob,
    Remembering,
    as_predicted,
    remembered,
)
from shadowtime.shared.events import JobSubmitted
from shadowtime.shared.predictions import RunTimePrediction

SIGMAS = 1.5

Sums = tuple[int, int, int]
"""Number of run times, their sum and the sum of their squares: whole numbers, so that nothing is lost."""

NOTHING: Sums = (0, 0, 0)


class ClassMeanSigma(Remembering):
    """Predict the mean plus 1.5 standard deviations of the run times of like jobs.

    A class with fewer than two ended jobs gets no prediction. Memory is bounded by `history`; either step is O(1).

    Examples
    --------
    >>> predictor = ClassMeanSigma(OwnerClassSettings())
    >>> job = JobSubmitted(time=0, job_number=1, requested_processors=1, requested_time=3600, user_id=7)
    >>> for run_time in (100, 300, 200):
    ...     predictor.learn_one(job, run_time)
    >>> predictor.predict_one(job).point
    350.0

    References
    ----------
    docs/algorithms.md#classes-of-a-users-jobs (Mu'alem 2001, section 5).
    """

    name = "class-mean-sigma"
    Settings = OwnerClassSettings

    def __init__(self, settings: OwnerClassSettings) -> None:
        super().__init__(settings.history)
        self._class_of = settings.class_of
        self._sums: dict[Key, Sums] = {}

    def predict_one(self, x: JobSubmitted) -> RunTimePrediction | None:
        """Return the sum in seconds, at most the request, or None for a class of fewer than two ended jobs."""
        key = self._class_of(remembered(x))
        count, total, squares = NOTHING if key is None else self._sums.get(key, NOTHING)
        if count < MIN_ENDED:
            return None
        sigma = math.sqrt((count * squares - total * total) / (count * (count - 1)))
        return RunTimePrediction(point=as_predicted(total / count + SIGMAS * sigma, x), observations=count)

    def add(self, job: RememberedJob) -> None:
        """Take in the newest job."""
        self._count(job, 1)

    def remove(self, job: RememberedJob) -> None:
        """Let go of the oldest job."""
        self._count(job, -1)

    def _count(self, job: RememberedJob, sign: int) -> None:
        key = self._class_of(job)
        if key is None:
            return
        count, total, squares = self._sums.get(key, NOTHING)
        after = (count + sign, total + sign * job.run_time, squares + sign * job.run_time**2)
        if after[0]:
            self._sums[key] = after
        else:
            del self._sums[key]
