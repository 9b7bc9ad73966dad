"""Gradient-boosted trees as tables of numbers. LightGBM grows them; all trees are evaluated in one pass."""

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Final, NamedTuple

import numpy as np

from shadowtime.shared.distributions.outcome_rows import Rows
from shadowtime.shared.formatting import DAY
from shadowtime.shared.kernels import Floats, FloatTable, Integers, kernel

FEATURE, THRESHOLD, BELOW, ABOVE = range(4)
"""Columns of a node: feature, or -1 for a leaf; threshold, or the value of a leaf; next node for feature values up to
the threshold; next node for values above it."""

ALWAYS: Final[dict[str, Any]] = {
    "num_threads": 1,
    "deterministic": True,
    "force_row_wise": True,
    "seed": 1,
    "verbosity": -1,
    "use_missing": False,
    "max_bin": 63,
    "num_leaves": 8,
    "feature_fraction": 0.3,
}


CELLS: Final = 400_000
"""Maximum of jobs times classes times rounds in one step of growing trees. A single larger round is a step, too."""

NOT_INSTALLED: Final = "it needs LightGBM, which is not installed: pip install 'shadowtime[boosted]'"

FULL: Final = (1 << 64) - 1

LOWEST: Final = np.array([0, *((byte & -byte).bit_length() - 1 for byte in range(1, 256))])
"""Position of the lowest bit set in each byte."""


def is_installed() -> bool:
    """Return whether LightGBM is installed."""
    return find_spec("lightgbm") is not None


class Trees(NamedTuple):
    """Trees arranged for evaluation: the questions of all trees by feature, and the values of their leaves.

    A question is an inner node: whether a feature is above the node's threshold.

    Parameters
    ----------
    begins
        Index of the first question about each feature, and the number of questions; shape (features + 1,).
    thresholds
        Threshold of each question, ascending within a feature; shape (questions,).
    asking
        Tree of each question; shape (questions,).
    left
        Leaves of the question's tree that remain if the feature is above the threshold, as bits from the leftmost leaf
        on; shape (questions,).
    roots
        Index in `leaves` of the first leaf of each tree; shape (trees,).
    leaves
        Values of all leaves, tree by tree, from left to right.
    """

    begins: Integers
    thresholds: Floats
    asking: Integers
    left: Integers
    roots: Integers
    leaves: Floats


def asked(nodes: FloatTable, roots: Integers) -> Trees:
    """Return trees from a table of nodes, shape (nodes, 4). `roots` has the root of each tree, of at most 64 leaves."""
    questions: list[tuple[int, float, int, int]] = []
    leaves: list[float] = []
    begins: list[int] = []

    def follow(node: int, tree: int) -> int:
        """Add the leaves and questions of a subtree. Return its leaves as bits."""
        feature, threshold, below, above = nodes[node].tolist()
        if feature < 0:
            leaves.append(threshold)
            return 1 << (len(leaves) - 1 - begins[-1])
        lower = follow(int(below), tree)
        questions.append((int(feature), threshold, tree, ~lower))
        return lower | follow(int(above), tree)

    for tree, root in enumerate(roots.tolist()):
        begins.append(len(leaves))
        follow(root, tree)
    questions.sort()
    features = [question[0] for question in questions]
    ends = np.searchsorted(features, np.arange(max(features, default=-1) + 2)).astype(np.int64)
    return Trees(
        ends,
        np.array([question[1] for question in questions], np.float64),
        np.array([question[2] for question in questions], np.int64),
        np.array([question[3] & FULL for question in questions], np.uint64).view(np.int64),
        np.array(begins, np.int64),
        np.array(leaves, np.float64),
    )


@kernel
def tree_scores(trees: Trees, classes: int, row: Floats) -> Floats:
    """Return the scores of a row of features: for each class the sum over its trees; shape (classes,).

    Tree t belongs to class t mod classes. The questions are visited by feature, not tree by tree. Each feature above a
    threshold removes leaves; the leftmost leaf that remains is the tree's value. O(questions), in memory order.

    >>> nodes = np.array([[0.0, 0.5, 1.0, 2.0], [-1.0, 10.0, 0.0, 0.0], [-1.0, 20.0, 0.0, 0.0]])
    >>> stump = asked(nodes, np.array([0]))
    >>> tree_scores(stump, 1, np.array([0.5])).tolist(), tree_scores(stump, 1, np.array([0.6])).tolist()
    ([10.0], [20.0])
    """
    remaining = np.full(len(trees.roots), -1)
    for feature in range(len(trees.begins) - 1):
        value, end = row[feature], trees.begins[feature + 1]
        at = trees.begins[feature]
        while at < end and not value <= trees.thresholds[at]:
            remaining[trees.asking[at]] &= trees.left[at]
            at += 1

    sums = np.zeros(classes)
    of = 0
    for t in range(len(trees.roots)):
        bits, leaf = remaining[t], trees.roots[t]
        while bits & 255 == 0:
            bits >>= 8
            leaf += 8
        sums[of] += trees.leaves[leaf + LOWEST[bits & 255]]
        of = of + 1 if of + 1 < classes else 0

    return sums


class Fit(NamedTuple):
    """Labels that one model of trees learns from the rows.

    Parameters
    ----------
    labels, weights
        Label and weight of each job, shape (jobs,). Without weights, all jobs count alike.
    rounds
        Number of boosting rounds, each with a tree for each class.
    settings
        Further settings of LightGBM, besides `ALWAYS`.
    start
        Initial scores that the trees are added to, shape (jobs, classes). None stands for 0.
    """

    labels: Floats
    rounds: int
    settings: Mapping[str, Any]
    weights: Floats | None = None
    start: FloatTable | None = None


class Growth:
    """Trees that LightGBM grows in many short steps. The trees are the same as if they were grown at once.

    The result is deterministic. A step takes about 0.1 s: O(`CELLS`), but at least one round.

    Parameters
    ----------
    rows
        Features, shape (jobs, features).
    fits
        The labels and settings of each model of trees to grow on the rows, one model after another. All have the same
        `min_data_in_leaf`, by which LightGBM chooses features.
    steps
        Number of steps to run at once: those that were done before a restart.
    """

    def __init__(self, rows: Rows, fits: Sequence[Fit], steps: int = 0) -> None:
        self._rows = rows
        self._fits = fits
        self._data: Any = None
        self._model: Any = None
        self._nodes: list[list[float]] = []
        self._roots: list[int] = []
        self.steps = 0
        """Number of steps so far."""
        self.trees: list[tuple[FloatTable, Integers]] = []
        """For each finished fit its nodes, shape (nodes, 4), and the root node of each tree."""
        while self.steps < steps:
            self.step()

    @property
    def done(self) -> bool:
        """Whether all trees are grown."""
        return len(self.trees) == len(self._fits)

    def step(self) -> bool:
        """Grow some trees. Return whether all are grown."""
        import lightgbm  # optional, and takes half a second to import

        self.steps += 1
        fit = self._fits[len(self.trees)]
        settings = {**ALWAYS, **fit.settings}
        if self._data is None:
            data = lightgbm.Dataset(self._rows, fit.labels, params=settings, free_raw_data=False)
            self._data = data.construct()
            return False

        if self._model is None:
            first_scores = None if fit.start is None else fit.start.flatten(order="F")
            weights = None if fit.weights is None or (fit.weights == 1).all() else fit.weights  # as LightGBM does
            for field, numbers in (("label", fit.labels), ("weight", weights), ("init_score", first_scores)):
                self._data.set_field(field, numbers)  # `set_weight` and others ignore None

            self._model = lightgbm.Booster(settings, self._data)

        first = self._model.current_iteration()
        rounds = min(max(1, CELLS // (len(self._rows) * self._model.num_model_per_iteration())), fit.rounds - first)
        for _ in range(rounds):
            self._model.update()

        grown = self._model.dump_model(start_iteration=first, num_iteration=rounds)
        self._roots += [self._add(tree["tree_structure"]) for tree in grown["tree_info"]]
        if first + rounds == fit.rounds:
            self.trees.append((np.array(self._nodes, np.float64).reshape(-1, 4), np.array(self._roots, np.int64)))
            self._model, self._nodes, self._roots = None, [], []
        return self.done

    def run(self) -> list[tuple[FloatTable, Integers]]:
        """Grow all trees at once, and return `trees`."""
        while not self.done:
            self.step()

        return self.trees

    def _add(self, tree: dict[str, Any]) -> int:
        at = len(self._nodes)
        if "split_feature" in tree:
            self._nodes.append([tree["split_feature"], tree["threshold"], 0, 0])
            self._nodes[at][BELOW] = self._add(tree["left_child"])
            self._nodes[at][ABOVE] = self._add(tree["right_child"])
        else:
            self._nodes.append([-1, tree["leaf_value"], 0, 0])

        return at


EARLY = 5_000
"""With fewer outcomes than this, trees are also regrown whenever the number of outcomes has grown by half."""


class Regrowth:
    """Trees that are regrown in each period of the log on the last outcomes, and more often at first.

    Parameters
    ----------
    days, fewest
        Length of a period in days, and the fewest outcomes on which trees are grown.
    begin
        Called with `count` and `steps`, returns the growth of trees on the first `count` outcomes, after so many steps.
    """

    def __init__(self, days: int, fewest: int, begin: Callable[[int, int], Growth]) -> None:
        self._days, self._fewest, self._begin = days, fewest, begin
        self.grown = 0
        """Number of outcomes when the growth of the present trees began; 0 before there are trees."""
        self._period = 0
        self._pending: tuple[int, int, Growth] | None = None

    def begin_if_due(self, time: int, count: int) -> None:
        """Begin to regrow the trees if it is due at `time`, in seconds, after `count` outcomes."""
        period, new = time // (self._days * DAY), count - self.grown
        early = count < EARLY and new >= self.grown / 2
        if self._pending is None and count >= self._fewest and (early or (period != self._period and new > 0)):
            self._pending = count, period, self._begin(count, 0)

    def step(self) -> list[tuple[FloatTable, Integers]] | None:
        """Grow some trees if they are due. Return the new trees once all are grown, else None.

        Call this at each event.
        """
        if self._pending is None or not self._pending[2].step():
            return None
        self.grown, self._period, growth = self._pending
        self._pending = None
        return growth.trees

    def snapshot(self) -> dict[str, Any]:
        """Return the state as plain values: counts of the present trees, and of the trees that are being grown."""
        growth = None if self._pending is None else [*self._pending[:2], self._pending[2].steps]
        return {"counts": [self.grown, self._period], "growth": growth}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state of `snapshot`, after the outcomes, from which trees are grown. Other keys are ignored."""
        self.grown, self._period = state["counts"]
        self._pending = None
        if state["growth"] is not None:
            count, period, steps = state["growth"]
            self._pending = count, period, self._begin(count, steps)
