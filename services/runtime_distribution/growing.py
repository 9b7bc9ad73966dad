"""How LightGBM grows the trees of `boosted`, beside what `shared.boosted_trees` always keeps to."""

from typing import Any, Final

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
