"""Worked examples of EASY backfilling."""

from typing import Any

import numpy as np
import pytest

from shadowtime.services.scheduler.ordering.columns import WaitingColumns
from shadowtime.services.scheduler.ordering.distribution_measures import RunTimeMeasures
from shadowtime.services.scheduler.ordering.orders import wfp3
from shadowtime.services.scheduler.probabilistic.head_guard import add_risk
from shadowtime.services.scheduler.registry import POLICIES
from shadowtime.services.scheduler.tables.expected_end import expected_ends
from shadowtime.shared.kernels.easy_backfill import easy_pass, shadow_of
from shadowtime.shared.messages.decisions import Evaluated, Start
from shadowtime.shared.messages.reasons import Backfilled
from shadowtime.shared.spec import Spec
from shadowtime.testing.instances import Instance, StartedJob, WaitingJob
from tests.conformance.vectors.vector import vector
from tests.support.told_scheduler import REGULAR, SELECTIVE, UNUSED, Told

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
    jobs = running.jobs(on_requests=False)
    heads, shadow_time, extra, rows = easy_pass(
        *(0, running.free(example["idle"]), queue.sizes, queue.predicted_time, np.arange(2)),
        *(jobs.sizes, expected_ends(0, jobs)),
    )
    assert (heads, rows.tolist()) == (0, [1] if case["backfill"] else [])
    if case["backfill"]:
        assert (shadow_time, extra) == (100, 10 - 4 - int(queue.processors[0]))


def test_easy_degenerate_shadow() -> None:
    example = vector("p0_easy_degenerate")
    sizes, ends = (np.array(column) for column in zip(*example["running"], strict=True))
    assert example["cq"] == example["head_size"] - example["idle"]
    needed, idle = np.array([example["head_size"]]), np.array([example["idle"]])
    shadow_time, extra = shadow_of(needed, idle, sizes.reshape(-1, 1), ends)
    assert (shadow_time, extra.tolist()) == (100, [0])


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


USES = {"baseline": UNUSED, "regular": REGULAR, "selective": SELECTIVE}


@pytest.mark.parametrize("policy", ["easy", "easy-sjbf", "wfp", "probabilistic"])
@pytest.mark.parametrize("candidate", ["", "2"])
@pytest.mark.parametrize("scheme", USES)
def test_regular_and_selective_adjustment(scheme: str, candidate: str, policy: str) -> None:
    example = vector("p4_selective_window")
    expected = example[scheme + candidate]
    held, head, waiting = example["running"], example["head"], example["cand" + candidate]
    now, head_request = held["elapsed"], 1000
    told = Told(processors=example["machine"], policy=policy, keys=USES[scheme])
    told.submit(1, held["n"], held["t_req"], adjusted=int(held["A"] * held["t_req"]))
    told.start(1, held["n"], limit=held["t_req"])
    told.submit(2, head["n"], head_request)
    told.submit(3, waiting["n"], waiting["t_req"], time=now, adjusted=int(waiting["A"] * waiting["t_req"]))
    queue, running = told.scheduler.queue, told.scheduler.running
    ends = expected_ends(now, running.jobs(on_requests=False))
    shadow_time, extra = shadow_of(
        np.array([head["n"]]), running.free(example["machine"] - held["n"]), running.sizes, ends
    )
    assert shadow_time - now == expected.get("shadow", example[scheme]["shadow"])
    assert extra[0] < waiting["n"]
    assert queue.predicted_time.tolist() == [head_request, expected["cand_end"]]
    starts = told.starts(now)
    assert [each.job_number for each in starts] == ([3] if expected["backfill"] else [])
    for start in starts:
        assert start.limit == waiting["t_req"]
        if isinstance(start.reason, Backfilled):
            assert (start.reason.shadow_time, start.reason.expected_end) == (shadow_time, now + expected["cand_end"])


def test_wfp_scores() -> None:
    """The vector weighs waits by them; the policy orders its queue so."""
    example = vector("p4_wfp_weighted_wait")
    now = 7200
    jobs = [
        WaitingJob(number, now - job["w"], job["n"], job["req"], job["req"])
        for number, job in enumerate(example["jobs"])
    ]
    queue, _ = Instance(now, 0, jobs, [], ()).tables()
    scores = -wfp3(WaitingColumns(now, queue, "plan", RunTimeMeasures()))
    by_number = dict(zip(queue.job_number.tolist(), scores.tolist(), strict=True))
    assert [by_number[number] for number in range(len(jobs))] == example["P"]
    assert queue.job_number[np.argsort(-scores, kind="stable")].tolist() == [1, 2, 0, 3]
