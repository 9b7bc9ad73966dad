"""Worked examples of EASY backfilling."""

from typing import Any

import numpy as np
import pytest

from services.scheduler.easy import easy_pass, shadow_of
from services.scheduler.policies import POLICIES
from services.scheduler.probabilistic import add_risk
from shared.events import Backfilled, Evaluated, Start
from shared.spec import Spec
from tests.services.scheduler.instances import Instance, StartedJob, WaitingJob
from tests.vectors.vector import vector

CASES = ["cand_ends_exactly_at_shadow", "cand_ends_after", "cand_uses_extra"]


def instance_of(example: dict[str, Any], case: dict[str, Any]) -> Instance:
    size, seconds = case["cand"]
    head_size = case.get("head_size", example["head_size"])
    assert example["machine"] == example["idle"] + sum(size for size, _ in example["running"])
    return Instance(
        now=0,
        free=example["idle"],
        queue=[WaitingJob(1, 0, head_size, 500, 500), WaitingJob(2, 0, size, seconds, seconds)],
        running=[StartedJob(3 + i, 0, size, end, end, 0) for i, (size, end) in enumerate(example["running"])],
        corrections=(),
    )


@pytest.mark.parametrize("name", CASES)
def test_easy_degenerate_by_policy(name: str) -> None:
    example = vector("p0_easy_degenerate")
    case = example[name]
    instance = instance_of(example, case)
    decisions = POLICIES.build(Spec("easy")).schedule(instance.now, *instance.tables(), instance.free)
    starts = [each for each in decisions if isinstance(each, Start)]
    assert [start.job_number for start in starts] == ([2] if case["backfill"] else [])
    for start in starts:
        assert isinstance(start.reason, Backfilled)
        assert start.reason.shadow_time == 100
        assert start.reason.ends_by_shadow_time == (name == "cand_ends_exactly_at_shadow")


@pytest.mark.parametrize("name", CASES)
def test_easy_degenerate_by_kernel(name: str) -> None:
    example = vector("p0_easy_degenerate")
    case = example[name]
    queue, running = instance_of(example, case).tables()
    heads, shadow_time, extra, rows = easy_pass(
        *(0, example["idle"], queue.processors, queue.predicted_time, np.arange(2), running.processors),
        *(running.start_time, running.predicted_time, running.requested_time, running.corrections),
    )
    assert (heads, rows.tolist()) == (0, [1] if case["backfill"] else [])
    if case["backfill"]:
        assert (shadow_time, extra) == (100, 10 - 4 - int(queue.processors[0]))


def test_easy_degenerate_shadow() -> None:
    example = vector("p0_easy_degenerate")
    sizes, ends = (np.array(column) for column in zip(*example["running"], strict=True))
    assert example["cq"] == example["head_size"] - example["idle"]
    assert shadow_of(example["head_size"], example["idle"], sizes, ends) == (100, 0)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("criterion", ["exact", "paper"])
def test_easy_degenerate_by_probability(name: str, criterion: str) -> None:
    example = vector("p0_easy_degenerate")
    case = example[name]
    instance = instance_of(example, case)
    policy = POLICIES.build(Spec("probabilistic", {"criterion": criterion}))
    decisions = policy.schedule(instance.now, *instance.tables(), instance.free)
    (evaluated,) = (each for each in decisions if isinstance(each, Evaluated))
    assert evaluated.probabilities == evaluated.bounds == (float(case["stat"]),)
    assert evaluated.accepted == case["backfill"]


def test_risk_to_one_head_adds_up() -> None:
    example = vector("p0_repeated_risk")
    spent, found = 0.0, {}
    for decision in range(1, max(example["decisions"]) + 1):
        spent = add_risk(spent, example["tau"])
        found[decision] = spent
    assert [found[n] for n in example["decisions"]] == pytest.approx(example["prob_at_least_one_delay"], abs=1e-6)
