"""Worked examples of the scores."""

from math import exp

import pytest

from shadowtime.services.scoreboard.scores.request_accuracy import WalltimeAccuracy
from shadowtime.services.scoreboard.scores.waits_and_utilization import WAIT_FLOOR, WaitScores
from shadowtime.shared.messages.predictions import accuracy, adjustment_class
from shadowtime.shared.statistics.slowdown import bounded_slowdown, unclamped_slowdown
from tests.conformance.vectors.vector import vector
from tests.support.plain_formulas import geometric_term, wfp_priority


def test_geometric_mean_wait() -> None:
    example = vector("p0_geometric_mean_wait")
    scores = WaitScores()
    for wait in example["waits"]:
        scores.add(0, wait, wait + 60, 1, 60, 60)
    summary = scores.summary(10)
    assert example["wmin"] == WAIT_FLOOR
    assert summary["mean_wait"] == example["arithmetic"]
    assert summary["geometric_mean_wait"] == pytest.approx(example["geometric"], abs=1e-8)
    logs = sum(map(geometric_term, example["waits"]))
    assert exp(logs / len(example["waits"])) == pytest.approx(example["geometric"], abs=1e-8)


def test_bounded_slowdown() -> None:
    example = vector("p1_bounded_slowdown")
    assert unclamped_slowdown(wait=0, run_time=3) == example["short"]
    assert bounded_slowdown(wait=0, run_time=3) == 1
    assert unclamped_slowdown(wait=500, run_time=100) == bounded_slowdown(wait=500, run_time=100) == example["a"]
    scores = WaitScores()
    scores.add(0, 500, 600, 1, 100, 100)
    scores.add(0, 0, 3, 1, 3, 3)
    summary = scores.summary(10)
    assert summary["mean_bounded_slowdown_unclamped"] == pytest.approx((example["a"] + example["short"]) / 2)
    assert summary["mean_bounded_slowdown"] == pytest.approx((example["a"] + 1) / 2)


def test_accuracy() -> None:
    example = vector("p4_accuracy")
    for case in example["cases"]:
        assert accuracy(case["act"], case["est"]) == case["acc"]
    names = {"NA": "none", "OE": "over", "UE": "under", "BE": "bad"}
    running = WalltimeAccuracy()
    for case in example["classes"]:
        expected = names[case["cls"].split()[0]]
        assert adjustment_class(case["act"], case["req"], case["sched"]) == expected
        running.add(case["act"], case["req"], case["sched"])
    shares = running.scores()
    assert (shares.none, shares.over, shares.under, shares.bad) == (0.25, 0.25, 0.25, 0.25)


def test_wfp_weighted_wait() -> None:
    example = vector("p4_wfp_weighted_wait")
    jobs = example["jobs"]
    assert [wfp_priority(job["w"], job["req"], job["n"]) for job in jobs] == example["P"]
    scores = WaitScores()
    for job in jobs:
        scores.add(0, job["w"], job["w"] + 60, job["n"], job["req"], 60)
    summary = scores.summary(40_960)
    assert summary["mean_wait"] == example["avg_wait"]
    assert summary["weighted_mean_wait"] == pytest.approx(example["weighted_wait"], abs=1e-9)
    # With the score of FCFS, which is the wait itself, as weight:
    assert sum(job["w"] ** 2 for job in jobs) / sum(job["w"] for job in jobs) == pytest.approx(
        example["fcfs_weighted"], abs=1e-9
    )
