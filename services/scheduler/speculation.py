"""Which waiting jobs to run for less time than they ask for, in holes of the plan."""

from typing import NamedTuple

import numpy as np

from services.scheduler.expected_end import Column
from services.scheduler.profile import FOREVER, begin, take
from shared.kernel import kernel

TEST_ABOVE = 10_800
"""Seconds; only jobs that ask for more are tested (P1, section 6)."""

SHORTEST_TEST, LONGEST_TEST = 300, 900
"""Seconds that a test run takes."""


class Attempt(NamedTuple):
    """A speculative run of a job: how long it may take, in seconds, and whether it is a test run."""

    seconds: int
    test_run: bool


def next_time(last: int, run_time: int) -> int:
    """Return for how long to speculate after a run of `last` seconds was too short: the average with the estimate.

    >>> next_time(7200, 36_000)
    21600
    """
    return (last + run_time) // 2


def attempt(hole: int, run_time: int, least: int, *, speculate: bool, test: bool) -> Attempt | None:
    """Return how a job is run in a hole, if at all; a speculated time grows to fill the hole. Times in seconds.

    Parameters
    ----------
    least
        The time below which it is not worth while: a share of the estimate, or what an earlier run taught.
    speculate, test
        Whether the job may be run speculatively, and whether it may be tested.

    >>> attempt(20_000, 36_000, 7200, speculate=True, test=True)
    Attempt(seconds=20000, test_run=False)
    >>> attempt(5000, 36_000, 7200, speculate=True, test=True)
    Attempt(seconds=900, test_run=True)
    """
    if speculate and hole >= least:
        return Attempt(min(hole, run_time), test_run=False)
    if test and run_time > TEST_ABOVE and hole >= SHORTEST_TEST:
        return Attempt(min(hole, LONGEST_TEST), test_run=True)
    return None


@kernel(
    "Tuple((int64[::1], int64[::1], int64))"
    "(int64, int64, int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64)"
)
def planned_profile(
    now: int,
    idle: int,
    running_processors: Column,
    running_ends: Column,
    processors: Column,
    run_times: Column,
    starts: Column,
    room: int,
) -> tuple[Column, Column, int]:
    """Return the profile that running jobs and the plan leave, with room for more reservations, and its steps.

    O(jobs * (jobs + running jobs)).
    """
    times = np.empty(2 * (len(processors) + room) + len(running_ends) + 2, dtype=np.int64)
    free = np.empty_like(times)
    steps = begin(times, free, now, idle, running_processors, running_ends)
    for job in range(len(processors)):
        if now <= starts[job] < FOREVER:
            steps = take(times, free, steps, starts[job], starts[job] + run_times[job], processors[job])
    return times, free, steps


@kernel("int64(int64[::1], int64[::1], int64, int64)")
def hole_of(times: Column, free: Column, steps: int, processors: int) -> int:
    """Return for how many seconds from now on so many processors are free; `FOREVER` if always. O(steps).

    >>> hole_of(np.array([10, 50, 90]), np.array([4, 3, 1]), 3, 2)
    80
    """
    for step in range(steps):
        if free[step] < processors:
            return int(times[step] - times[0])
    return FOREVER
