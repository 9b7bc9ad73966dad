"""Downey's logarithmic distribution: the fit, and where the model does not reach."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.services.runtime_distribution.downey import (
    DowneyMean,
    DowneyMedian,
    conditional_mean,
    conditional_median,
    fit,
)
from shadowtime.services.runtime_distribution.history import RememberingSettings
from shadowtime.shared.messages.envelope import JobSubmitted
from shadowtime.shared.stages.predictor import Predictor

RUN_TIMES = st.lists(st.integers(0, 100_000), min_size=1, max_size=60)


def job(queue_number: int | None = 1, requested_time: int | None = None) -> JobSubmitted:
    return JobSubmitted(
        time=0, job_number=1, requested_processors=1, queue_number=queue_number, requested_time=requested_time
    )


@given(RUN_TIMES, st.sampled_from([0.0, 0.1]))
def test_the_fit_is_least_squares_without_the_ends(run_times: list[int], omitted: float) -> None:
    logarithms = np.sort(np.log(np.maximum(run_times, 1)))
    found = fit(logarithms, omitted)
    out = int(omitted * len(logarithms))
    x = logarithms[out : len(logarithms) - out]
    if len(set(x.tolist())) < 2:
        assert found == (0, 0)
    else:
        f = (np.arange(len(logarithms)) + 0.5)[out : len(logarithms) - out] / len(logarithms)
        slope, intercept = np.polyfit(x, f, 1)
        assert found == pytest.approx((intercept, slope), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(
    ("beta0", "beta1", "age"),
    [
        (0.0, 0.0, 0.0),  # all run times alike
        (0.5, -0.1, 0.0),  # a distribution function that falls
        (-0.2, 0.12, 30_000.0),  # older than any job of the model
        (-0.2, 1e-4, 0.0),  # a longest run time beyond all numbers
        (0.9, 1e-4, 0.0),  # a shortest run time of nothing
        (1.2, 0.1, 1.0),  # all jobs shorter than the age
    ],
)
def test_outside_its_domain_the_model_says_nothing(beta0: float, beta1: float, age: float) -> None:
    assert conditional_mean(beta0, beta1, age) is None
    assert conditional_median(beta0, beta1, age) is None


@given(st.floats(-0.5, 0.3), st.floats(0.05, 0.3), st.floats(0, 1e5))
def test_lifetimes_lie_between_the_age_and_the_longest(beta0: float, beta1: float, age: float) -> None:
    mean, median = conditional_mean(beta0, beta1, age), conditional_median(beta0, beta1, age)
    if mean is not None and median is not None:
        assert max(age, math.exp(-beta0 / beta1)) <= median * (1 + 1e-9)
        assert median <= mean * (1 + 1e-9) <= math.exp((1 - beta0) / beta1) * (1 + 1e-6)


@given(RUN_TIMES, RUN_TIMES)
def test_nothing_is_left_of_forgotten_jobs(before: list[int], after: list[int]) -> None:
    keys = RememberingSettings(history=len(after))
    old, new = DowneyMean(keys), DowneyMean(keys)
    for run_time in before + after:
        old.learn_one(job(run_time % 2), run_time)
    for run_time in after:
        new.learn_one(job(run_time % 2), run_time)
    assert [old.predict_one(job(queue)) for queue in (0, 1, 2)] == [new.predict_one(job(queue)) for queue in (0, 1, 2)]


@pytest.mark.parametrize("predictor", [DowneyMean(RememberingSettings()), DowneyMedian(RememberingSettings())])
def test_queues_are_apart_and_requests_bound(predictor: Predictor[JobSubmitted, int, object]) -> None:
    for run_time in (60, 120, 600, 3600, 7200):
        predictor.learn_one(job(1), run_time)
        predictor.learn_one(job(None), 7)
    assert predictor.predict_one(job(2)) is None
    assert predictor.predict_one(job(None)) is None  # all alike
    prediction = predictor.predict_one(job(1, requested_time=100))
    assert getattr(prediction, "point", None) == 100
