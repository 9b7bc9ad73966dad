"""Wait bounds of a young run: its known waits are mostly short, as long waits are not over yet."""

import math
from collections import deque
from typing import Any

import numpy as np

from shadowtime.services.wait_bound.binomial_ranks import upper_rank
from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.kernels import Integers

YOUNG = 1_000
"""Number of known waits from which on a queue, or a cluster, is not young any more."""

MAX_OPEN = 2_000
"""The maximum number of waiting jobs with which a young run has bounds."""

RATIOS = 200
"""The number of last outcomes by which bounds are widened."""

BEYOND = 1.5
"""Assumed ratio of the whole wait to the wait so far of a job that still waits beyond its bound."""

FLOOR = 60
"""Seconds that are added to a wait and its bound before their ratio is computed, so that short waits count little."""


def censored_quantile(waits: Integers, so_far: Integers, share: float) -> int | None:
    """Return the wait that the `share` of jobs does not exceed, by the product-limit estimate.

    Jobs that still wait have waited `so_far`: their whole waits are longer, but unknown. Return None if too many of
    them wait. Both arrays are sorted. O(jobs).

    >>> censored_quantile(np.array([0, 10, 20, 30]), np.array([], dtype=np.int64), 0.5)
    10
    >>> censored_quantile(np.array([0, 10, 20, 30]), np.array([15, 15, 15, 15]), 0.5)
    20
    >>> censored_quantile(np.array([0, 10]), np.array([60, 60]), 0.95) is None
    True

    References: docs/algorithms.md#bounds-of-a-young-run (Kaplan 1958).
    """
    times, counts = np.unique(waits, return_counts=True)
    at_risk = len(waits) - np.searchsorted(waits, times) + len(so_far) - np.searchsorted(so_far, times)
    longer = np.cumprod(1.0 - counts / at_risk)
    places = np.flatnonzero(longer <= 1.0 - share + 1e-9)
    return int(times[places[0]]) if len(places) else None


class YoungRun:
    """The waits of a young queue, and the factor by which its bounds are widened.

    A bound is at least the quantile of all waits, also of those that are not over yet. It is multiplied by a factor of
    at least 1. The factor is the quantile of wait / bound over the last started jobs and the jobs that still wait
    beyond their bounds. A queue is not young any more once `YOUNG` waits are known and the factor is 1. Memory is
    bounded by `YOUNG` and by the waiting jobs. O(waits + waiting jobs) a submission.

    >>> young = YoungRun(0.95)
    >>> for number in range(100):
    ...     young.submit(number, since=0, bound=None)
    >>> for number in range(80):
    ...     young.reveal(number, wait=number)
    >>> young.least(0.95, 0.95, now=500) is None, young.reason
    (True, 'the run is young: 20 of 100 jobs still wait')
    """

    def __init__(self, quantile: float) -> None:
        self._quantile = quantile
        self._waits: deque[int] = deque(maxlen=YOUNG)
        self._open: dict[int, tuple[int, int | None]] = {}
        """Beginning of the wait, and bound without the factor, by waiting job."""
        self._ratios: deque[float] = deque(maxlen=RATIOS)
        self._factor = 1.0

    @property
    def over(self) -> bool:
        """Whether the queue is not young any more."""
        return len(self._waits) >= YOUNG and self._factor <= 1.0

    @property
    def reason(self) -> str:
        """The reason for a missing bound."""
        waiting = len(self._open)
        return f"the run is young: {waiting:,} of {waiting + len(self._waits):,} jobs still wait"

    def least(self, quantile: float, confidence: float, now: int) -> int | None:
        """Return the lower limit of a bound of this quantile in seconds, from all waits, finished or not.

        Return None if no wait is known, or if too many jobs still wait.
        """
        count = len(self._waits)
        if not count or len(self._open) > MAX_OPEN:
            return None
        rank = upper_rank(count, quantile, confidence)
        share = 1.0 if rank is None else rank / count
        so_far = np.sort(np.array([max(now - since, 0) for since, _ in self._open.values()], dtype=np.int64))
        return censored_quantile(np.sort(np.array(self._waits, dtype=np.int64)), so_far, share)

    def widened(self, bound: int | None, least: int | None) -> int | None:
        """Return the factor times the larger of `bound` and `least`, in whole seconds; None if either is None."""
        if bound is None or least is None:
            return None
        return min(math.ceil(max(bound, least) * self._factor), MAX_DURATION)

    def submit(self, job_number: int, since: int, bound: int | None) -> None:
        """Record the bound of a job, without the factor."""
        self._open[job_number] = since, bound

    def advance(self, now: int) -> None:
        """Compute the factor for bounds that are published `now`, if at most `MAX_OPEN` jobs wait. O(waiting jobs)."""
        if len(self._open) > MAX_OPEN:
            return
        open_ratios = (_ratio(now - since, bound) for since, bound in self._open.values() if bound is not None)
        ratios = sorted([*self._ratios, *(BEYOND * ratio for ratio in open_ratios if ratio > 1.0)])
        place = min(math.ceil(self._quantile * (len(ratios) + 1)), len(ratios))
        self._factor = max(ratios[place - 1], 1.0) if ratios else 1.0

    def reveal(self, job_number: int, wait: int) -> None:
        """Learn the wait of a job that starts, in seconds."""
        self._waits.append(wait)
        _, bound = self._open.pop(job_number, (0, None))
        if bound is not None:
            self._ratios.append(_ratio(wait, bound))

    def withdraw(self, job_number: int) -> None:
        """Forget a job that leaves without starting."""
        self._open.pop(job_number, None)

    def snapshot(self) -> dict[str, Any]:
        """Return the state as plain values."""
        waiting = [[number, *job] for number, job in self._open.items()]
        return {
            "waits": list(self._waits),
            "open": waiting,
            "ratios": list(self._ratios),
            "factor": self._factor,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        self._waits.extend(state["waits"])
        self._open = {number: (since, bound) for number, since, bound in state["open"]}
        self._ratios.extend(state["ratios"])
        self._factor = state["factor"]


def _ratio(wait: int, bound: int) -> float:
    return (wait + FLOOR) / (bound + FLOOR)
