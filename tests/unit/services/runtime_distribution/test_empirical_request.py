"""Weighted histograms against the whole log at every prefix, and how they back off."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.services.runtime_distribution.empirical import EmpiricalRequest, EmpiricalRequestSettings
from shadowtime.services.runtime_distribution.job_classes import BACKING, JobClasses
from shadowtime.services.runtime_distribution.weighted_jobs import UserHistories, Weighting, described, similar_masses
from shadowtime.shared.distributions.histogram import BINS, Masses, bin_of
from shadowtime.shared.messages.predictions import RunTimePrediction
from shadowtime.testing.examples import examples
from tests.unit.services.runtime_distribution.ended_jobs import ENDED, WorkCancelled
from tests.unit.services.runtime_distribution.histograms import histogram


def class_masses(log: list[WorkCancelled], asked: WorkCancelled, settings: EmpiricalRequestSettings) -> Masses:
    """Return what everybody's jobs say, by the definition."""

    def request_bin(job: WorkCancelled) -> int:
        return -1 if job.requested_time is None else bin_of(job.requested_time)

    alike = [job for job in log if request_bin(job) == request_bin(asked)]
    same_size = [job for job in alike if np.floor(np.log2(job.processors)) == np.floor(np.log2(asked.processors))]
    masses = histogram(log, settings.beyond, 1 - settings.forgetting)
    reach = masses.nonzero()[0][-1] + 1
    masses[:reach] += 1 / reach
    masses /= masses.sum()
    for members in (alike, same_size):
        masses = histogram(members, settings.beyond, 1 - settings.forgetting) + BACKING * masses
        masses /= masses.sum()
    return masses


def batch(
    log: list[WorkCancelled], asked: WorkCancelled, settings: EmpiricalRequestSettings
) -> RunTimePrediction | None:
    """Return the prediction from the whole log."""
    if not log:
        return None
    masses = settings.prior * class_masses(log, asked, settings)
    own = [job for job in log if asked.user_id is not None and job.user_id == asked.user_id][-settings.window :]
    for age, job in enumerate(reversed(own)):
        weight = settings.recency**age
        weight *= settings.request if job.requested_time != asked.requested_time else 1
        weight *= settings.processors if job.processors != asked.processors else 1
        weight *= settings.executable if job.executable_number != asked.executable_number else 1
        as_it_was = job
        if settings.scaled and job.requested_time and asked.requested_time:
            run_time = min(job.run_time, job.requested_time) * asked.requested_time / job.requested_time
            job = job._replace(run_time=run_time, requested_time=asked.requested_time)  # type: ignore[arg-type]
        counts = histogram([job], settings.beyond)
        if not as_it_was.at_request:
            j = bin_of(job.run_time)
            counts = (1 - 2 * settings.spread) * np.eye(BINS)[j]
            counts[max(j - 1, 0)] += settings.spread
            counts[j + 1] += settings.spread
        masses += weight * counts
    return RunTimePrediction.of(masses / masses.sum(), asked.requested_time, len(own) or len(log))


@given(
    log=st.lists(ENDED, max_size=12),
    asked=ENDED,
    settings=st.builds(
        EmpiricalRequestSettings,
        window=st.integers(1, 6),
        prior=st.floats(0.01, 10),
        request=st.floats(0, 1),
        processors=st.floats(0, 1),
        executable=st.floats(0, 1),
        spread=st.floats(0, 0.5),
        scaled=st.booleans(),
        beyond=st.sampled_from([0.0, 0.5, 1.0]),
    ),
)
@examples(200)
def test_online_is_batch_at_every_prefix(
    log: list[WorkCancelled], asked: WorkCancelled, settings: EmpiricalRequestSettings
) -> None:
    predictor = EmpiricalRequest(settings)
    for prefix in range(len(log) + 1):
        expected, got = batch(log[:prefix], asked, settings), predictor.predict_one(asked.submitted())
        if expected is None:
            assert got is None
        else:
            assert got is not None
            assert got.observations == expected.observations
            assert got.histogram == pytest.approx(expected.histogram, abs=2e-6)
        if prefix < len(log):
            predictor.learn_one(log[prefix].submitted(), log[prefix].run_time)


WEIGHTINGS = [Weighting(), Weighting(0.5, 0.9, 0.1, 0.3, 0.1, 0.05, 1.0), Weighting(1e6, 0.5, 0.0, 0.0, 0.0, 0.5, 0.0)]


@given(log=st.lists(ENDED, min_size=1, max_size=12), asked=ENDED, beyond=st.sampled_from([0.0, 0.5, 1.0]))
def test_masses_are_a_distribution_by_any_weighting(
    log: list[WorkCancelled], asked: WorkCancelled, beyond: float
) -> None:
    classes, histories = JobClasses(0.01), UserHistories(5)
    for job in log:
        classes.learn(job.submitted(), job.run_time, beyond)
        histories.learn(job.submitted(), job.run_time)
    like = asked.submitted()
    weightings, counts = np.array(WEIGHTINGS), classes.counts
    masses = similar_masses(histories.of(like), described(like), weightings, counts, classes.rows(like), beyond)
    assert masses.sum(axis=1) == pytest.approx(1)
    assert masses.min() >= 0


def learned(*jobs: WorkCancelled, scaled: bool = True) -> EmpiricalRequest:
    predictor = EmpiricalRequest(EmpiricalRequestSettings(scaled=scaled))
    for job in jobs:
        predictor.learn_one(job.submitted(), job.run_time)
    return predictor


def mass(predictor: EmpiricalRequest, asked: WorkCancelled) -> float:
    """Return the probability of the bin of the run time of the job that is asked about."""
    prediction = predictor.predict_one(asked.submitted())
    assert prediction is not None
    return (*prediction.histogram, *[0.0] * BINS)[bin_of(asked.run_time)]


def test_it_backs_off_to_less_and_less_like_jobs() -> None:
    same, other_request = WorkCancelled(1, 3600, 4, 7, 900), WorkCancelled(1, 7200, 4, 7, 1800)
    other_user, other_size = WorkCancelled(2, 3600, 4, 7, 900), WorkCancelled(2, 3600, 64, 7, 900)
    other_class, noise = WorkCancelled(2, 100_000, 64, 7, 900), [WorkCancelled(9, 60, 1, 1, 2)] * 40

    def after(job: WorkCancelled) -> float:
        return mass(learned(*noise, *[job] * 10), same)

    assert after(same) > 0.8
    assert after(same) > after(other_user) > after(other_size) > after(other_class) > 0.1
    assert after(same) > after(other_request) > after(other_class)


def test_a_run_time_under_another_request_counts_in_proportion() -> None:
    asked, jobs = WorkCancelled(1, 36_000, 4, 7, 18_000), [WorkCancelled(1, 3600, 4, 7, 1800)] * 20
    assert mass(learned(*jobs), asked) > 0.3
    assert mass(learned(*jobs, scaled=False), asked) < 0.05


def test_recent_jobs_count_more() -> None:
    old, new = WorkCancelled(1, 3600, 4, 7, 10), WorkCancelled(1, 3600, 4, 7, 1000)
    assert mass(learned(*[old] * 10, *[new] * 10), new) > 1.3 * mass(learned(*[new] * 10, *[old] * 10), new)


def test_memory_of_the_classes_is_bounded_by_the_grid() -> None:
    classes = JobClasses(0.0)
    for number in range(5_000):
        job = WorkCancelled(number, 1 + 37 * number, 1 + number % 128, number, 17 * number)
        classes.learn(job.submitted(), job.run_time)
    assert len(classes.snapshot()) <= 1 + BINS + BINS * 8
