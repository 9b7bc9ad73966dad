"""The probability that a job, started now, delays the blocked head of the queue.

The head waits until running jobs have released `needed` more processors. If the candidate starts, the head waits for
`needed` plus the candidate's own processors. Consider the first instant at which the running jobs have released enough
for the head alone. The head is delayed exactly if two conditions hold at this instant: the running jobs have not
released enough for both jobs, and the candidate still runs.

The scheduler walks over the running jobs once (`walk`) and calls `delay_of` for each candidate (`acceptance.py`).
`delay_probability` does both for one candidate, from plain numbers.

Terminations of running jobs are independent. Terminations at one instant have a fixed order. First come the jobs that
can end at no other time, all in one step. Then come the others, job by job.

References: docs/algorithms.md#exact-delay-probability; for the lower bound, docs/algorithms.md#the-papers-bound
(Nissimov 2007, section 4 and Algorithm 2).
"""

from collections.abc import Mapping, Sequence

import numpy as np

from shadowtime.services.scheduler.kernels import UNBOUNDED, Walk, by_time, walk
from shadowtime.shared.kernels import Floats, FloatTable, kernel


@kernel
def delay_of(
    at: Floats, delays: FloatTable, bounds: FloatTable, kind: int, times: Floats, probabilities: Floats
) -> tuple[float, float]:
    """Return the exact probability that a candidate delays the head, and the paper's lower bound on it.

    O(steps + events of the candidate).

    Parameters
    ----------
    at, delays, bounds
        Fields of a `Walk`; `at` is its `times`.
    kind
        Index of the candidate's size among the sizes of the walk.
    times, probabilities
        Terminations of the candidate, rising in time.
    """
    exact, bound, row = 0.0, 0.0, 0
    left = 1.0
    for k in range(len(times)):
        while row < len(at) and at[row] < times[k]:
            exact += delays[row, kind] * left
            row += 1
        if row > 0:
            bound += probabilities[k] * bounds[row - 1, kind]
        left -= probabilities[k]

    return min(max(exact, 0.0), 1.0), min(max(bound, 0.0), 1.0)


def walk_over(needed: int, running: Sequence[tuple[int, Mapping[float, float]]], candidates: Sequence[int]) -> Walk:
    """Return the walk over running jobs, given as for `delay_probability`, for these sizes of candidates."""
    events = [(time, job, p) for job, (_, ends) in enumerate(running) for time, p in sorted(ends.items()) if p > 0]
    ordered = by_time(
        np.array([time for time, _, _ in events], dtype=np.float64),
        np.array([job for _, job, _ in events], dtype=np.int64),
        np.array([p for _, _, p in events], dtype=np.float64),
    )
    sizes = np.array([size for size, _ in running], dtype=np.int64)
    return Walk(*walk(needed, sizes, *ordered, np.unique(np.array(candidates, dtype=np.int64)), UNBOUNDED))


def delay_probability(
    needed: int,
    running: Sequence[tuple[int, Mapping[float, float]]],
    candidate: tuple[int, Mapping[float, float]],
) -> float:
    """Return the exact probability that starting a candidate now delays the blocked head.

    Parameters
    ----------
    needed
        Processors that running jobs must release before the head can start: its size less the idle ones.
    running
        For each running job its processors, and the probability of each time at which it may end, in seconds.
    candidate
        The same for the candidate.

    Raise `ValueError` if `needed` is below 1, or if a job has no processors or invalid ends. No time may be NaN, no
    probability negative, and the probabilities of a job must add up to 1.

    >>> running = [(2, {10: 0.5, 40: 0.5}), (3, {20: 0.25, 50: 0.75}), (4, {30: 0.2, 60: 0.8})]
    >>> round(delay_probability(2, running, (2, {15: 0.5, 35: 0.3, 70: 0.2})), 6)
    0.6225
    """
    return _delay(needed, running, candidate)[0]


def delay_bound(
    needed: int,
    running: Sequence[tuple[int, Mapping[float, float]]],
    candidate: tuple[int, Mapping[float, float]],
) -> float:
    """Return the paper's lower bound on `delay_probability`, from the same arguments.

    >>> running = [(2, {10: 0.5, 40: 0.5}), (3, {20: 0.25, 50: 0.75}), (4, {30: 0.2, 60: 0.8})]
    >>> round(delay_bound(2, running, (2, {15: 0.5, 35: 0.3, 70: 0.2})), 6)
    0.52
    """
    return _delay(needed, running, candidate)[1]


def _delay(
    needed: int,
    running: Sequence[tuple[int, Mapping[float, float]]],
    candidate: tuple[int, Mapping[float, float]],
) -> tuple[float, float]:
    if needed < 1:
        raise ValueError(f"the head lacks {needed} processors, expected at least 1: the head is not blocked")
    for job, (size, ends) in enumerate([*running, candidate]):
        name = "the candidate" if job == len(running) else f"running job {job}"
        if any(time != time for time in ends):
            raise ValueError(f"{name} has the end NaN, expected numbers")
        if size < 1:
            raise ValueError(f"{name} has {size} processors, expected at least 1")
        if (least := min(ends.values(), default=0.0)) < 0:
            raise ValueError(f"{name} has the probability {least}, expected at least 0")
        if not abs((total := sum(ends.values())) - 1) <= 1e-9:
            raise ValueError(f"{name} has probabilities that add up to {total}, expected 1")

    size, ends = candidate
    walked = walk_over(needed, running, [size])
    times = np.array(sorted(ends), dtype=np.float64)
    probabilities = np.array([ends[time] for time in times.tolist()], dtype=np.float64)
    return delay_of(walked.times, walked.delays, walked.bounds, 0, times, probabilities)
