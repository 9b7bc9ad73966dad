"""Features of a job at its submission, as a row of numbers: of the job, and of groups of similar earlier jobs."""

import math
from typing import Any, Final

import numpy as np

from shadowtime.services.runtime_distribution.history import UNKNOWN, RememberedJob
from shadowtime.shared.distributions import packed_numbers, unpacked_numbers
from shadowtime.shared.formatting import DAY
from shadowtime.shared.kernels import Floats, FloatTable, Integers, kernel

Key = tuple[int, ...]

LEVELS: Final = 5
"""Number of groups that a job is in, see `groups_of`."""

RING: Final = 8
"""Number of the last run times that a group stores."""

COUNT, FAST, SLOW, SHARE, ENDED, STARTED, SUBMITTED, RUNNING, RUN_TIMES = range(9)
"""Columns of a group: number of ended jobs; means of ln(run time) with fast and slow forgetting; mean of run time /
request; times of the last end, start and submission; number of running jobs; from `RUN_TIMES` on, the last run times in
seconds."""

EMPTY: Final = np.array([0.0, np.nan, np.nan, np.nan, -1.0, -1.0, -1.0, 0.0] + [0.0] * RING)

LONG_AGO: Final = 30.0
"""Logarithm that stands for the time since an event that has not happened; above that of any elapsed time."""

ITSELF: Final = 11
OF_GROUP: Final = 12
FEATURES: Final = ITSELF + LEVELS * OF_GROUP
"""Number of all features: `ITSELF` of the job itself, and `OF_GROUP` of each of its groups."""

WEEK: Final = 7 * DAY


def groups_of(job: RememberedJob) -> tuple[Key, ...]:
    """Return the keys of a job's groups.

    The first four groups are jobs of the same user: all of them; with the same group and executable; with the same
    request; with the same group, executable, request and size. The fifth group is jobs of all users with the same queue
    and request.

    >>> groups_of(RememberedJob(-1, 60, 4, 7, 2, -1, 1, -1))[3]
    (3, 7, 2, -1, 4, 60)
    """
    user, group, executable, request = job.user_id, job.group_id, job.executable_number, job.requested_time
    size = job.requested_processors
    return (
        (0, user),
        (1, user, group, executable),
        (2, user, request),
        (3, user, group, executable, size, request),
        (4, job.queue_number, request),
    )


@kernel
def moved(mean: float, value: float, count: int, most: float) -> float:
    """Return the running mean after one more value.

    The value has weight 1 / (`count` + 1), but never less than 1 / `most`. A NaN mean becomes the value.

    >>> moved(2.0, 4.0, 1, 5.0), moved(2.0, 4.0, 100, 5.0)
    (3.0, 2.4)
    """
    return value if math.isnan(mean) else mean + (value - mean) / min(count + 1.0, most)


@kernel
def _since(time: float, now: float) -> float:
    return math.log1p(max(now - time, 0.0)) if time >= 0 else LONG_AGO


@kernel
def described(groups: FloatTable, rows: Integers, job: Integers, now: float, running: int, waiting: int) -> Floats:
    """Return the features of a job; shape (FEATURES,). Unknown features are `UNKNOWN`. O(LEVELS · RING log RING).

    Parameters
    ----------
    groups
        Table of all groups, shape (groups, columns).
    rows
        Row of each of the job's groups in the table, shape (LEVELS,); -1 for a group that is not there yet.
    job
        The fields of a `RememberedJob`.
    now
        Time of the submission in seconds.
    running, waiting
        Number of running and of waiting jobs of all users.
    """
    features = np.full(FEATURES, float(UNKNOWN))
    request = float(job[1])
    if request != UNKNOWN:
        features[0] = math.log(request)
    features[1] = math.log(float(job[2]))
    for at in range(3, 8):  # user, group, executable, queue, partition
        if job[at] != UNKNOWN:
            features[at - 1] = job[at]
    features[7] = (now % DAY) / 3600.0
    features[8] = (now % WEEK) / DAY
    features[9] = running
    features[10] = waiting
    for level in range(LEVELS):
        if rows[level] < 0:
            continue
        group, at = groups[rows[level]], ITSELF + level * OF_GROUP
        features[at] = group[RUNNING]
        features[at + 1] = _since(group[SUBMITTED], now)
        features[at + 2] = _since(group[STARTED], now)
        count = int(group[COUNT])
        if count > 0:
            known = min(count, RING)
            last = group[RUN_TIMES : RUN_TIMES + known]
            last = last[np.argsort(last, kind="mergesort")]
            features[at + 3] = math.log1p(count)
            features[at + 4] = group[FAST]
            features[at + 5] = group[SLOW]
            if not math.isnan(group[SHARE]):
                features[at + 6] = group[SHARE]
            features[at + 7] = _since(group[ENDED], now)
            features[at + 8] = math.log(max(group[RUN_TIMES + (count - 1) % RING], 1.0))
            features[at + 9] = math.log(max(group[RUN_TIMES + (count - 2) % RING], 1.0)) if count > 1 else UNKNOWN
            features[at + 10] = math.log(max((last[(known - 1) // 2] + last[known // 2]) / 2, 1.0))
            features[at + 11] = math.log(max(last[-1], 1.0))

    return features


@kernel
def counted(groups: FloatTable, rows: Integers, running: int, at: int, now: float) -> None:
    """Add `running` to the running jobs of groups, given by `rows`. If `at` >= 0, set their column `at` to `now`."""
    for row in rows:
        group = groups[row]
        group[RUNNING] = max(group[RUNNING] + running, 0.0)  # a group may have been evicted in between
        if at >= 0:
            group[at] = now


@kernel
def learned(groups: FloatTable, rows: Integers, run_time: float, request: float) -> None:
    """Add a job's run time in seconds to its groups. The request is in seconds, or negative if there is none."""
    length = math.log(max(run_time, 1.0))
    for row in rows:
        group = groups[row]
        count = int(group[COUNT])
        group[RUN_TIMES + count % RING] = run_time
        group[COUNT] = count + 1
        group[FAST] = moved(group[FAST], length, count, 2.0)
        group[SLOW] = moved(group[SLOW], length, count, 12.0)
        if request > 0:
            group[SHARE] = moved(group[SHARE], run_time / request, count, 6.0)


class JobGroups:
    """The current statistics of each group of jobs.

    With more than `most` groups, the least recently updated group is evicted.

    >>> groups, job = JobGroups(100), RememberedJob(-1, 3600, 4, 7, 2, -1, 1, -1)
    >>> groups.submitted(job, now=0)
    >>> groups.started(job, now=10)
    >>> groups.learn(job, 60)
    >>> groups.left(job, now=70)
    >>> round(math.exp(groups.features(job, now=80)[ITSELF + 4]))
    60
    """

    def __init__(self, most: int) -> None:
        self._most = max(most, LEVELS)  # all groups of one job must fit
        self._rows: dict[Key, int] = {}
        self._table = np.empty((0, len(EMPTY)))
        self._running = self._waiting = 0

    def features(self, job: RememberedJob, now: int) -> Floats:
        """Return the features of a job that is submitted at `now`, shape (FEATURES,)."""
        rows = np.array([self._rows.get(group, -1) for group in groups_of(job)])
        return described(self._table, rows, np.array(job), float(now), self._running, self._waiting)

    def submitted(self, job: RememberedJob, now: int) -> None:
        """Record that a job waits."""
        self._count(job, 0, 1, SUBMITTED, now)

    def withdrawn(self, job: RememberedJob) -> None:
        """Record that a waiting job was withdrawn."""
        self._count(job, 0, -1)

    def started(self, job: RememberedJob, now: int) -> None:
        """Record that a waiting job has started."""
        self._count(job, 1, -1, STARTED, now)

    def left(self, job: RememberedJob, now: int) -> None:
        """Record that a running job has ended or was requeued."""
        self._count(job, -1, 0, ENDED, now)

    def learn(self, job: RememberedJob, run_time: int) -> None:
        """Learn a run time in seconds."""
        rows = self._renewed(job)
        learned(self._table, rows, float(run_time), float(job.requested_time))

    def _count(self, job: RememberedJob, running: int, waiting: int, at: int = -1, now: int = 0) -> None:
        rows = self._renewed(job)  # comes first, because it may replace the table
        counted(self._table, rows, running, at, float(now))
        self._running += running
        self._waiting += waiting

    def _renewed(self, job: RememberedJob) -> Integers:
        """Return the table rows of a job's groups, which become the most recently used. Create the missing groups."""
        rows = self._rows
        columns = []
        for key in groups_of(job):
            row = rows.pop(key, None)
            if row is None:
                row = rows.pop(next(iter(rows))) if len(rows) >= self._most else len(rows)
                if row == len(self._table):
                    more = np.empty((max(row, 64), len(EMPTY)))
                    self._table = np.concatenate((self._table, more))
                self._table[row] = EMPTY

            rows[key] = row
            columns.append(row)

        return np.array(columns)

    def snapshot(self) -> Any:
        """Return the groups, least recently used first."""
        return {
            "keys": [list(key) for key in self._rows],
            "table": packed_numbers(self._table[list(self._rows.values())]),
            "live": [self._running, self._waiting],
        }

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self._rows = {tuple(key): row for row, key in enumerate(state["keys"])}
        self._table = unpacked_numbers(state["table"]).reshape(-1, len(EMPTY))
        self._running, self._waiting = state["live"]
