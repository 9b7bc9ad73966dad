"""Simple predictors: none, the user's last two jobs, the queue's maximum, and classes of a user's jobs."""

import math
from array import array
from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from shadowtime.services.runtime_distribution.history import (
    MAX_OWNERS,
    UNKNOWN,
    RememberedJob,
    RememberingSettings,
    WindowedPredictor,
    lru_put,
    remembered,
)
from shadowtime.services.runtime_distribution.revisable import (
    Group,
    PointOutlook,
    Revisable,
    RunTimeSettings,
    as_predicted,
)
from shadowtime.shared.messages import JobSubmitted, RunTimePrediction
from shadowtime.shared.spec import Price
from shadowtime.shared.stages import Passthrough, Predictor


class Requested(Passthrough):
    """Predict nothing. Every decision then uses the request, as batch systems do today."""

    name = "requested"


class OwnersSettings(RunTimeSettings):
    """Settings of predictors that store a few numbers of each user or queue. The only key is `predict`."""

    def price(self) -> Price:
        """Return the price of `MAX_OWNERS` users or queues."""
        return Price(300 * MAX_OWNERS, 300 * MAX_OWNERS, steps=5_000_000)


# The mean of the user's last two run times.


class LastTwo(Revisable, Predictor[JobSubmitted, int, RunTimePrediction]):
    """Predict the mean run time of the two jobs of the same user that ended last.

    A user with fewer than two ended jobs gets no prediction. Memory is two numbers for each of at most `MAX_OWNERS`
    users.

    >>> predictor = LastTwo(OwnersSettings())
    >>> job = JobSubmitted(time=0, job_number=1, requested_processors=1, requested_time=3600, user_id=7)
    >>> predictor.learn_one(job, 100)
    >>> predictor.learn_one(job, 301)
    >>> predictor.predict_one(job).point
    200.5

    References: docs/algorithms.md#last-two (Tsafrir 2007, section 4).
    """

    name = "last-two"
    Settings = OwnersSettings

    def __init__(self, settings: OwnersSettings) -> None:
        del settings
        self._last: dict[int, tuple[int, ...]] = {}

    def predict_one(self, x: JobSubmitted, elapsed: int = 0) -> RunTimePrediction | None:
        """Return the mean in seconds, at most the request, or None for a user with fewer than two ended jobs."""
        last = self._last.get(x.user_id, ()) if x.user_id is not None else ()
        if len(last) < 2:
            return None
        return RunTimePrediction(point=as_predicted(sum(last) / 2, x, elapsed), observations=2)

    def changed_by(self, x: JobSubmitted) -> tuple[Group, ...]:
        """Return the user as a group."""
        return () if x.user_id is None else ((x.user_id,),)

    def learn_one(self, x: JobSubmitted, y: int) -> None:
        """Remember the run time `y` in seconds."""
        if x.user_id is not None:
            lru_put(self._last, x.user_id, (*self._last.get(x.user_id, ()), y)[-2:])

    def snapshot(self) -> Any:
        """Return the last run times of every user."""
        return [[user, *last] for user, last in self._last.items()]

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self._last = {user: tuple(last) for user, *last in state}


# The longest run time so far in the job's queue.


class QueueMaximum(Revisable, Predictor[JobSubmitted, int, RunTimePrediction]):
    """Predict the longest run time of all ended jobs of the same queue: a substitute for requests that a log lacks.

    Jobs without a known queue form one queue. Memory is two numbers for each of at most `MAX_OWNERS` queues.

    >>> predictor = QueueMaximum(OwnersSettings())
    >>> job = JobSubmitted(time=0, job_number=1, requested_processors=1, queue_number=2)
    >>> for run_time in (100, 3000, 200):
    ...     predictor.learn_one(job, run_time)
    >>> predictor.predict_one(job).point
    3000.0

    References: docs/algorithms.md#queue-maximum (Smith 1999, section 3, where the maximum is that of the whole log).
    """

    name = "queue-maximum"
    Settings = OwnersSettings

    def __init__(self, settings: OwnersSettings) -> None:
        del settings
        self._longest: dict[int | None, tuple[int, int]] = {}  # by queue: run time and number of ended jobs

    def predict_one(self, x: JobSubmitted, elapsed: int = 0) -> RunTimePrediction | None:
        """Return the maximum in seconds, at most the request, or None before a job of the queue has ended."""
        if x.queue_number not in self._longest:
            return None
        longest, ended = self._longest[x.queue_number]
        return RunTimePrediction(point=as_predicted(longest, x, elapsed), observations=ended)

    def changed_by(self, x: JobSubmitted) -> tuple[Group, ...]:
        """Return the queue as a group."""
        return ((),) if x.queue_number is None else ((x.queue_number,),)

    def learn_one(self, x: JobSubmitted, y: int) -> None:
        """Record the run time `y` in seconds."""
        longest, ended = self._longest.get(x.queue_number, (0, 0))
        lru_put(self._longest, x.queue_number, (max(longest, y), ended + 1))

    def snapshot(self) -> Any:
        """Return the maximum and the number of jobs of every queue."""
        return [[queue, *known] for queue, known in self._longest.items()]

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self._longest = {queue: (longest, ended) for queue, longest, ended in state}


# Classes of jobs of the same user.

Key = tuple[int, ...]

MIN_ENDED = 2
"""Fewest ended jobs for a prediction from a class."""


class OwnerClassSettings(RememberingSettings):
    """Settings of predictors from classes of a user's jobs."""

    key: Literal["user", "user+processors", "user+executable", "user+executable+processors"] = Field(
        "user+processors", description="what the jobs of a class have in common"
    )

    def class_of(self, job: RememberedJob) -> Key | None:
        """Return the class of a job, or None if one of the fields of `key` is unknown.

        >>> job = RememberedJob(60, -1, 4, 7, -1, -1, -1, -1)
        >>> OwnerClassSettings().class_of(job), OwnerClassSettings(key="user+executable").class_of(job)
        ((7, 4), None)
        """
        values = {"user": job.user_id, "executable": job.executable_number, "processors": job.requested_processors}
        key = tuple(values[name] for name in self.key.split("+"))
        return None if UNKNOWN in key else key


class OwnerClassPredictor(WindowedPredictor):
    """A predictor from the job's class. A class with fewer than two ended jobs gets no prediction."""

    Settings = OwnerClassSettings

    def __init__(self, settings: OwnerClassSettings) -> None:
        super().__init__(settings.history)
        self._class_of = settings.class_of

    def groups_of(self, job: RememberedJob) -> tuple[Group, ...]:
        """Return the class of the job."""
        key = self._class_of(job)
        return () if key is None else (key,)


# The mean run time of a class of jobs plus 1.5 standard deviations: too long is preferred to too short.

SIGMAS = 1.5

Sums = tuple[int, int, int]
"""Number of run times, their sum and the sum of their squares. Integers have no rounding error."""

NOTHING: Sums = (0, 0, 0)


class ClassMeanSigma(OwnerClassPredictor):
    """Predict the mean plus 1.5 standard deviations of the run times of the job's class.

    Memory is bounded by `history`; a prediction and an end are O(1).

    >>> predictor = ClassMeanSigma(OwnerClassSettings())
    >>> job = JobSubmitted(time=0, job_number=1, requested_processors=1, requested_time=3600, user_id=7)
    >>> for run_time in (100, 300, 200):
    ...     predictor.learn_one(job, run_time)
    >>> predictor.predict_one(job).point
    350.0

    References: docs/algorithms.md#classes-of-a-users-jobs (Mu'alem 2001, section 5).
    """

    name = "class-mean-sigma"

    def __init__(self, settings: OwnerClassSettings) -> None:
        super().__init__(settings)
        self._sums: dict[Key, Sums] = {}

    def predict_one(self, x: JobSubmitted, elapsed: int = 0) -> RunTimePrediction | None:
        """Return the prediction, at most the request, or None for a class with fewer than two ended jobs."""
        key = self._class_of(remembered(x))
        count, total, squares = NOTHING if key is None else self._sums.get(key, NOTHING)
        if count < MIN_ENDED:
            return None
        sigma = math.sqrt((count * squares - total * total) / (count * (count - 1)))
        return RunTimePrediction(point=as_predicted(total / count + SIGMAS * sigma, x, elapsed), observations=count)

    def add(self, job: RememberedJob) -> None:
        """Add the newest job."""
        self._count(job, 1)

    def remove(self, job: RememberedJob) -> None:
        """Remove the oldest job."""
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


# The 90th percentile of the run times of a class of jobs.

SHARE = 0.9


class ClassP90(OwnerClassPredictor):
    """Predict the 90th percentile of the run times of the job's class by nearest rank, so it is one of these run times.

    Memory is bounded by `history`. A prediction is O(1), an end O(log history) comparisons and a move of O(history)
    bytes.

    >>> predictor = ClassP90(OwnerClassSettings())
    >>> job = JobSubmitted(time=0, job_number=1, requested_processors=1, requested_time=3600, user_id=7)
    >>> for run_time in range(100, 1100, 100):
    ...     predictor.learn_one(job, run_time)
    >>> predictor.predict_one(job).point
    900.0

    References: docs/algorithms.md#classes-of-a-users-jobs (Nissimov 2007, section 1).
    """

    name = "class-p90"

    def __init__(self, settings: OwnerClassSettings) -> None:
        super().__init__(settings)
        self._run_times: dict[Key, array[int]] = {}

    def predict_one(self, x: JobSubmitted, elapsed: int = 0) -> RunTimePrediction | None:
        """Return the percentile in seconds, at most the request, or None for a class with fewer than two ended jobs.

        For a job that has run for `elapsed` seconds, only jobs that ran longer count.
        """
        run_times, shorter = self._longer(x, elapsed)
        count = len(run_times) - shorter
        if count < MIN_ENDED:
            return None
        percentile = run_times[shorter + math.ceil(SHARE * count) - 1]
        return RunTimePrediction(point=as_predicted(percentile, x, elapsed), observations=count)

    def outlook(self, x: JobSubmitted, elapsed: int) -> PointOutlook:
        """Return the prediction. It holds until the elapsed time reaches the next longer run time of the class."""
        run_times, shorter = self._longer(x, elapsed)
        until = max(run_times[shorter], elapsed + 1) if shorter < len(run_times) else None
        return super().outlook(x, elapsed)._replace(until=until)

    def _longer(self, x: JobSubmitted, elapsed: int) -> tuple[Sequence[int], int]:
        """Return the run times of the job's class, ascending, and how many of them are not longer than `elapsed`."""
        key = self._class_of(remembered(x))
        run_times: Sequence[int] = () if key is None else self._run_times.get(key, ())
        return run_times, bisect_right(run_times, elapsed) if elapsed else 0

    def add(self, job: RememberedJob) -> None:
        """Add the newest job."""
        key = self._class_of(job)
        if key is not None:
            insort(self._run_times.setdefault(key, array("q")), job.run_time)

    def remove(self, job: RememberedJob) -> None:
        """Remove the oldest job."""
        key = self._class_of(job)
        if key is not None:
            run_times = self._run_times[key]
            del run_times[bisect_left(run_times, job.run_time)]
            if not run_times:
                del self._run_times[key]
