"""In which order waiting jobs are planned, or tried as candidates."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from shadowtime.services.scheduler.job_table import Queue
from shadowtime.shared.arrays import Floats, Integers
from shadowtime.shared.chance import uniform

Order = Literal["BF", "P", "R", "1/L", "P/L", "R/L"]

CandidateWeight = Annotated[
    float,
    Field(
        ge=0,
        le=1e6,
        description="of the delay in seconds, added to what candidates are sorted by",
        exclude_if=lambda weight: not weight,
    ),
]
"""Left out of a SPEC where it is not used, so that runs from before it existed go on."""

PRIORITIES = 3
"""Priorities that are drawn from, 1 to this (Perković 2000, section 5)."""


def criteria(order: str, drawn: Floats, delays: Integers, run_times: Integers) -> Floats:
    """Return what jobs are sorted by, the largest first; shape (jobs,).

    Parameters
    ----------
    order
        BF: the delay so far, which is order of arrival. P: a priority. R: a random number. L stands for the run time,
        and divides.
    drawn
        Priorities or random numbers.
    delays, run_times
        Seconds.

    >>> criteria("R/L", np.array([0.5, 0.5]), np.array([0, 0]), np.array([10, 100])).tolist()
    [0.05, 0.005]

    References
    ----------
    docs/algorithms.md#orders-of-jobs (Perković 2000, Table 4).
    """
    above: Floats = delays.astype(np.float64) if order == "BF" else np.ones(len(delays)) if order == "1/L" else drawn
    return above / run_times if order.endswith("/L") else above


def ranked(now: int, queue: Queue, run_times: Integers, order: str, weight: float, chance: int) -> Integers:
    """Return the rows of the queue, largest criterion first; equals in order of (submit time, job number).

    Parameters
    ----------
    run_times
        Of the waiting jobs, in seconds.
    weight
        Of the delay in seconds, which is added to the criterion so that nobody starves.
    chance
        What draws are keyed by, beside the job. A priority is drawn once for each job, a random number at each pass.
    """
    if order == "BF":
        return np.arange(len(queue))
    drawn = uniform(chance, queue.job_number, now if order[0] == "R" else 0)
    if order[0] == "P":
        drawn = np.floor(drawn * PRIORITIES) + 1
    delays = now - queue.submit_time
    found = criteria(order, drawn, delays, run_times)
    return np.argsort(-(found + weight * delays), kind="stable")
