"""Statistics of the report, computed from job times. Times are in seconds."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shadowtime.replayer.comparison import JobTimes
from shadowtime.shared.formatting import DAY
from shadowtime.shared.kernels import Floats, Integers
from shadowtime.shared.statistics import Interval, bounded_slowdown, mean_over_time

MAX_MONTHS = 600
"""Maximum number of months in a chart or table."""

CALENDAR_ENDS = 253_370_764_800
"""Unix time at which the year 9999 begins, the last one that `datetime` can represent."""


def slowdowns(jobs: JobTimes) -> Floats:
    """Return each job's bounded slowdown, relative to its own run time (docs/algorithms.md#bounded-slowdown)."""
    run_times = jobs.own_run_time
    waits = jobs.end_time - jobs.submit_time - run_times
    values = map(bounded_slowdown, waits.tolist(), run_times.tolist())
    return np.fromiter(values, np.float64, len(run_times))


TAIL = 1000
"""One of this many waits is in the tail."""

FEW = 20
"""Minimum number of jobs of a user for a meaningful mean wait."""

NOTICED = 60
"""Seconds by which the mean wait of a user must grow for the user to count as worse off."""


def by_user(values: NDArray[np.generic], users: Integers) -> Floats:
    """Return the mean value of each user with at least `FEW` jobs. Jobs of unknown users (negative) are ignored.

    >>> by_user(np.arange(40), np.repeat([7, -1], 20))
    array([9.5])
    """
    named = users >= 0
    _, user, jobs = np.unique(users[named], return_inverse=True, return_counts=True)
    means: Floats = np.bincount(user, weights=values[named].astype(np.float64), minlength=len(jobs)) / jobs
    return means[jobs >= FEW]


def tail_mean(waits: Integers) -> float | None:
    """Return the mean of the longest 0.1 % of waits, of at least one wait, in seconds; None without waits.

    The longest wait alone is of one job, and one moved submission can change it much. O(waits).

    >>> tail_mean(np.arange(3000))
    2998.0
    """
    if not len(waits):
        return None
    count = -(-len(waits) // TAIL)
    return float(np.partition(waits, -count)[-count:].mean())


class WorseOff(NamedTuple):
    """The user whose mean wait grew most: number, number of jobs, and growth in seconds."""

    user_id: int
    jobs: int
    longer: float


def worst_off(first: JobTimes, other: JobTimes) -> WorseOff | None:
    """Return the user with `FEW` jobs or more whose mean wait grew most from `first` to `other`.

    None if no such user's mean wait grew by more than `NOTICED`.
    """
    _, here, there = np.intersect1d(first.job_number, other.job_number, assume_unique=True, return_indices=True)
    users, longer = first.user_id[here], other.wait[there] - first.wait[here]
    named, user, jobs = np.unique(users, return_inverse=True, return_counts=True)
    means = np.bincount(user, weights=longer.astype(np.float64), minlength=len(named)) / jobs
    means[(named < 0) | (jobs < FEW)] = -np.inf
    if not len(means) or means.max() <= NOTICED:
        return None
    at = int(means.argmax())
    return WorseOff(int(named[at]), int(jobs[at]), float(means[at]))


class PairedDifferences(NamedTuple):
    """Paired differences between the jobs of a run and the same jobs in the first run.

    `wait`, in seconds, and `slowdown` are mean differences with intervals. `sooner` and `later` are shares of jobs.
    """

    wait: Interval
    slowdown: Interval
    sooner: float
    later: float
    users_worse: float | None
    """Share of users whose mean wait grew by more than `NOTICED`; None if no user has `FEW` jobs."""
    largest_growth: float | None
    """Largest growth of a user's mean wait, in seconds; None if no user has `FEW` jobs."""


def paired(first: JobTimes, other: JobTimes, key: int) -> PairedDifferences:
    """Return the paired differences of `other` minus `first`. They must have jobs in common.

    An interval is no wider than if no job waited in one of the two runs.

    `key` is the key of the seeded random numbers of the intervals.
    """
    _, here, there = np.intersect1d(first.job_number, other.job_number, assume_unique=True, return_indices=True)
    submit_times = first.submit_time[here]
    waits, other_waits = first.wait[here], other.wait[there]
    stretches, other_stretches = slowdowns(first)[here], slowdowns(other)[there]
    wait, slowdown = other_waits - waits, other_stretches - stretches
    of_users = by_user(wait, first.user_id[here])
    return PairedDifferences(
        mean_over_time(wait.astype(np.float64), submit_times, key).within(-waits.mean(), other_waits.mean()),
        mean_over_time(slowdown, submit_times, key).within(1.0 - stretches.mean(), other_stretches.mean() - 1.0),
        float((wait < 0).mean()),
        float((wait > 0).mean()),
        float((of_users > NOTICED).mean()) if len(of_users) else None,
        float(of_users.max()) if len(of_users) else None,
    )


class Month(NamedTuple):
    """A calendar month, or a period of days if the log has no dates. Its end, in seconds of the log, is not in it."""

    name: str
    end: int


def months(first: int, last: int, unix_start_time: int | None) -> list[Month]:
    """Return the months from second `first` to second `last` of the log, in UTC.

    Without a start date, with more than `MAX_MONTHS` months or with dates after 9998, the months are periods of 30 days
    or a multiple of that.

    >>> [month.name for month in months(0, 40 * DAY, 843480031)], [month.name for month in months(0, 40 * DAY, None)]
    (['Sep 1996', 'Oct 1996', 'Nov 1996'], ['days 1 to 30', 'days 31 to 60'])
    """
    too_many = -(-(last - first) // (MAX_MONTHS * 30 * DAY))
    if unix_start_time is None or too_many > 1 or unix_start_time + last >= CALENDAR_ENDS:
        days = 30 * max(1, too_many)
        starts = range(first // (days * DAY) * days, last // DAY + 1, days)
        return [Month(f"days {start + 1} to {start + days}", (start + days) * DAY) for start in starts]

    per_month: list[Month] = []
    at = datetime.fromtimestamp(unix_start_time + first, UTC)
    while not per_month or per_month[-1].end <= last:
        after = datetime(at.year + at.month // 12, at.month % 12 + 1, 1, tzinfo=UTC)
        per_month.append(Month(f"{at:%b %Y}", int(after.timestamp()) - unix_start_time))
        at = after

    return per_month


def month_of(submit_times: Integers, all_months: Sequence[Month]) -> Integers:
    """Return the index of the month of each submission."""
    return np.searchsorted([month.end for month in all_months], submit_times, side="right").astype(np.int64)


def undominated(points: Sequence[tuple[float, float]]) -> list[bool]:
    """Return for each point whether it is on the Pareto front: no other is lower in one figure and higher in none.

    >>> undominated([(1.0, 3.0), (2.0, 2.0), (2.0, 3.0), (3.0, 1.0), (3.0, 1.0)])
    [True, True, False, True, True]
    """
    return [not any(x <= a and y <= b and (x, y) != (a, b) for x, y in points) for a, b in points]


def by_class(values: NDArray[np.generic], classes: Integers, count: int) -> list[float | None]:
    """Return the mean value of each of `count` classes; None for a class without values.

    `classes` has the index of the class of each value.

    >>> by_class(np.array([1.0, 3.0]), np.array([0, 0]), 2)
    [2.0, None]
    """
    sums, jobs = (
        np.bincount(classes, weights=values.astype(np.float64), minlength=count),
        np.bincount(classes, minlength=count),
    )
    return [float(total / number) if number else None for total, number in zip(sums, jobs, strict=True)]


Clock = Callable[[int], str]


def clock_of(unix_start_time: int | None) -> Clock:
    """Return a function that names a second of the log: its date, or its day number if the log has no dates.

    >>> clock_of(843480031)(0), clock_of(None)(3 * DAY)
    ('1996-09-23', 'day 4')
    """

    def clock(second: int) -> str:
        if unix_start_time is None or unix_start_time + second >= CALENDAR_ENDS:
            return f"day {second // DAY + 1}"
        return f"{datetime.fromtimestamp(unix_start_time + second, UTC):%Y-%m-%d}"

    return clock
