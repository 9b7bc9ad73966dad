"""Gradient-boosted trees as tables of numbers: LightGBM grows them, and they are asked all at once."""

from importlib.util import find_spec
from typing import Any, Final, NamedTuple

import numpy as np

from shadowtime.shared.distributions.outcome_rows import Rows
from shadowtime.shared.kernels import Floats, FloatTable, Integers, kernel

FEATURE, THRESHOLD, BELOW, ABOVE = range(4)
"""Columns of a node: what it asks for, -1 of a leaf; up to what it goes `BELOW`, or what a leaf says; nodes next."""

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


NOT_INSTALLED: Final = "it takes LightGBM, which is not installed: pip install 'shadowtime[boosted]'"

FULL: Final = (1 << 64) - 1

LOWEST: Final = np.array([0, *((byte & -byte).bit_length() - 1 for byte in range(1, 256))])
"""The lowest bit that is set in each byte."""


def is_installed() -> bool:
    """Return whether LightGBM is there."""
    return find_spec("lightgbm") is not None


class Trees(NamedTuple):
    """Trees as they are asked: the questions of all of them by feature, and what their leaves say.

    Parameters
    ----------
    begins
        Where the questions about each feature begin, and the last ones end; shape (features + 1,).
    thresholds
        Of each question, ascending within a feature; shape (questions,).
    asking
        Which tree asks each; shape (questions,).
    left
        The leaves of that tree, as bits from the leftmost on, that are left where the feature is above the threshold.
    roots
        What the leaves of each tree say, from the left, one tree after the other: where each begins.
    leaves
        What all of them say.
    """

    begins: Integers
    thresholds: Floats
    asking: Integers
    left: Integers
    roots: Integers
    leaves: Floats


def asked(nodes: FloatTable, roots: Integers) -> Trees:
    """Return trees of nodes, each of at most 64 leaves, as they are asked."""
    questions: list[tuple[int, float, int, int]] = []
    leaves: list[float] = []
    begins: list[int] = []

    def follow(node: int, tree: int) -> int:
        """Take in what is below a node; return its leaves as bits."""
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
    """Return what trees say of a row of features, of each class the sum of its own; shape (classes,).

    Tree t is of class t mod classes. All questions are gone through by feature rather than tree after tree: each answer
    of no strikes out leaves, and of a tree the leftmost that remains speaks. O(questions), in the order of memory.

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
    """Return the nodes, and the first of each tree, that LightGBM grows on these rows; the same for the same rows.

    Parameters
    ----------
    rows
        Features, shape (jobs, features).
    labels, weights
        Shape (jobs,).
    start
        Scores that the trees are added to, shape (jobs, classes); 0 if there are none.
    settings
        LightGBM's, beside those that are always the same.
    """
    import lightgbm  # optional, and half a second to import

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
