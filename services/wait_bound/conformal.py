"""A bound whose level adapts to its own misses, so that its coverage holds when waits drift."""

import heapq
import math
from collections.abc import Iterator
from typing import Any

from shadowtime.services.wait_bound.wait_history import WaitHistory

MAX_AIM = 0.5
"""Maximum of alpha, the target share of misses. If twice the configured share is larger, that is the maximum, up to
1."""

MIN_WAITS = 20
"""Fewest waits for a bound."""


class Conformal:
    """Adaptive conformal inference: after each miss the next bounds are a little higher, after each hit a little lower.

    The bound is the quantile 1 - alpha of the last waits, the largest of them at alpha 0. A job is scored once: at its
    start, or when it has waited for longer than its bound, whichever happens first. So a queue that stands still is
    noticed before a job starts. With the n-th score, alpha moves by gamma / sqrt(n) times the error. Constant steps
    would cover too little: misses while alpha is held at 0 would never be compensated. O(log waits) for each job.

    Parameters
    ----------
    quantile
        The share of jobs that is to wait no longer than their bounds.
    gamma
        Share of the error by which alpha moves with the first scored job.
    most
        Maximum number of stored waits.

    >>> conformal = Conformal(quantile=0.95, gamma=0.05, most=1000)
    >>> for wait in range(100):
    ...     conformal.start(wait, time=wait, wait=wait)
    >>> conformal.bound(now=100)
    94
    >>> conformal.submit(101, time=100, bound=94)
    >>> conformal.bound(now=195)
    99

    References: docs/algorithms.md#conformal-bound (Gibbs 2021; Angelopoulos 2024, for the steps).
    """

    def __init__(self, quantile: float, gamma: float, most: int) -> None:
        self._aim = 1 - quantile
        self._most = max(MAX_AIM, min(2 * self._aim, 1.0))
        self._gamma = gamma
        self._alpha = self._aim
        self._scored = 0
        self.history = WaitHistory(most)
        self._deadlines: list[tuple[int, int]] = []
        self._open: dict[int, int] = {}
        """Deadline of each waiting job that has not been scored."""

    def bound(self, now: int) -> int | None:
        """Return the bound in seconds, or None with fewer than `MIN_WAITS` waits.

        All misses before `now` count, as if they were scored; the state does not change.
        """
        count = len(self.history)
        if count < MIN_WAITS:
            return None
        alpha, scored = self._alpha, self._scored
        if self._deadlines and self._deadlines[0][0] < now:
            for _ in self._missed(now):
                if alpha <= 0.0:  # further misses do not change it
                    break
                scored += 1
                alpha = self._moved(alpha, 1, scored)

        rank = min(max(math.ceil((1 - alpha) * count - 1e-9), 1), count)
        return self.history.ordered[rank - 1]

    def _missed(self, now: int) -> Iterator[int]:
        """Yield the jobs that have waited longer than their bounds but are not scored yet; O(their number)."""
        missed, places = set[int](), [0]
        while places:  # indices into the heap: the children of a deadline are not earlier than it
            place = places.pop()
            if place < len(self._deadlines) and self._deadlines[place][0] < now:
                deadline, job_number = self._deadlines[place]
                if self._open.get(job_number) == deadline and job_number not in missed:
                    missed.add(job_number)
                    yield job_number
                places += (2 * place + 1, 2 * place + 2)

    def submit(self, job_number: int, time: int, bound: int) -> None:
        """Store the bound of a job submitted at `time`, both in seconds."""
        self._open[job_number] = time + bound
        heapq.heappush(self._deadlines, (time + bound, job_number))

    def advance(self, now: int) -> None:
        """Score as misses the jobs that have waited longer than their bounds before `now`."""
        while self._deadlines and self._deadlines[0][0] < now:
            deadline, job_number = heapq.heappop(self._deadlines)
            if self._open.get(job_number) == deadline:
                del self._open[job_number]
                self._score(1)

    def withdraw(self, job_number: int, now: int) -> None:
        """Drop the bound of a job that leaves without starting. If its deadline has passed, score the job first."""
        self.advance(now)
        self._open.pop(job_number, None)

    def start(self, job_number: int, time: int, wait: int) -> None:
        """Learn the wait of a job that starts at `time`, both in seconds, and score the job if it is not scored yet."""
        self.advance(time)
        if self._open.pop(job_number, None) is not None:
            self._score(0)
        self.history.add(wait)
        if len(self._deadlines) > 2 * len(self._open) + 64:  # most belong to jobs that have started
            self._sort_deadlines()

    def _score(self, miss: int) -> None:
        self._scored += 1
        self._alpha = self._moved(self._alpha, miss, self._scored)

    def _moved(self, alpha: float, miss: int, scored: int) -> float:
        return min(max(alpha + self._gamma / math.sqrt(scored) * (self._aim - miss), 0.0), self._most)

    def snapshot(self) -> Any:
        """Return level, waits, and the deadlines of the jobs that have not been scored."""
        return {
            "alpha": self._alpha,
            "scored": self._scored,
            "history": self.history.snapshot(),
            "open": [[number, deadline] for number, deadline in self._open.items()],
        }

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self._alpha, self._scored = state["alpha"], state["scored"]
        self.history.restore(state["history"])
        self._open = dict(state["open"])
        self._sort_deadlines()

    def _sort_deadlines(self) -> None:
        self._deadlines = [(deadline, number) for number, deadline in self._open.items()]
        heapq.heapify(self._deadlines)
