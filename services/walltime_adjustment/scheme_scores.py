"""Scores of all schemes so far, and the choice of one to follow within a bound on bad under-estimates."""

from bisect import bisect_left
from typing import Any

import numpy as np

from shadowtime.shared.distributions import BINS
from shadowtime.shared.kernels import Floats, Integers, kernel
from shadowtime.shared.messages import BAD_GAP

Times = Integers
"""Adjusted requests of all schemes in seconds, shape (schemes,)."""

Choice = Integers
"""Index of the chosen scheme in each class of requests, shape (classes,)."""


PRICES = (0.0, *(1.25**step for step in range(-16, 33)), np.inf)
"""Prices of a bad under-estimate, in units of accuracy. The last price excludes every scheme that has had one."""

EVERY = 50
"""Number of ended jobs after which the choice is made anew."""

HORIZON = 1000
"""Minimum number of future jobs over which the rest of the bound is spread; a fifth of the ended jobs if that is
more."""

RESERVE = 0.05
"""Share of the bound that is kept for jobs that still run."""

MIN_ENDED = 20
"""Fewest ended jobs in a class of requests before requests of the class are adjusted."""


@kernel
def add_scores(accuracy: Floats, bad: Integers, run_time: int, requested_time: int, adjusted_times: Integers) -> None:
    """Add each scheme's accuracy and bad under-estimate to the sums in place; times in seconds, shapes (schemes,)."""
    for scheme in range(len(adjusted_times)):
        time = adjusted_times[scheme]
        accuracy[scheme] += min(time, run_time) / max(time, run_time)
        if run_time - time >= BAD_GAP and time != requested_time:
            bad[scheme] += 1


class SchemeScores:
    """Accuracy and bad under-estimates of each scheme, by class of request, and the scheme chosen in each class.

    A class is a bin of run times into which requests fall. The scheme chosen in a class has the highest accuracy so
    far, less a price for each bad under-estimate. The price is the same in all classes. It is the least price that
    keeps the rate of bad under-estimates within the bound, over all past and future adjustments. So a short request is
    cut by accuracy alone, because no job in its class can run half an hour longer than adjusted. Bad under-estimates
    are thus allowed in the classes where they gain the most accuracy. An end costs O(schemes). After `EVERY` ends, the
    choice costs O(log(prices) * classes * schemes).

    Parameters
    ----------
    schemes
        Number of schemes. Bolder schemes come before more careful ones; the last one adjusts nothing.
    bad
        Target for the highest share of badly under-estimated jobs. Once this share is used up, a class only follows
        schemes that have had no bad under-estimate in the class.
    """

    def __init__(self, schemes: int, bad: float) -> None:
        self._most = bad * (1.0 - RESERVE)
        self._jobs = np.zeros(BINS, dtype=np.int64)
        self._accuracy = np.zeros((BINS, schemes))
        self._bad = np.zeros((BINS, schemes), dtype=np.int64)
        self._ended = 0
        self._own_bad = 0
        self.chosen: Choice = np.full(BINS, schemes - 1)

    def add(self, class_: int, chosen: int, run_time: int, requested_time: int, adjusted_times: Times) -> None:
        """Score the proposals of all schemes for a job that has ended. Times in seconds.

        `class_` is the class of the job's request, and `chosen` the index of the scheme that was followed for the job.
        """
        self._jobs[class_] += 1
        self._ended += 1
        accuracy, bad = self._accuracy[class_], self._bad[class_]
        before = int(bad[chosen])
        add_scores(accuracy, bad, run_time, requested_time, adjusted_times)
        self._own_bad += int(bad[chosen]) - before
        if self._ended % EVERY == 0:
            self._choose()

    def _choose(self) -> None:
        """Choose the scheme of each class anew, at the least price that keeps the bound.

        Bisection finds this price, because higher prices give fewer bad under-estimates.
        """
        jobs = self._ended
        horizon = max(HORIZON, jobs // 5)
        allowed = max((self._most * (jobs + horizon) - self._own_bad) / horizon, 0.0)
        classes = np.flatnonzero(self._jobs)
        seen = self._jobs[classes, None]
        accuracy, bad = self._accuracy[classes] / seen, self._bad[classes] / seen
        accuracy[seen[:, 0] < MIN_ENDED, :-1] = -1.0
        weights = seen[:, 0] / jobs

        def best(price: float) -> Choice:
            worth = accuracy - price * bad if price < np.inf else np.where(bad > 0.0, -1.0, accuracy)
            chosen: Choice = worth.shape[1] - 1 - np.argmax(worth[:, ::-1], axis=1)  # the most careful of equals
            return chosen

        def spends(price: float) -> float:
            return float((weights * bad[np.arange(len(classes)), best(price)]).sum())

        price = PRICES[bisect_left(PRICES[:-1], True, key=lambda price: spends(price) <= allowed)]
        self.chosen[:] = len(self._accuracy[0]) - 1
        self.chosen[classes] = best(price)

    def snapshot(self) -> Any:
        """Return the scores and the chosen schemes as plain values. Classes without jobs have no scores."""
        return {
            "classes": [
                [class_, int(self._jobs[class_]), self._accuracy[class_].tolist(), self._bad[class_].tolist()]
                for class_ in np.flatnonzero(self._jobs).tolist()
            ],
            "own_bad": self._own_bad,
            "chosen": self.chosen.tolist(),
        }

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        for sums in (self._jobs, self._accuracy, self._bad):
            sums[:] = 0
        for class_, jobs, accuracy, bad in state["classes"]:
            self._jobs[class_], self._accuracy[class_], self._bad[class_] = jobs, accuracy, bad
        self._ended = int(self._jobs.sum())
        self._own_bad = state["own_bad"]
        self.chosen = np.array(state["chosen"], dtype=np.int64)
