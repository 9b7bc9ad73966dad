"""Predictions that can be made anew, and what can change them: learned jobs, and the time that a job has run."""

import math
from abc import ABC, abstractmethod
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.distributions import expected_run_time
from shadowtime.shared.messages import JobSubmitted, RunTimePrediction
from shadowtime.shared.spec import SpecSettings
from shadowtime.shared.stages import Predictor

Group = tuple[int, ...]
"""Key of a group of ended jobs."""


class RunTimeSettings(SpecSettings):
    """Settings of all run-time predictors that learn."""

    predict: Literal["once", "anew"] = Field(
        "once",
        description="`once`: predict a run time at the submission. `anew`: also predict those of all waiting and "
        "running jobs before each submission and each pass, from the ended jobs and the time that a job has run.",
        exclude_if=lambda value: value == "once",  # so the SPECs of earlier runs do not change
    )


def as_predicted(run_time: float, job: JobSubmitted, elapsed: int = 0) -> float:
    """Return a run time limited to the possible values of a job that has run for `elapsed`; all times in seconds.

    It is at most the request, but at least `elapsed` + 1 (docs/algorithms.md#limits-of-a-prediction).

    >>> job = JobSubmitted(time=0, job_number=1, requested_processors=1, requested_time=60)
    >>> as_predicted(0.5, job), as_predicted(90.0, job), as_predicted(50.0, job, elapsed=70)
    (1.0, 60.0, 71.0)
    """
    if job.requested_time is not None:
        run_time = min(run_time, float(job.requested_time))
    return min(max(run_time, elapsed + 1.0), float(MAX_DURATION))


class PointOutlook(NamedTuple):
    """The point of a prediction as of now, and what can change it."""

    point: float | None
    """Expected run time in seconds, as in `RunTimePrediction`; None without a prediction."""
    groups: tuple[Group, ...] = ()
    """The groups of ended jobs on which the point depends."""
    until: int | None = None
    """Elapsed run time in seconds from which the point may differ even if nothing is learned; None if it never does."""
    prediction: RunTimePrediction | None = None
    """The whole prediction, if the point could not be computed alone."""

    @classmethod
    def of(
        cls, prediction: RunTimePrediction | None, groups: tuple[Group, ...] = (), until: int | None = None
    ) -> "PointOutlook":
        """Return the outlook of a whole prediction."""
        return cls(None if prediction is None else prediction.point, groups, until, prediction)


class Revisable(ABC):
    """A predictor that knows which predictions change when a job ends, or when a job has run for some time.

    `outlook` is pure, as `predict_one` is.
    """

    always: ClassVar[bool] = False
    """Whether any event may change any prediction. Groups and `until` then have no meaning."""

    @property
    def steps(self) -> int:
        """Upper limit of the work of one `outlook`, in steps as in `Price`."""
        return 50_000

    @abstractmethod
    def predict_one(self, x: JobSubmitted, elapsed: int = 0) -> RunTimePrediction | None:
        """Return the prediction for a job that has run for `elapsed` seconds, 0 if it waits; None if there is none."""

    def outlook(self, x: JobSubmitted, elapsed: int) -> PointOutlook:
        """Return the point of `predict_one` for a job that has run for `elapsed` seconds, and what can change it."""
        return PointOutlook.of(self.predict_one(x, elapsed), self.changed_by(x))

    @abstractmethod
    def changed_by(self, x: JobSubmitted) -> tuple[Group, ...]:
        """Return the groups that change when the ended job `x` is learned. Call it before `learn_one`."""


class Conditioned(Revisable):
    """Adapter of any other predictor, which makes every prediction anew at every event.

    For a running job, the point is the mean of the predicted histogram beyond the time that the job has run. A job that
    has outlived its histogram gets no prediction. A prediction without a histogram ignores the elapsed time.

    >>> from shadowtime.services.runtime_distribution.empirical import Empirical, EmpiricalSettings
    >>> inner = Empirical(EmpiricalSettings())
    >>> job = JobSubmitted(time=0, job_number=1, requested_processors=1, requested_time=7200, user_id=7)
    >>> for run_time in (60, 60, 3600):
    ...     inner.learn_one(job, run_time)
    >>> [round(Conditioned(inner).outlook(job, elapsed).point) for elapsed in (0, 600)]
    [921, 2762]
    """

    always = True

    def __init__(self, predictor: Predictor[JobSubmitted, int, RunTimePrediction]) -> None:
        self._predictor = predictor

    @property
    def steps(self) -> int:
        """Upper limit of the work of one prediction, in steps. A `Price` limits whole messages, so it is a constant."""
        return 1_000_000

    def predict_one(self, x: JobSubmitted, elapsed: int = 0) -> RunTimePrediction | None:
        """Return the prediction for a job that has run for `elapsed` seconds, or None if there is none."""
        prediction = self._predictor.predict_one(x)
        if prediction is None or not elapsed or not prediction.histogram:
            return prediction
        limit = math.inf if x.requested_time is None else float(x.requested_time)
        mean = expected_run_time(np.array(prediction.histogram), float(elapsed), limit)
        return None if mean is None else prediction.replaced(point=as_predicted(mean, x, elapsed))

    def changed_by(self, x: JobSubmitted) -> tuple[Group, ...]:
        """Return no groups: all predictions are made anew at every event."""
        return ()
