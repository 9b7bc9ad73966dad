"""Recent waits by queue and by size, the work that has arrived, and the waits of similar jobs."""

from typing import Any, Final

import numpy as np

from shadowtime.services.wait_bound.bounder import MAX_QUEUES
from shadowtime.shared.distributions import packed_numbers, unpacked_numbers
from shadowtime.shared.formatting import DAY
from shadowtime.shared.kernels import Floats, FloatTable, kernel
from shadowtime.shared.messages import JobSubmitted

SPEEDS: Final = np.array([0.3, 0.05, 0.01])
"""Weight of the newest wait in each of three running means."""

LAST: Final = 8
"""Number of the last waits from which a feature, their median, is computed."""

UNKNOWN: Final = -1.0
"""Value of a feature if there are no waits."""

OF_WAITS: Final = 3 * len(SPEEDS) + 3
"""Number of features."""

Group = tuple[int, int]


class RecentWaits:
    """Means of the logarithms of waits of all jobs, of each queue and of each size, forgetting at three speeds.

    Sizes from one power of two to the next are one group. All queues beyond the first `MAX_QUEUES` are one group. O(1)
    for each job.

    >>> waits, job = RecentWaits(), JobSubmitted(time=0, job_number=1, requested_processors=3)
    >>> for wait in (5.0, 5.0, 8.0):
    ...     waits.learn(job, wait)
    >>> waits.features(job, now=0)[:3].round(2).tolist()
    [5.9, 5.15, 5.03]
    """

    def __init__(self) -> None:
        self._means: dict[Group, Floats] = {}
        self._last: list[float] = []
        self._work = self._at = 0.0

    def _groups(self, job: JobSubmitted) -> tuple[Group, ...]:
        queue = -1 if job.queue_number is None else job.queue_number
        own = 0, queue
        if own not in self._means and sum(kind == 0 for kind, _ in self._means) >= MAX_QUEUES:
            own = 0, -2
        return (2, 0), own, (1, job.requested_processors.bit_length())

    def features(self, job: JobSubmitted, now: int) -> Floats:
        """Return the features of the recent waits as logarithms, and the recently arrived work; shape (OF_WAITS,).

        The first features are the means of all jobs, of the job's queue and of the job's size. Then come the median of
        the last waits and the latest wait. The work is in processor seconds.
        """
        nothing = np.full(len(SPEEDS), UNKNOWN)
        means = [self._means.get(group, nothing) for group in self._groups(job)]
        last = [float(np.median(self._last)), self._last[-1]] if self._last else [UNKNOWN, UNKNOWN]
        return np.concatenate((*means, last, [self._left(now)]))

    def came(self, job: JobSubmitted) -> None:
        """Add the work of a submitted job, in processor seconds. Work of a day ago counts 1/e."""
        self._work = self._left(job.time) + float(job.requested_processors) * (job.requested_time or 0)
        self._at = float(job.time)

    def learn(self, job: JobSubmitted, log_wait: float) -> None:
        """Learn the logarithm of a wait."""
        for group in self._groups(job):
            before = self._means.get(group, np.full(len(SPEEDS), log_wait))
            self._means[group] = before + SPEEDS * (log_wait - before)
        self._last = [*self._last[1 - LAST :], log_wait]

    def _left(self, now: int) -> float:
        return self._work * float(np.exp(-max(now - self._at, 0.0) / DAY))

    def snapshot(self) -> Any:
        """Return means, last waits and work."""
        means = [[*group, *moments.tolist()] for group, moments in self._means.items()]
        return {"means": means, "last": self._last, "work": [self._work, self._at]}

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self._means = {(kind, value): np.array(values) for kind, value, *values in state["means"]}
        self._last, (self._work, self._at) = list(state["last"]), state["work"]


# The waits of the past jobs that were most similar to a given job at submission.

REMEMBERED = 8_000
"""Number of the last waits that are stored and searched."""

NEAREST = 300
"""Number of the nearest waits that are returned."""

AGE = 20 * 86_400.0
"""Age in seconds that counts as much as a forecast that differs by the factor e."""

OF_USER = 0.3
"""Weight of a difference between the users' mean waits, relative to a difference between forecasts."""

FORECAST, USER, WHEN, WAIT = range(4)
"""Columns: logarithm of the forecast wait, mean logarithm of the user's waits, time of submission, wait in seconds."""


@kernel
def nearest(waits: FloatTable, forecast: float, user: float, now: float, most: int) -> Floats:
    """Return the waits of the `most` nearest jobs in seconds, ascending; more in case of ties. O(waits).

    The distance adds the differences of forecasts and of users' means, and the age.
    """
    far = np.empty(len(waits))
    for job in range(len(waits)):
        near = abs(waits[job, FORECAST] - forecast) + OF_USER * abs(waits[job, USER] - user)
        far[job] = near + (now - waits[job, WHEN]) / AGE
    expected = waits[:, WAIT].copy()
    if len(waits) > most:
        expected = expected[far <= np.partition(far, most - 1)[most - 1]]
    return expected[np.argsort(expected, kind="mergesort")]


class NearestWaits:
    """The last `REMEMBERED` waits, with the facts known about each job at its submission.

    >>> waits = NearestWaits()
    >>> for hour in range(1000):
    ...     waits.add(forecast=4.0 * (hour % 2), user=0.0, submitted=3600.0 * hour, wait=100.0 * (hour % 2))
    >>> float(waits.near(forecast=4.0, user=0.0, now=3.6e6).mean())
    100.0
    """

    def __init__(self) -> None:
        self._waits: FloatTable = np.zeros((REMEMBERED, 4))
        self._count = 0

    def __len__(self) -> int:
        return min(self._count, REMEMBERED)

    def add(self, forecast: float, user: float, *, submitted: float, wait: float) -> None:
        """Add a wait. If the table is full, the new wait replaces the oldest one. O(1)."""
        self._waits[self._count % REMEMBERED] = forecast, user, submitted, wait
        self._count += 1

    def near(self, forecast: float, user: float, now: float) -> Floats:
        """Return the waits of the nearest jobs, in seconds, ascending."""
        return nearest(self._waits[: len(self)], forecast, user, now, NEAREST)

    def snapshot(self) -> Any:
        """Return the waits."""
        return [self._count, packed_numbers(self._waits[: len(self)])]

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self._count, table = state[0], unpacked_numbers(state[1])
        self._waits[: len(table)] = table
