"""Expected end of a running job, also after it has outlived its prediction."""

from typing import NamedTuple

import numpy as np

from shadowtime.shared.kernels import Integers, IntegerTable, kernel

CORRECTIONS: dict[str, tuple[int, ...]] = {
    "request": (),
    "incremental": (60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000),
}
"""Corrections of an outlived prediction, in seconds beyond the prediction, by the policy's `fallback`.

Each correction replaces the one before it (Gaussier 2015). `incremental` has the corrections of EASY++ (Tsafrir 2007,
section 5). After the last correction, the job is expected to run to its adjusted request (`expected_ends`)."""


GRACE = 300
"""Seconds that a running job past its adjusted request is expected to need from the current pass on.

Cobalt, the scheduler of Tang 2013, assumes the same (docs/algorithms.md#expected-end).
"""


class RunningJobs(NamedTuple):
    """Columns of the running jobs, the input of `expected_ends`.

    `sizes` are the amounts of each resource that each job holds, shape (jobs, resources). The times are in seconds,
    shape (jobs,). `corrections` apply to all jobs.
    """

    sizes: IntegerTable
    start_times: Integers
    predicted_times: Integers
    adjusted_times: Integers
    requested_times: Integers
    corrections: Integers


class WaitingTable(NamedTuple):
    """Table of waiting jobs, shape (columns, at least `jobs`), number of jobs, and index of the planned times."""

    table: IntegerTable
    jobs: int
    planned: int


class RunningTable(NamedTuple):
    """As `WaitingTable`, for running jobs. `adjusted` is the index of the adjusted requests."""

    table: IntegerTable
    jobs: int
    planned: int
    adjusted: int
    corrections: Integers


@kernel
def expected_ends(now: int, running: RunningJobs) -> Integers:
    """Return the time at which each running job is expected to end, in seconds.

    A job is expected to run as predicted. Once it has outlived its prediction, it is expected to run to the next
    correction, then to its adjusted request. Past the adjusted request, it is expected to need `GRACE` more seconds
    from now. The request bounds all of these. A job that has reached its request is expected to need one more second
    (docs/algorithms.md#limits-of-a-prediction). O(jobs).

    >>> import numpy as np
    >>> sizes, starts, predicted = np.array([[1], [1], [1]]), np.array([0, 0, 0]), np.array([150, 60, 90])
    >>> adjusted, requested, none = np.array([300, 300, 90]), np.array([300, 300, 800]), np.array([], dtype=np.int64)
    >>> expected_ends(100, RunningJobs(sizes, starts, predicted, adjusted, requested, none)).tolist()
    [150, 300, 400]
    """
    ends = np.empty_like(running.start_times)
    for job in range(len(running.start_times)):
        elapsed = now - running.start_times[job]
        run_time = running.predicted_times[job]
        for correction in running.corrections:
            if run_time > elapsed:
                break
            run_time = running.predicted_times[job] + correction

        if run_time <= elapsed:
            run_time = running.adjusted_times[job] if running.adjusted_times[job] > elapsed else elapsed + GRACE
        ends[job] = running.start_times[job] + max(min(run_time, running.requested_times[job]), elapsed + 1)

    return ends
