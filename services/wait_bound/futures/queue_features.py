"""The state of the queue and of the machine at a job's submission, as features of trees."""

from typing import Final

import numpy as np

from shadowtime.services.wait_bound.futures.jobs_in_system import (
    ASKED,
    EXPECTED,
    HELD,
    LIMIT,
    QUEUE,
    REQUEST,
    SINCE,
    START,
    USER,
)
from shadowtime.shared.formatting import DAY
from shadowtime.shared.kernels import Floats, Integers, IntegerTable, kernel

OF_QUEUE: Final = 28
"""Number of features."""

SOONEST: Final = 60.0
"""Smallest expected remaining run time in seconds; also added to ages before their logarithms are taken."""


@kernel
def until_free(free: float, wanted: float, left: Floats, sizes: Integers) -> float:
    """Return the seconds until `wanted` processors are free, if jobs of these `sizes` end in `left` seconds.

    If all jobs together release too few, return the seconds until the last job ends. O(n log n).

    >>> until_free(1.0, 3.0, np.array([50.0, 20.0, 30.0]), np.array([4, 1, 1]))
    30.0
    """
    after = 0.0
    if free < wanted:
        for job in np.argsort(left, kind="mergesort"):
            free += sizes[job]
            after = left[job]
            if free >= wanted:
                break

    return after


@kernel
def described(
    now: int, processors: int, held: int, waiting: IntegerTable, running: IntegerTable, job: Integers
) -> Floats:
    """Return the features of a job and of the jobs that wait and run before it; shape (OF_QUEUE,). O(n log n).

    In order, with work in seconds of the whole machine:

    - free processors;
    - waiting jobs: number, processors, work by request, expected work, longest age, mean logarithm of age;
    - waiting jobs no larger than the job: number, work; waiting jobs with no longer request: number;
    - head of the queue: processors, request, age;
    - running jobs: remaining work by request, number;
    - time until the job's processors are free: by request, as expected;
    - the job: processors, request, expected run time, processors times request;
    - its user: number of waiting jobs, busy processors;
    - its queue: number of the queue, number of jobs that wait there, their work by request;
    - hour of the day, day of the week.

    Parameters
    ----------
    processors, held
        Processors of the machine, and processors that running jobs hold.
    waiting, running, job
        Rows of `JobsThere`, the waiting jobs in the order of the queue, and the row of the job itself.
    """
    features = np.zeros(OF_QUEUE)
    machine, count = float(max(processors, 1)), len(waiting)
    size, request, user, queue = job[ASKED], job[REQUEST], job[USER], job[QUEUE]
    features[0], features[1] = processors - held, count
    for row in range(count):
        other = waiting[row]
        work, age = float(other[ASKED]) * other[REQUEST] / machine, float(max(now - other[SINCE], 0))
        features[2] += other[ASKED]
        features[3] += work
        features[4] += float(other[ASKED]) * other[EXPECTED] / machine
        features[5] = max(features[5], age)
        features[6] += np.log(age + SOONEST) / count
        if other[ASKED] <= size:
            features[7] += 1
            features[8] += work
        if other[REQUEST] <= request:
            features[9] += 1
        if other[USER] == user:
            features[21] += 1
        if other[QUEUE] == queue:
            features[24] += 1
            features[25] += work
        if row == 0:
            features[10], features[11], features[12] = other[ASKED], other[REQUEST], age

    by_request, as_expected = np.zeros(len(running)), np.zeros(len(running))
    for row in range(len(running)):
        other = running[row]
        elapsed = now - other[START]
        by_request[row] = max(other[LIMIT] - elapsed, 0)
        more = float(other[EXPECTED] - elapsed)
        as_expected[row] = max(more if more > 0.0 else by_request[row] / 2.0, SOONEST)
        features[13] += by_request[row] * other[HELD] / machine
        if other[USER] == user:
            features[22] += other[HELD]

    sizes = running[:, HELD].copy()
    features[14] = len(running)
    features[15] = until_free(features[0], float(size), by_request, sizes)
    features[16] = until_free(features[0], float(size), as_expected, sizes)
    features[17], features[18], features[19], features[20] = size, request, job[EXPECTED], float(size) * request
    features[23] = queue
    features[26], features[27] = now % DAY / 3600.0, now // DAY % 7
    return features
