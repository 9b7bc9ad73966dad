"""Gradient-boosted trees as tables of numbers. LightGBM grows them; all trees are evaluated in one pass."""

from importlib.util import find_spec
from typing import Any, Final, NamedTuple

import numpy as np

from shadowtime.shared.distributions.outcome_rows import Rows
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
    """Return the trees of a table of nodes, shape (nodes, 4), as `Trees`. Each tree has at most 64 leaves."""
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


def grown(
    rows: Rows,
    labels: Floats,
    rounds: int,
    *,
    weights: Floats | None = None,
    start: FloatTable | None = None,
    **settings: object,
) -> tuple[FloatTable, Integers]:
    """Return the nodes, and the root node of each tree, that LightGBM grows on these rows. The result is deterministic.

    Parameters
    ----------
    rows
        Features, shape (jobs, features).
    labels, weights
        Label and weight of each job, shape (jobs,).
    rounds
        Number of boosting rounds.
    start
        Initial scores that the trees are added to, shape (jobs, classes). None stands for 0.
    settings
        Further settings of LightGBM, besides `ALWAYS`.
    """
    import lightgbm  # optional, and takes half a second to import

    first = None if start is None else start.flatten(order="F")
    data = lightgbm.Dataset(rows, labels, weight=weights, init_score=first)
    model = lightgbm.train({**ALWAYS, **settings}, data, rounds).dump_model()
    nodes: list[list[float]] = []

    def add(tree: dict[str, Any]) -> int:
        at = len(nodes)
        if "split_feature" in tree:
            nodes.append([tree["split_feature"], tree["threshold"], 0, 0])
            nodes[at][BELOW], nodes[at][ABOVE] = add(tree["left_child"]), add(tree["right_child"])
        else:
            nodes.append([-1, tree["leaf_value"], 0, 0])

        return at

    roots = [add(tree["tree_structure"]) for tree in model["tree_info"]]
    return np.array(nodes, np.float64).reshape(-1, 4), np.array(roots, np.int64)
