"""Risks of being cut: calibrated by the record, without a leak, ascending in no request, and part of the snapshot."""

import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from shadowtime.services.runtime_distribution.cut_risks import (
    KNOTS,
    MAX_LATE,
    MAX_PENDING,
    CutRisks,
    compared,
    compared_at_request,
)
from shadowtime.services.runtime_distribution.handler import RuntimeDistribution
from shadowtime.shared.distributions import BINS, EDGES, bin_of
from shadowtime.shared.messages import JobSubmitted, RunTimePrediction

REQUEST = 3600


def job(number: int, requested_time: int | None = REQUEST, **features: Any) -> JobSubmitted:
    return JobSubmitted(
        time=0, job_number=number, requested_processors=1, requested_time=requested_time, **{"user_id": 7, **features}
    )


def predicted(*seconds: float) -> RunTimePrediction:
    histogram = np.zeros(BINS)
    for each in seconds:
        histogram[bin_of(each)] += 1 / len(seconds)
    return RunTimePrediction(point=1.0, observations=len(seconds), histogram=tuple(histogram))


def records(risks: CutRisks) -> Any:
    state = risks.snapshot()
    return state["own"], state["shorter"]


def learned(draw: np.random.Generator, jobs: int = 3_000, scale: float = 1_500, spread: float = 0.8) -> CutRisks:
    """Return a record of jobs of many users that all have one histogram, which is wrong."""
    risks = CutRisks()
    for number in range(jobs):
        submitted = job(number, user_id=number)
        risks.submit(submitted, predicted(200, 700, 1500, 3000))
        run_time = int(scale * np.exp(spread * draw.standard_normal()))
        risks.learn(submitted, min(run_time, REQUEST), cut=run_time > REQUEST)
    return risks


def test_a_wrong_histogram_is_corrected_at_the_request_and_below() -> None:
    draw = np.random.default_rng(3)
    risk = learned(draw).of(job(-1 % 2**31, user_id=10**6), predicted(200, 700, 1500, 3000))
    assert risk is not None
    times = 1_500 * np.exp(0.8 * draw.standard_normal(200_000))
    for request in (600, 1200, 1800, 2400, 3000, REQUEST):
        assert risk.of(request) == pytest.approx((times > request).mean(), abs=0.05)
    for wanted in (0.2, 0.4, 0.6):
        assert (times > risk.needed(wanted)).mean() == pytest.approx(wanted, abs=0.05)


def test_a_risk_never_rises_with_the_request() -> None:
    risks = learned(np.random.default_rng(4), jobs=300)
    for histogram in (predicted(60), predicted(3599, 3601), predicted(10, 10_000), predicted(90_000)):
        risk = risks.of(job(1), histogram)
        assert risk is not None
        values = [risk.of(time) for time in range(1, 20_000, 97)]
        assert all(low >= high for low, high in pairwise(values))
        for wanted in (0.01, 0.05, 0.5, 0.99):
            needed = risk.needed(wanted)
            assert risk.of(needed) <= wanted
            assert needed == 1 or risk.of(needed - 1) > wanted


def test_nothing_is_stated_without_a_histogram_or_a_request() -> None:
    risks = CutRisks()
    assert risks.of(job(1), None) is None
    assert risks.of(job(1), RunTimePrediction(point=1.0, observations=1)) is None
    assert risks.of(job(1, None), predicted(60)) is None
    risks.submit(job(1, None), predicted(60))
    risks.learn(job(1, None), 60, cut=False)
    assert risks.snapshot() == CutRisks().snapshot()


def test_a_job_counts_at_its_end_alone_and_by_what_was_stated_at_its_submission() -> None:
    risks, other = CutRisks(), CutRisks()
    for each in (risks, other):
        each.submit(job(1), predicted(60))
        each.submit(job(2), predicted(1_000))
    assert records(risks) == records(other)
    risks.learn(job(2), REQUEST, cut=True)  # shapes what is predicted from now on, not what job 1 is judged by
    assert records(risks) != records(other)
    for each in (risks, other):
        each.own, each.shorter = CutRisks().own, CutRisks().shorter
        each.learn(job(1), 60, cut=False)
    assert records(risks) == records(other) != records(CutRisks())


def test_a_risk_is_the_same_whether_jobs_were_applied_one_at_a_time_or_together() -> None:
    together, alone = CutRisks(), CutRisks()
    for number in range(3 * MAX_LATE + 7):
        for each in (together, alone):
            each.submit(job(number, REQUEST + 60 * (number % 5)), predicted(60, 1_000))
            if number % 7 == 3:
                each.forget(number)
            elif number >= 20:
                each.learn(job(number - 20), 40 * (number % 90), cut=number % 90 == 0)
        alone.snapshot()
        if number % 100 == 99:
            (first, second) = (each.of(job(9_999), predicted(60, 1_000)) for each in (together, alone))
            assert first is not None
            assert second is not None
            assert [first.of(time) for time in (300, 900, REQUEST)] == [second.of(time) for time in (300, 900, REQUEST)]
            assert together.longest(job(9_999)) == alone.longest(job(9_999)) == REQUEST + 240
    assert together.snapshot() == alone.snapshot()


def test_the_longest_request_is_that_of_the_partition() -> None:
    risks = CutRisks()
    for number, (partition, queue, requested) in enumerate(((1, 1, 100), (1, 2, 900), (2, 1, 500), (1, 1, 50))):
        risks.submit(job(number, requested, partition_number=partition, queue_number=queue), predicted(60))
    assert risks.longest(job(9, partition_number=1, queue_number=1)) == 100
    assert risks.longest(job(9, partition_number=1)) == 900
    assert risks.longest(job(9, queue_number=1)) == 500
    assert risks.longest(job(9)) == 900
    assert risks.longest(job(9, partition_number=3)) == 0


def test_memory_is_bounded_and_a_snapshot_goes_on() -> None:
    risks = learned(np.random.default_rng(5), jobs=200)
    for number in range(MAX_PENDING + 10):
        risks.submit(job(10_000 + number), predicted(60, 3_000))
    state = json.loads(json.dumps(risks.snapshot()))
    assert len(state["pending"]) == MAX_PENDING
    restored = CutRisks()
    restored.restore(state)
    for each in (risks, restored):
        each.learn(job(10_003), 2_999, cut=False)
        each.forget(10_004)
    assert restored.snapshot() == risks.snapshot()


def test_requests_are_compared_in_whole_minutes() -> None:
    fine = np.zeros(2 + 8 * bin_of(3600.0))
    fine[1 + 8 * (bin_of(100.0) - 1) : 1 + 8 * bin_of(100.0)] = 1 / 8
    low, high = EDGES[bin_of(100.0)], EDGES[bin_of(100.0) + 1]
    weights, differences = compared(fine, 100.0, 3600.0)
    assert weights.tolist() == [1.0] * len(KNOTS)
    stated = 1 - np.log(120 / low) / np.log(high / low) if high > 120 else 0.0
    assert differences[1] == pytest.approx(0.0 - stated, abs=0.01)
    assert compared(fine, 100.0, 110.0)[0].sum() < len(KNOTS)


def test_the_risk_at_the_request_counts_at_the_knots_beside_it() -> None:
    for stated in (*KNOTS, 0.001, 0.14, 0.999):
        weights, differences = compared_at_request(float(stated), True)
        assert weights @ np.arange(len(KNOTS)) == pytest.approx(np.interp(stated, KNOTS, np.arange(len(KNOTS))))
        assert weights.sum() == pytest.approx(1)
        assert differences == pytest.approx(1 - stated)


def test_the_price_of_a_run_has_that_of_the_record() -> None:
    from shadowtime.shared.messages import ClusterOpened

    price = RuntimeDistribution.price(ClusterOpened(time=0, cluster="a", processors=1, runtime="requested"))
    assert price.memory >= MAX_PENDING * 4_000
