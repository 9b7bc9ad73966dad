"""Boosted trees for quantiles of a wait, grown on the features of earlier jobs at submission."""

from typing import Any

import numpy as np

from shadowtime.shared.distributions import (
    Fit,
    Growth,
    OutcomeRows,
    Regrowth,
    Rows,
    Trees,
    asked,
    packed_numbers,
    packed_rows,
    tree_scores,
    unpacked_numbers,
    unpacked_rows,
)
from shadowtime.shared.kernels import Floats, FloatTable, Integers
from shadowtime.shared.statistics import NEAR

FEWEST = 1_000
"""Fewest waits on which trees are grown."""


MAX_FOLLOWED = 5_000
"""Maximum number of waiting jobs whose features are stored. Trees do not learn from jobs submitted beyond this
number."""

ROUNDS = 80
"""Number of trees for each quantile."""

QUANTILE: dict[str, Any] = {
    "objective": "quantile",
    "learning_rate": 0.08,
    "num_leaves": 31,
    "min_data_in_leaf": 100,
    "lambda_l2": 10.0,
    "feature_fraction": 1.0,
    "bagging_fraction": 0.5,
    "bagging_freq": 1,
}
"""Parameters of LightGBM, in addition to the fixed ones of `shared.distributions.boosted_trees`."""


class WaitTrees:
    """Gradient-boosted trees for the pinball loss of the logarithm of a wait, separate ones for each level.

    The trees are grown on the last `history` known waits, from `FEWEST` waits on, by the rule of `Regrowth`. Each event
    grows some of the new trees. The new trees replace the old ones once all of them are grown.

    An event is O(1), and while trees are grown O(`shared.distributions.boosted_trees.CELLS`). A prediction is
    O(levels · trees · leaves). Memory is bounded by `history` and by the jobs that wait.

    Parameters
    ----------
    levels
        Probabilities of a start within the wait, ascending.
    width
        Number of features in a row.
    history
        Maximum number of known waits on which trees are grown.
    days
        Days of the log after which trees are regrown.

    >>> trees = WaitTrees((0.5, 0.9), width=1, history=2_000, days=1)
    >>> for number in range(1_500):
    ...     trees.submit(number, np.array([number % 2], np.float32))
    ...     trees.learn(number, (600 if number % 2 else 6_000) + number % 101)
    ...     trees.grow_if_due(60 * number)
    ...     trees.grow()
    >>> [(np.exp(trees.quantiles(np.array([value], np.float32))) - NEAR).round(-1).tolist() for value in (0, 1)]
    [[6050.0, 6090.0], [650.0, 690.0]]

    References: docs/algorithms.md#trees-on-the-queue (Friedman 2001; Ke 2017; Koenker 1978, for the loss).
    """

    def __init__(self, levels: tuple[float, ...], width: int, history: int, days: int) -> None:
        self._levels, self._width = levels, width
        self._followed: dict[int, Rows] = {}
        self._known = OutcomeRows(history, width, outcomes=1)
        self._growth = Regrowth(days, FEWEST, self._begin_growth)
        self._trees: list[tuple[FloatTable, Integers]] = []
        self._asked: list[Trees] = []

    def quantiles(self, row: Rows) -> Floats | None:
        """Return log(wait + `NEAR`) at each level, shape (levels,), or None before trees are grown.

        The values need not ascend.
        """
        if not self._growth.grown:
            return None
        numbers = row.astype(np.float64)
        return np.array([tree_scores(share, 1, numbers)[0] for share in self._asked])

    def submit(self, job_number: int, row: Rows) -> None:
        """Store the features of a job until it starts."""
        if len(self._followed) < MAX_FOLLOWED:
            self._followed[job_number] = row

    def learn(self, job_number: int, wait: int) -> None:
        """Learn the wait of a job in seconds."""
        row = self._followed.pop(job_number, None)
        if row is not None:
            self._known.add(row, wait)

    def withdraw(self, job_number: int) -> None:
        """Forget a job that leaves without starting."""
        self._followed.pop(job_number, None)

    def grow_if_due(self, time: int) -> None:
        """Begin to regrow the trees if it is due at `time`, in seconds."""
        self._growth.begin_if_due(time, self._known.count)

    def _begin_growth(self, count: int, steps: int) -> Growth:
        """Return new trees, grown by `steps` steps so far, on the last `history` of the first `count` known waits."""
        rows, waits = self._known.in_order(count)
        logs = np.log(waits[:, 0] + NEAR)
        fits = [Fit(logs, ROUNDS, {**QUANTILE, "alpha": level}) for level in self._levels]
        return Growth(rows, fits, steps)

    def grow(self) -> None:
        """Grow some trees if they are due. Call this at each event."""
        if (trees := self._growth.step()) is not None:
            self._trees = trees
            self._asked = [asked(*tree) for tree in self._trees]

    def snapshot(self) -> Any:
        """Return the trees, and the rows on which they are regrown."""
        return {
            "followed": [[number, packed_rows(row)] for number, row in self._followed.items()],
            "known": self._known.snapshot(),
            **self._growth.snapshot(),
            "trees": [[packed_numbers(nodes), packed_numbers(roots)] for nodes, roots in self._trees],
        }

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self._followed = {number: unpacked_rows(row, self._width)[0] for number, row in state["followed"]}
        self._known.restore(state["known"])
        self._trees = [
            (unpacked_numbers(nodes).reshape(-1, 4), unpacked_numbers(roots)) for nodes, roots in state["trees"]
        ]
        self._asked = [asked(*tree) for tree in self._trees]
        self._growth.restore(state)
