"""Which waiting jobs to run for less time than they ask for, in holes of the plan.

The rules: docs/algorithms.md#speculation, docs/algorithms.md#expected-speculation and docs/algorithms.md#test-runs.
"""

import math
from typing import NamedTuple

from shadowtime.services.scheduler.conditioning import condition
from shadowtime.services.scheduler.profile import FOREVER, has_room_at
from shadowtime.shared.arrays import Floats, Integers, IntegerTable
from shadowtime.shared.kernel import kernel

TEST_ABOVE = 10_800
"""Seconds; only jobs that ask for more are tested (Perković 2000, section 6.1)."""

MIN_TEST, MAX_TEST = 300, 900
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


def attempt(
    hole: int, run_time: int, requested_time: int, least: int, *, speculate: bool, test: bool
) -> Attempt | None:
    """Return how a job is run in a hole, if at all; a speculated time grows to fill the hole. Times in seconds.

    Parameters
    ----------
    run_time
        For how long it is planned.
    requested_time
        What was asked for, whatever is predicted and on whatever size it runs: that makes it long enough for a test.
    least
        The time below which it is not worth while: a share of the estimate, or what an earlier run taught.
    speculate, test
        Whether the job may be run speculatively, and whether it may be tested.

    >>> attempt(20_000, 36_000, 36_000, 7200, speculate=True, test=True)
    Attempt(seconds=20000, test_run=False)
    >>> attempt(5000, 36_000, 36_000, 7200, speculate=True, test=True)
    Attempt(seconds=900, test_run=True)
    """
    if speculate and hole >= least:
        return Attempt(min(hole, run_time), test_run=False)
    if test and requested_time > TEST_ABOVE and hole >= MIN_TEST:
        return Attempt(min(hole, MAX_TEST), test_run=True)
    return None


@kernel
def worthwhile(hole: int, saved: int, ran: int, request: int, masses: Floats, edges: Floats) -> int:
    """Return for how long it is best to run a job in a hole by its run-time distribution; 0: not at all. O(bins).

    A run of so long gains the wait that is saved, with the probability that the job ends in it, and wastes itself with
    the probability that it does not, both times the job's processors. It ends where a bin ends, which is where the
    distribution knows anything new. Times in seconds.

    Parameters
    ----------
    saved
        The wait until its place in the plan.
    ran
        For how long it has run in vain before: it needs longer than that.
    masses, edges
        Probability of each bin of run times, shape (bins,), and where they begin and end.

    >>> import numpy as np
    >>> from shadowtime.shared.run_time_bins import BINS, EDGES
    >>> masses = np.zeros(BINS)
    >>> masses[[5, 15]] = 0.5, 0.5
    >>> worthwhile(3600, 7200, 0, 36_000, masses, EDGES), worthwhile(3600, 7200, 19, 36_000, masses, EDGES)
    (19, 0)
    """
    times, probabilities = condition(masses, edges, float(ran), float(request), False)
    best, most, ends = 0, 0.0, 0.0
    for k in range(len(times)):
        limit = math.ceil(times[k])
        if limit > hole:
            break
        ends += probabilities[k]
        gain = ends * saved - (1.0 - ends) * limit
        if gain > most and limit > ran:
            best, most = limit, gain
    return best


@kernel
def hole_of(times: Integers, free: IntegerTable, steps: int, size: Integers) -> int:
    """Return for how many seconds from now on so much of each resource is free; `FOREVER` if always. O(steps).

    >>> import numpy as np
    >>> hole_of(np.array([10, 50, 90]), np.array([[4, 3, 1]]), 3, np.array([2]))
    80
    """
    for step in range(steps):
        if not has_room_at(free, step, size):
            return int(times[step] - times[0])
    return FOREVER
