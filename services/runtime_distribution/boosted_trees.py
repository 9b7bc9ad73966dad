"""Gradient-boosted trees as tables of numbers: LightGBM grows them, a compiled walk asks them."""

from importlib.util import find_spec
from typing import Any, Final

import numpy as np

from shadowtime.services.runtime_distribution.ended_rows import Rows
from shadowtime.shared.arrays import Floats, FloatTable, Integers
from shadowtime.shared.kernel import kernel

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


POINT: Final[dict[str, Any]] = {
    "objective": "regression_l1",
    "learning_rate": 0.06,
    "min_data_in_leaf": 100,
    "min_sum_hessian_in_leaf": 1e-9,
}
DISTRIBUTION: Final[dict[str, Any]] = {
    "objective": "multiclass",
    "learning_rate": 0.1,
    "min_data_in_leaf": 100,
    "lambda_l2": 100.0,
}


def is_installed() -> bool:
    """Return whether LightGBM is there."""
    return find_spec("lightgbm") is not None


@kernel
def said(nodes: FloatTable, roots: Integers, classes: int, row: Floats) -> Floats:
    """Return what trees say of a row of features, of each class the sum of its own; shape (classes,).

    Tree t is of class t mod classes. O(trees · depth).

    >>> stump = np.array([[0.0, 0.5, 1.0, 2.0], [-1.0, 10.0, 0.0, 0.0], [-1.0, 20.0, 0.0, 0.0]])
    >>> said(stump, np.array([0]), 1, np.array([0.5])).tolist(), said(stump, np.array([0]), 1, np.array([0.6])).tolist()
    ([10.0], [20.0])
    """
    sums = np.zeros(classes)
    for t in range(len(roots)):
        node = roots[t]
        feature = int(nodes[node, FEATURE])
        while feature >= 0:
            node = int(nodes[node, BELOW if row[feature] <= nodes[node, THRESHOLD] else ABOVE])
            feature = int(nodes[node, FEATURE])
        sums[t % classes] += nodes[node, THRESHOLD]
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

    roots = [add(each["tree_structure"]) for each in model["tree_info"]]
    return np.array(nodes, np.float64).reshape(-1, 4), np.array(roots, np.int64)
