"""Worked examples of clusters of waits and of rare runs."""

from typing import Any

import numpy as np
import pytest

from shadowtime.services.wait_bound.groups.change_point_table import THRESHOLDS
from shadowtime.services.wait_bound.groups.clustering import Clusters, clusterings, cut, initial
from shadowtime.shared.kernels.arrays import Floats, Integers
from tests.conformance.vectors.vector import vector
from tests.support.plain_formulas import merge_deltas


def jobs(example: Any) -> tuple[Integers, Floats]:
    """Return values and waits of all jobs."""
    data = [(int(value), wait) for value, waits in example["data"].items() for wait in waits]
    values, waits = zip(*data, strict=True)
    return np.array(values), np.array(waits)


def steps(example: Any) -> list[Clusters]:
    """Return the clusterings from one cluster per value down to a single one."""
    values, waits = jobs(example)
    return clusterings(initial(values, waits, offset=0.0, minimum_end=0), least=1, most=15)[::-1]


def assert_step(found: Clusters, values: Integers, step: Any) -> None:
    ends = found.ends.tolist()
    above = [-1, *ends[:-1]]
    assert len(ends) == step["k"]
    assert [[values[values > below].min(), end] for below, end in zip(above, ends, strict=True)] == step["clusters"]
    assert found.log_likelihood == pytest.approx(step["logL"], abs=1e-6)
    assert found.bic == pytest.approx(step["BIC"], abs=1e-6)
    if "merge_deltas" in step:
        assert merge_deltas(found) == pytest.approx(step["merge_deltas"], abs=1e-9)


def test_four_waits() -> None:
    example = vector("p2_exp_cluster_4pts")
    values, waits = jobs(example)
    for found, step in zip(steps(example), example["steps"], strict=True):
        assert_step(found, values, step)
    assert len(cut(values, waits, offset=0.0, minimum_end=0)) + 1 == example["best_k"]


def test_many_waits() -> None:
    example = vector("p2_exp_cluster_360pts")
    values, waits = jobs(example)
    found = steps(example)
    for each, step in zip(found, example["steps"], strict=True):
        assert_step(each, values, step)
    assert_step(max(found, key=lambda each: each.bic), values, example["best"])
    ends = [end for _, end in example["best"]["clusters"]]
    assert cut(values, waits, offset=0.0, minimum_end=0) == ends[:-1]


def test_rare_runs() -> None:
    rows = vector("p2_ar1_rare_event_lut")["table"]
    assert {row["rho"]: row["run_threshold_distinct_runs"] for row in rows} == THRESHOLDS
