"""The longest run time so far in the job's queue."""

from typing import Any

from shadowtime.services.runtime_distribution.remembered_jobs import as_predicted
from shadowtime.services.runtime_distribution.renewed import renew
from shadowtime.shared.events import JobSubmitted
from shadowtime.shared.predictions import RunTimePrediction
from shadowtime.shared.predictor import Predictor
from shadowtime.shared.spec import SpecSettings


class QueueMaximum(Predictor[JobSubmitted, int, RunTimePrediction]):
    """Predict the longest run time of all ended jobs of the same queue: what is left of requests where none are made.

    Jobs of no known queue are a queue of their own. Memory is two numbers a queue, of the last `MAX_OWNERS`.

    Examples
    --------
    >>> predictor = QueueMaximum(SpecSettings())
    >>> job = JobSubmitted(time=0, job_number=1, requested_processors=1, queue_number=2)
    >>> for run_time in (100, 3000, 200):
    ...     predictor.learn_one(job, run_time)
    >>> predictor.predict_one(job).point
    3000.0

    References
    ----------
    docs/algorithms.md#queue-maximum (Smith 1999, section 3, where the maximum is that of the whole log).
    """

    name = "queue-maximum"
    Settings = SpecSettings

    def __init__(self, settings: SpecSettings) -> None:
        del settings
        self._longest: dict[int | None, tuple[int, int]] = {}  # by queue: run time and number of ended jobs

    def predict_one(self, x: JobSubmitted) -> RunTimePrediction | None:
        """Return the maximum in seconds, at most the request, or None before a job of the queue has ended."""
        if x.queue_number not in self._longest:
            return None
        longest, ended = self._longest[x.queue_number]
        return RunTimePrediction(point=as_predicted(longest, x), observations=ended)

    def learn_one(self, x: JobSubmitted, y: int) -> None:
        """Take in the run time `y` in seconds."""
        longest, ended = self._longest.get(x.queue_number, (0, 0))
        renew(self._longest, x.queue_number, (max(longest, y), ended + 1))

    def snapshot(self) -> Any:
        """Return the maximum and the number of jobs of every queue."""
        return [[queue, *known] for queue, known in self._longest.items()]

    def restore(self, state: Any) -> None:
        """Take on what `snapshot` returned."""
        self._longest = {queue: (longest, ended) for queue, longest, ended in state}
