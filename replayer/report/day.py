"""One day of a machine: the choice of the day, the processors to draw its jobs on, and means over time."""

from bisect import insort
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from shadowtime.replayer.comparison import EndedJobs, RunRecord
from shadowtime.replayer.report.statistics import clock_of
from shadowtime.shared.formatting import DAY
from shadowtime.shared.kernels import Floats, Integers


class Day(NamedTuple):
    """A day of the log: its first second, its name, and the label of its hours."""

    start: int
    name: str
    hours: str


def day_that_most_waited(jobs: EndedJobs, midnight: int) -> int:
    """Return the first second of the day with the largest total wait of all jobs.

    Parameters
    ----------
    midnight
        Any second of the log at which a day begins.
    """
    from_, to = jobs.submit_time - midnight, jobs.start_time - midnight
    days = np.unique(np.concatenate((from_, to)) // DAY)
    days = np.union1d(days, days + 1)  # `days + 1`: the same jobs wait on all days until the next of `days`
    waited = [_sum_up_to(to, edges) - _sum_up_to(from_, edges) for edges in (days * DAY, (days + 1) * DAY)]
    return int(days[(waited[1] - waited[0]).argmax()]) * DAY + midnight


def _sum_up_to(times: Integers, edges: Integers) -> Integers:
    """Return for each edge the sum of all times. A time later than the edge counts as the edge."""
    times = np.sort(times)
    before = np.searchsorted(times, edges)
    sums: Integers = np.concatenate(([0], np.cumsum(times)))[before] + (len(times) - before) * edges
    return sums


class JobBar(NamedTuple):
    """Processors on the chart of the job with index `job`, from `low` up to but without `high`."""

    job: int
    low: int
    high: int


def processor_bars(starts: Integers, ends: Integers, processors: Integers) -> list[JobBar]:
    """Return the bars of jobs: each job is drawn on the lowest processors free at its start, in one bar or several.

    The log does not say which processors a job had. The bars only show how many were in use.

    >>> [tuple(bar) for bar in processor_bars(np.array([0, 0, 5]), np.array([5, 9, 9]), np.array([1, 1, 2]))]
    [(0, 0, 1), (1, 1, 2), (2, 0, 1), (2, 2, 3)]
    """
    bars: list[JobBar] = []
    held: list[tuple[int, list[JobBar]]] = []  # sorted by end
    free: list[tuple[int, int]] = [(0, 2**62)]
    for job in np.lexsort((np.arange(len(starts)), starts)).tolist():
        while held and held[0][0] <= starts[job]:
            for bar in held.pop(0)[1]:
                insort(free, (bar.low, bar.high))
            free = _joined(free)

        wanted, got = int(processors[job]), []
        while wanted:
            low, high = free.pop(0)
            taken = min(wanted, high - low)
            got.append(JobBar(job, low, low + taken))
            wanted -= taken
            if low + taken < high:
                free.insert(0, (low + taken, high))

        bars += got
        insort(held, (int(ends[job]), got))

    return bars


def _joined(free: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for low, high in free:
        if joined and joined[-1][1] == low:
            joined[-1] = joined[-1][0], high
        else:
            joined.append((low, high))
    return joined


def choose(run: RunRecord) -> Day:
    """Return the day with the largest total wait in a run."""
    unix = run.plan.workload.unix_start_time
    start = day_that_most_waited(run.jobs, 0 if unix is None else -(unix % DAY))
    return Day(start, clock_of(unix)(start), "hour of the log's day" if unix is None else "hour (UTC)")


def means(from_: Integers, to: Integers, weights: Integers, edges: Integers) -> Floats:
    """Return the total weight of items, averaged over time from each edge to the next. Items last from `from_` to `to`.

    >>> means(np.array([0, 5]), np.array([10, 10]), np.array([2, 4]), np.array([0, 10, 20]))
    array([4., 0.])
    """
    area = _area_up_to(from_, weights, edges) - _area_up_to(to, weights, edges)
    heights: Floats = np.diff(area) / np.diff(edges)
    return heights


def _area_up_to(begins: Integers, weights: Integers, edges: Integers) -> Integers:
    """Return for each edge the time integral, up to the edge, of the total weight of items begun. Items never end."""
    order = np.argsort(begins, kind="stable")
    begins, weights = begins[order], weights[order]
    before = np.searchsorted(begins, edges)
    sums, moments = (np.concatenate(([0], np.cumsum(array))) for array in (weights, weights * begins))
    area: Integers = edges * sums[before] - moments[before]
    return area
