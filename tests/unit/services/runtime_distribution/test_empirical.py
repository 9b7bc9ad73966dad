"""Per-user histograms against the whole log at every prefix."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.services.runtime_distribution.empirical import Empirical, EmpiricalSettings
from shadowtime.shared.distributions.histogram import bin_of
from shadowtime.shared.messages.predictions import RunTimePrediction
from shadowtime.testing.examples import examples
from tests.unit.services.runtime_distribution.ended_jobs import ENDED, WorkCancelled
from tests.unit.services.runtime_distribution.histograms import histogram


def batch(log: list[WorkCancelled], asked: WorkCancelled, settings: EmpiricalSettings) -> RunTimePrediction | None:
    """Return the prediction from the whole log."""
    if not log:
        return None
    everybody = histogram(log, settings.beyond, 1 - settings.forgetting)
    reach = everybody.nonzero()[0][-1] + 1
    everybody[:reach] += 1 / reach
    own = [job for job in log if asked.user_id is not None and job.user_id == asked.user_id][-settings.window :]
    masses = histogram(own, settings.beyond) + settings.prior * everybody / everybody.sum()
    return RunTimePrediction.of(masses / masses.sum(), asked.requested_time, len(own) or len(log))


@given(
    log=st.lists(ENDED, max_size=12),
    asked=ENDED,
    settings=st.builds(
        EmpiricalSettings,
        window=st.integers(1, 5),
        prior=st.floats(0.01, 10),
        forgetting=st.sampled_from([0.0, 0.1]),
        beyond=st.sampled_from([0.0, 0.5, 1.0]),
    ),
)
@examples(150)
def test_online_is_batch_at_every_prefix(
    log: list[WorkCancelled], asked: WorkCancelled, settings: EmpiricalSettings
) -> None:
    predictor = Empirical(settings)
    for prefix in range(len(log) + 1):
        expected, got = batch(log[:prefix], asked, settings), predictor.predict_one(asked.submitted())
        if expected is None:
            assert got is None
        else:
            assert got is not None
            assert got.observations == expected.observations
            assert got.histogram == pytest.approx(expected.histogram, abs=2e-6)
            assert got.point == pytest.approx(expected.point, rel=1e-3)
        if prefix < len(log):
            predictor.learn_one(log[prefix].submitted(), log[prefix].run_time)


def learned(jobs: list[WorkCancelled], **keys: float) -> Empirical:
    predictor = Empirical(EmpiricalSettings.model_validate(keys))
    for job in jobs:
        predictor.learn_one(job.submitted(), job.run_time)
    return predictor


def test_what_has_left_the_window_no_longer_counts() -> None:
    old, new = WorkCancelled(1, 9000, 1, None, 5), WorkCancelled(1, 9000, 1, None, 4000)
    prediction = learned([old] * 50 + [new] * 3, window=3, prior=1e-6).predict_one(new.submitted())
    assert prediction is not None
    assert prediction.observations == 3
    assert prediction.histogram[bin_of(4000)] == pytest.approx(1, abs=1e-5)


def test_a_user_never_seen_has_everybodys_histogram() -> None:
    jobs = [WorkCancelled(1, 9000, 1, None, 5)] * 30 + [WorkCancelled(2, 9000, 1, None, 4000)] * 10
    for user in (3, None):
        prediction = learned(jobs).predict_one(WorkCancelled(user, 9000, 1, None, 0).submitted())
        assert prediction is not None
        assert prediction.observations == 40
        assert prediction.histogram[bin_of(5)] == pytest.approx(30 / 41, abs=0.01)


def test_without_a_request_nothing_bounds_the_point() -> None:
    jobs = [WorkCancelled(1, None, 1, None, 4000)] * 50
    free = learned(jobs).predict_one(jobs[0].submitted())
    bound = learned(jobs).predict_one(jobs[0]._replace(requested_time=60).submitted())
    assert free is not None
    assert bound is not None
    assert free.histogram == bound.histogram
    assert 3500 < free.point < 6000
    assert bound.point <= 60


def test_a_job_ended_at_its_request_counts_on_both_sides_of_it() -> None:
    job = WorkCancelled(1, 600, 1, None, 600)
    shares = {beyond: learned([job] * 50, beyond=beyond, prior=1e-6) for beyond in (0.0, 0.25, 1.0)}
    for beyond, predictor in shares.items():
        prediction = predictor.predict_one(job.submitted())
        assert prediction is not None
        padded = (*prediction.histogram, 0.0)
        assert padded[bin_of(600)] == pytest.approx(1 - beyond, abs=1e-5)
        assert padded[bin_of(600) + 1] == pytest.approx(beyond, abs=1e-5)
