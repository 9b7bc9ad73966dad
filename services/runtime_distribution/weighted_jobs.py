"""Histograms of the user's last jobs, each job weighted by its similarity to the new job."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from shadowtime.services.runtime_distribution.history import MAX_OWNERS, lru_put
from shadowtime.services.runtime_distribution.job_classes import ClassRows, JobClasses, backed
from shadowtime.shared.distributions import Masses, bin_of, packed_numbers, unpacked_numbers
from shadowtime.shared.kernels import Floats, FloatTable, Integers, IntegerTable, kernel
from shadowtime.shared.messages import JobSubmitted, RunTimePrediction
from shadowtime.shared.spec import Price
from shadowtime.shared.stages import Predictor

Jobs = IntegerTable
"""Ended jobs, latest first, shape (jobs, 4): run time and request in seconds, processors, executable; -1 if unknown."""

UNKNOWN = -1

Like = tuple[int, int, int]
"""A job as a row of `Jobs`, without its run time."""

MAX_JOBS = 600_000
"""Maximum number of ended jobs stored for all users together, 32 bytes each."""

BEYOND = (
    "for a job that was ended at its request, the share of its weight in the next bin. `mass=censor` of a policy moves "
    "this share to the request; `mass=truncate` drops it."
)


class Weighting(NamedTuple):
    """The weight of an ended job of the same user."""

    prior: float = 2.0
    """Weight of the distribution of all users' jobs, in pseudo-counts."""
    recency: float = 1.0
    """Factor for each later ended job of the user."""
    request: float = 1.0
    processors: float = 1.0
    executable: float = 1.0
    """Factor for a job with another request, number of processors or executable than the predicted job."""
    spread: float = 0.0
    """Share of a job's weight that goes to each neighbouring bin, unless the job was ended at its request."""
    scaled: float = 0.0
    """1 to scale a run time by the ratio of the new job's request to its own, 0 to leave it unscaled."""


@kernel
def weighted_masses(
    jobs: IntegerTable, like: Integers, weightings: FloatTable, prior: Floats, beyond: float
) -> FloatTable:
    """Return the run-time distribution under each weighting; shape (weightings, bins). O(weightings · jobs).

    Parameters
    ----------
    jobs
        The user's ended jobs, latest first; see `Jobs`.
    like
        The job to predict as a row of `Jobs`, shape (4,). Its run time is not used.
    weightings
        Shape (weightings, 7); the columns are the fields of `Weighting`.
    prior
        Distribution of all users' jobs, shape (bins,), adding up to 1.
    beyond
        Share of the weight of a job ended at its request that counts in the bin above the request: the job would have
        run longer. The rest counts in the bin of the request.

    >>> jobs = np.array([[60, 3600, 1, 7], [1800, 3600, 8, 7]])
    >>> prior = np.eye(20)[5]
    >>> masses = weighted_masses(jobs, np.array([-1, 3600, 1, 7]), np.array([Weighting(processors=0.5)]), prior, 1.0)
    >>> masses.round(3)[0, [5, 7, 13]].tolist()
    [0.571, 0.286, 0.143]
    """
    rows = np.zeros((len(weightings), len(prior)))
    recent, scales = np.ones(len(weightings)), like[1] > 0 and (weightings[:, 6] > 0.0).any()
    for k in range(len(weightings)):
        rows[k] = weightings[k, 0] * prior
    for age in range(len(jobs)):
        run_time, requested_time = float(jobs[age, 0]), float(jobs[age, 1])
        ended = requested_time > 0 and run_time >= requested_time  # at its request
        time = requested_time if ended else run_time
        bin_ = scaled_bin = bin_of(time)
        if scales and requested_time > 0:
            scaled_bin = bin_of(time * like[1] / requested_time)
        for k in range(len(weightings)):
            _, recency, request, processors, executable, spread, scaled = weightings[k]
            weight = recent[k]
            recent[k] *= recency
            if jobs[age, 1] != like[1]:
                weight *= request
            if jobs[age, 2] != like[2]:
                weight *= processors
            if jobs[age, 3] != like[3]:
                weight *= executable
            j = scaled_bin if scaled > 0.0 else bin_
            below, above = (0.0, beyond) if ended else (spread, spread)
            rows[k, max(j - 1, 0)] += below * weight
            rows[k, j] += (1.0 - below - above) * weight
            rows[k, min(j + 1, len(prior) - 1)] += above * weight

    for k in range(len(weightings)):
        rows[k] /= rows[k].sum()
    return rows


@kernel
def similar_masses(
    jobs: IntegerTable, like: Like, weightings: FloatTable, classes: FloatTable, rows: ClassRows, beyond: float
) -> FloatTable:
    """Return `weighted_masses` for a job, with the prior that `backed` returns for its classes.

    >>> jobs, classes = np.array([[60, 3600, 1, 7], [1800, 3600, 8, 7]]), 100.0 * np.eye(20)[5:6]
    >>> masses = similar_masses(jobs, (3600, 1, 7), np.array([Weighting(processors=0.5)]), classes, (0, -1, -1), 1.0)
    >>> masses.round(3)[0, [5, 7, 13]].tolist()
    [0.567, 0.286, 0.143]
    """
    return weighted_masses(jobs, np.array((UNKNOWN, *like)), weightings, backed(classes, rows), beyond)


@kernel
def joined_by(jobs: IntegerTable, run_time: int, newest: Like, most: int) -> IntegerTable:
    """Return the row of the newest job followed by the first rows of `jobs`, at most `most` rows in all.

    >>> joined_by(np.array([[60, 3600, 1, 7], [1800, 3600, 8, 7]]), 90, (600, 2, 5), 2).tolist()
    [[90, 600, 2, 5], [60, 3600, 1, 7]]
    """
    kept = min(len(jobs) + 1, most)
    joined = np.empty((kept, 4), dtype=np.int64)
    joined[0, 0] = run_time
    joined[0, 1], joined[0, 2], joined[0, 3] = newest
    joined[1:] = jobs[: kept - 1]
    return joined


def price_of_users(window: int) -> Price:
    """Return the price of the last `window` ended jobs of as many users as are kept."""
    users = min(MAX_OWNERS, MAX_JOBS // window)
    return Price(users * (40 * window + 600), users * (80 * window + 600), steps=100_000 * window)


class UserHistories:
    """The last `window` ended jobs of each user.

    The user whose last job ended longest ago is evicted first. At most `users` are kept, and at most `MAX_JOBS` jobs
    in all.

    >>> histories = UserHistories(window=2)
    >>> job = JobSubmitted(time=0, job_number=1, requested_processors=4, requested_time=3600, user_id=7)
    >>> for run_time in (100, 200, 300):
    ...     histories.learn(job, run_time)
    >>> histories.of(job).tolist()
    [[300, 3600, 4, -1], [200, 3600, 4, -1]]
    """

    def __init__(self, window: int, users: int = MAX_OWNERS) -> None:
        self._window = window
        self._most = min(users, MAX_JOBS // window)
        self._jobs: dict[int, Jobs] = {}
        self._none = np.zeros((0, 4), np.int64)

    def of(self, job: JobSubmitted) -> Jobs:
        """Return the last ended jobs of the same user; no rows if the user is unknown."""
        return self._none if job.user_id is None else self._jobs.get(job.user_id, self._none)

    def learn(self, job: JobSubmitted, run_time: int) -> None:
        """Record an ended job; run time in seconds."""
        if job.user_id is not None:
            jobs = joined_by(self.of(job), run_time, described(job), self._window)
            lru_put(self._jobs, job.user_id, jobs, self._most)

    def snapshot(self) -> Any:
        """Return the jobs by user."""
        jobs = list(self._jobs.values())
        return [list(self._jobs), list(map(len, jobs)), packed_numbers(np.concatenate([self._none, *jobs]))]

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        users, counts, packed = state
        ends = np.cumsum(counts, dtype=np.int64)[:-1]
        parts = np.split(unpacked_numbers(packed, writable=False), ends) if users else []
        self._jobs = {user: jobs.copy() for user, jobs in zip(users, parts, strict=True)}


def described(job: JobSubmitted) -> Like:
    """Return a job as a row of `Jobs`, without its run time."""
    requested_time = UNKNOWN if job.requested_time is None else job.requested_time
    return requested_time, job.requested_processors, UNKNOWN if job.executable_number is None else job.executable_number


class SimilarJobs(Predictor[JobSubmitted, int, RunTimePrediction]):
    """Weighted histograms of the user's last jobs, with the histograms of all users' jobs as prior.

    Parameters
    ----------
    window
        Number of ended jobs stored for each user.
    weightings
        Each yields one distribution. The first distribution is the prediction.
    forgetting, depth
        Parameters of the prior, as for `JobClasses`.
    beyond
        As for `weighted_masses`.
    """

    def __init__(
        self, window: int, weightings: Sequence[Weighting], forgetting: float, depth: int, beyond: float
    ) -> None:
        self._histories = UserHistories(window)
        self._classes = JobClasses(forgetting, depth)
        self._weightings = np.array(weightings)
        self._beyond = beyond
        self._ended = 0

    def masses(self, x: JobSubmitted) -> Masses | None:
        """Return one distribution per weighting, shape (weightings, BINS), or None before any job has ended."""
        if self._ended == 0:
            return None
        jobs, classes = self._histories.of(x), self._classes
        return similar_masses(jobs, described(x), self._weightings, classes.counts, classes.rows(x), self._beyond)

    def last_jobs(self, x: JobSubmitted) -> Jobs:
        """Return the last ended jobs of the same user."""
        return self._histories.of(x)

    def observations(self, x: JobSubmitted) -> int:
        """Return the number of ended jobs behind a prediction: the user's jobs, or all jobs if the user has none."""
        return len(self._histories.of(x)) or self._ended

    def predict_one(self, x: JobSubmitted) -> RunTimePrediction | None:
        """Return the distribution of the first weighting, or None before any job has ended."""
        masses = self.masses(x)
        return None if masses is None else RunTimePrediction.of(masses[0], x.requested_time, self.observations(x))

    def learn_one(self, x: JobSubmitted, y: int) -> None:
        """Record the run time `y` in seconds."""
        self._ended += 1
        self._histories.learn(x, y)
        self._classes.learn(x, y, self._beyond)

    def snapshot(self) -> Any:
        """Return the jobs by user, the histograms of all users' jobs and the number of ended jobs."""
        return {"histories": self._histories.snapshot(), "classes": self._classes.snapshot(), "ended": self._ended}

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self._histories.restore(state["histories"])
        self._classes.restore(state["classes"])
        self._ended = state["ended"]
