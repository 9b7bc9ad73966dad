"""The 90th percentile of the run times of a user's like jobs."""

import math

from sortedcontainers import SortedList

from shadowtime.services.runtime_distribution.owner_classes import MIN_ENDED, Key, OwnerClassSettings
from shadowtime.services.runtime_distribution.remembered_jobs import (
    RememberedJob,
    Remembering,
    as_predicted,
    remembered,
)
from shadowtime.shared.events import JobSubmitted
from shadowtime.shared.predictions import RunTimePrediction

SHARE = 0.9


class ClassP90(Remembering):
    """Predict the run time that nine tenths of the like jobs did not exceed: nearest rank, so it is one that occurred.

    A class with fewer than two ended jobs gets no prediction. Memory is bounded by `history`; either step is O(log
    history).

    Examples
    --------
    >>> predictor = ClassP90(OwnerClassSettings())
    >>> job = JobSubmitted(time=0, job_number=1, requested_processors=1, requested_time=3600, user_id=7)
    >>> for run_time in range(100, 1100, 100):
    ...     predictor.learn_one(job, run_time)
    >>> predictor.predict_one(job).point
    900.0

    References
    ----------
    docs/algorithms.md#classes-of-a-users-jobs (Nissimov 2007, section 1).
    """

    name = "class-p90"
    Settings = OwnerClassSettings

    def __init__(self, settings: OwnerClassSettings) -> None:
        super().__init__(settings.history)
        self._class_of = settings.class_of
        self._run_times: dict[Key, SortedList] = {}

    def predict_one(self, x: JobSubmitted) -> RunTimePrediction | None:
        """Return the percentile in seconds, at most the request, or None for a class of fewer than two ended jobs."""
        key = self._class_of(remembered(x))
        run_times = () if key is None else self._run_times.get(key, ())
        if len(run_times) < MIN_ENDED:
            return None
        percentile = run_times[math.ceil(SHARE * len(run_times)) - 1]
        return RunTimePrediction(point=as_predicted(percentile, x), observations=len(run_times))

    def add(self, job: RememberedJob) -> None:
        """Take in the newest job."""
        key = self._class_of(job)
        if key is not None:
            self._run_times.setdefault(key, SortedList()).add(job.run_time)

    def remove(self, job: RememberedJob) -> None:
        """Let go of the oldest job."""
        key = self._class_of(job)
        if key is not None:
            self._run_times[key].remove(job.run_time)
            if not self._run_times[key]:
                del self._run_times[key]
