"""Predictors that use a sliding window of ended jobs: each job is added when it ends, and removed later."""

from abc import abstractmethod
from collections import deque
from typing import Any, NamedTuple, TypeVar

from pydantic import Field

from shadowtime.services.runtime_distribution.revisable import Group, PointOutlook, Revisable, RunTimeSettings
from shadowtime.shared.messages import JobSubmitted, RunTimePrediction
from shadowtime.shared.spec import Price
from shadowtime.shared.stages import Predictor

UNKNOWN = -1


class RememberedJob(NamedTuple):
    """The known facts about a job; times in seconds. A field that the log does not have is `UNKNOWN`."""

    run_time: int
    requested_time: int
    requested_processors: int
    user_id: int
    group_id: int
    executable_number: int
    queue_number: int
    partition_number: int
    qos_number: int = UNKNOWN


def remembered(job: JobSubmitted, run_time: int = UNKNOWN) -> RememberedJob:
    """Return the facts about a job that predictors store.

    >>> remembered(JobSubmitted(time=0, job_number=1, requested_processors=4, user_id=7), 60)[:4]
    (60, -1, 4, 7)
    """
    request, user, group = job.requested_time, job.user_id, job.group_id
    executable, queue, partition = job.executable_number, job.queue_number, job.partition_number
    return RememberedJob(
        run_time,
        UNKNOWN if request is None else request,
        job.requested_processors,
        UNKNOWN if user is None else user,
        UNKNOWN if group is None else group,
        UNKNOWN if executable is None else executable,
        UNKNOWN if queue is None else queue,
        UNKNOWN if partition is None else partition,
        UNKNOWN if job.qos_number is None else job.qos_number,
    )


class RememberingSettings(RunTimeSettings):
    """Settings of all predictors that store jobs."""

    history: int = Field(20_000, ge=1, le=200_000, description="number of last ended jobs that are remembered")

    def price(self) -> Price:
        """Return the price of the remembered jobs, with sums or sorted lists by class."""
        return Price(500 * self.history, 500 * self.history, steps=2_000 * self.history)


class WindowedPredictor(Revisable, Predictor[JobSubmitted, int, RunTimePrediction]):
    """A predictor that is a function of the last `history` ended jobs.

    A subclass adds the newest job and removes the oldest. Its predictions must not depend on removed jobs, because a
    snapshot contains only the jobs of the window. The window also bounds the memory.
    """

    def __init__(self, history: int) -> None:
        self._history = history
        self.jobs: deque[RememberedJob] = deque()

    @abstractmethod
    def add(self, job: RememberedJob) -> None:
        """Add the newest job."""

    @abstractmethod
    def remove(self, job: RememberedJob) -> None:
        """Remove the oldest job."""

    @abstractmethod
    def groups_of(self, job: RememberedJob) -> tuple[Group, ...]:
        """Return the groups that the job changes when it is added or removed."""

    def outlook(self, x: JobSubmitted, elapsed: int) -> PointOutlook:
        """Return the prediction. It changes only with the job's own groups, and not with the time that the job runs."""
        return PointOutlook.of(self.predict_one(x, elapsed), self.groups_of(remembered(x)))

    def changed_by(self, x: JobSubmitted) -> tuple[Group, ...]:
        """Return the groups that change when the job ends: its own, and those of the oldest job of a full window."""
        oldest = self.groups_of(self.jobs[0]) if len(self.jobs) == self._history else ()
        return self.groups_of(remembered(x)) + oldest

    def learn_one(self, x: JobSubmitted, y: int) -> None:
        """Add a job with the run time `y` in seconds. Remove the oldest job if the window is full."""
        if len(self.jobs) == self._history:
            self.remove(self.jobs.popleft())
        self.jobs.append(remembered(x, y))
        self.add(self.jobs[-1])

    def snapshot(self) -> Any:
        """Return the jobs, oldest first."""
        return [list(job) for job in self.jobs]

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        while self.jobs:
            self.remove(self.jobs.popleft())
        for job in state:
            self.jobs.append(RememberedJob(*job))
            self.add(self.jobs[-1])


# Dictionaries by user or by queue, which evict the least recently stored entry.

MAX_OWNERS = 20_000
"""Maximum number of users, or of queues, in a dictionary: twenty times the number in any log of the archive."""

Owner = TypeVar("Owner")
Known = TypeVar("Known")


def lru_put(known: dict[Owner, Known], owner: Owner, latest: Known, most: int = MAX_OWNERS) -> None:
    """Store the latest value of a user or queue. With more than `most` keys, evict the least recently stored. O(1).

    >>> known = {1: "a", 2: "b"}
    >>> lru_put(known, 1, "c", most=2)
    >>> lru_put(known, 3, "d", most=2)
    >>> known
    {1: 'c', 3: 'd'}
    """
    known.pop(owner, None)
    known[owner] = latest
    if len(known) > most:
        del known[next(iter(known))]
