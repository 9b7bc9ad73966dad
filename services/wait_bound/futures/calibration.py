"""Calibration of futures by observed waits, for one queue or for the whole cluster."""

from functools import partial
from typing import Any

import numpy as np

from shadowtime.services.wait_bound.bounder import IssuedBounds
from shadowtime.services.wait_bound.conformal import MIN_WAITS
from shadowtime.services.wait_bound.coverage_monitor import LiveCoverage
from shadowtime.services.wait_bound.futures.online_quantiles import TrackedQuantiles
from shadowtime.services.wait_bound.settings import HistorySettings
from shadowtime.services.wait_bound.wait_history import WaitHistory, at_rank
from shadowtime.shared.kernels import Floats, FloatTable
from shadowtime.shared.messages import Coverage, JobSubmitted, WaitBound
from shadowtime.shared.statistics import NEAR

LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.8, 0.9, 0.95, 0.99)
"""Levels of the published quantiles of the wait, besides the quantile of the bound."""


class JudgedFutures:
    """Quantiles of the wait, calibrated by the waits of one queue or cluster.

    Their sources are the waits of jobs with similar forecasts, all waits of the queue or cluster, and optionally trees.
    O(log waits) and the cost of `TrackedQuantiles`.

    Parameters
    ----------
    queue
        None for all queues of a cluster together.
    sources
        Number of sources: 2, or 3 with trees.

    References: docs/algorithms.md#bounds-from-futures.
    """

    def __init__(self, queue: int | None, settings: HistorySettings, sources: int) -> None:
        self.queue = queue
        self._quantile = settings.quantile
        self._levels = levels(settings)
        self._history = WaitHistory(settings.history)
        self._tracked = TrackedQuantiles(self._levels, sources)
        self._sources = sources
        self._coverage = LiveCoverage(settings.quantile)
        self._bounds: dict[int, int] = {}
        """Bound that was published for each waiting job, in seconds."""

    def quantiles(self, alike: Floats, trees: Floats | None) -> FloatTable | None:
        """Return the quantiles of the sources as logarithms for `TrackedQuantiles`; None with too few waits.

        The shape is (levels, sources).

        Parameters
        ----------
        alike
            Waits of the jobs with similar forecasts, in seconds, ascending.
        trees
            Quantiles of the trees as logarithms, shape (levels,). None before trees are grown: the first source then
            replaces them.
        """
        count = len(self._history)
        if count < MIN_WAITS or not len(alike):
            return None
        levels = np.array(self._levels)
        here = [at_rank([self._history], rank) for rank in _ranks(levels, count).tolist()]
        logs = [np.log(alike[_ranks(levels, len(alike)) - 1] + NEAR), np.log(np.array(here, dtype=np.float64) + NEAR)]
        if self._sources > len(logs):
            logs.append(logs[0] if trees is None else trees)
        return np.stack(logs, axis=1)

    def submit(self, job: JobSubmitted, quantiles: FloatTable | None) -> None:
        """Store the quantiles and the bound of a job until it starts."""
        if quantiles is not None:
            self._tracked.tell(job.job_number, float(job.since), quantiles)
            seconds = self._tracked.seconds(quantiles)
            self._bounds[job.job_number] = int(seconds[self._levels.index(self._quantile)])

    def issued(self) -> IssuedBounds:
        """Return the bounds of the waiting jobs."""
        return IssuedBounds(self._quantile, self._bounds.get, self._coverage.revealed, self._coverage.share)

    def learn(self, job_number: int, wait: int) -> tuple[Coverage, ...]:
        """Learn the wait of a job in seconds. Return the coverage message that is due, if any."""
        self._tracked.start(job_number, float(wait))
        self._history.add(wait)
        bound = self._bounds.pop(job_number, None)
        if bound is None or not self._coverage.add(covered=wait <= bound):
            return ()
        return (self._coverage.message("futures", self.queue),)

    def withdraw(self, job_number: int) -> None:
        """Forget a job that leaves without starting."""
        self._tracked.withdraw(job_number)
        self._bounds.pop(job_number, None)

    def advance(self, now: int) -> None:
        """Learn from the jobs that have waited longer than their quantiles at `now`, in seconds."""
        if self._bounds:
            self._tracked.advance(float(now))

    def message(self, quantiles: FloatTable | None, quantile: float, confidence: float) -> WaitBound:
        """Return the message of a bound, interpolated linearly between levels, with the quantiles of all levels.

        Without a bound, the message has a reason.
        """
        count, (least, *_, most) = len(self._history), self._levels
        at = partial(WaitBound, grouping="futures", queue=self.queue, quantile=quantile, confidence=confidence)
        if quantiles is None:
            return at(observations=count, reason=f"not enough history: {count} of {MIN_WAITS} waits")
        if not least <= quantile <= most:
            reason = f"futures have quantiles from {least:g} to {most:g}, not {quantile:g}"
            return at(observations=count, reason=reason)
        seconds = self._tracked.seconds(quantiles)
        within = tuple((level, int(bound)) for level, bound in zip(self._levels, seconds.tolist(), strict=True))
        bound = int(np.interp(quantile, self._levels, seconds))
        return at(bound=bound, observations=count, starts_within=within)

    def snapshot(self) -> Any:
        """Return everything as plain values."""
        parts = self._history, self._tracked, self._coverage
        return {"parts": [part.snapshot() for part in parts], "bounds": list(self._bounds.items())}

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        history, tracked, coverage = state["parts"]
        self._history.restore(history)
        self._tracked.restore(tracked)
        self._coverage.restore(coverage)
        self._bounds = dict(state["bounds"])


def levels(settings: HistorySettings) -> tuple[float, ...]:
    """Return the levels of the published quantiles, ascending."""
    return tuple(sorted({*LEVELS, settings.quantile}))


def _ranks(ranks: Floats, count: int) -> Any:
    """Return the rank, from 1 on, of each quantile among `count` waits."""
    return np.maximum(np.ceil(ranks * count - 1e-9).astype(np.int64), 1)
