"""The mixture: who is heard, by what was said at submission, and what is remembered until a job ends."""

from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.services.runtime_distribution.ensembles import experts as module
from shadowtime.services.runtime_distribution.ensembles.experts import EXPERTS, Experts, ExpertsSettings, reweighted
from shadowtime.services.runtime_distribution.weighted_jobs import Weighting
from shadowtime.shared.distributions.histogram import BINS, bin_of
from shadowtime.shared.messages.envelope import JobEnded, JobStarted
from tests.unit.services.runtime_distribution.ended_jobs import WorkCancelled


def run(experts: Experts, job: WorkCancelled, job_number: int) -> None:
    """Let a job pass through the system, as the stage does."""
    submitted = job.submitted(job_number)
    experts.predict_one(submitted)
    experts.observe(submitted)
    experts.learn_one(submitted, job.run_time)
    experts.observe(JobEnded(time=job.run_time, job_number=job_number, run_time=job.run_time))


def alternating(user_id: int, count: int) -> list[WorkCancelled]:
    """Return jobs whose run time is told by their request: 10 s or 5,000 s by turns."""
    return [WorkCancelled(user_id, *((600, 4, 1, 10), (36_000, 4, 1, 5000))[n % 2]) for n in range(count)]


def monotonous(user_id: int, count: int) -> list[WorkCancelled]:
    """Return jobs whose run time is told by their user, not by their request."""
    return [WorkCancelled(user_id, 600 * (1 + n * 7 % 60), 1 + n % 9, 1, 500) for n in range(count)]


@given(
    st.lists(st.floats(0.01, 1), min_size=3, max_size=3),
    st.lists(st.floats(0, 1), min_size=3, max_size=3),
    st.floats(0.001, 1),
)
def test_weights_stay_weights(before: list[float], said: list[float], rate: float) -> None:
    weights = np.array(before) / sum(before)
    after = reweighted(weights, np.array(said), rate)
    assert after.sum() == pytest.approx(1)
    assert after.min() >= 0
    assert after[np.argmax(said)] >= weights[np.argmax(said)] - 1e-12


def test_weights_go_to_the_better_expert(monkeypatch: pytest.MonkeyPatch) -> None:
    by_request, by_user = Weighting(1.0, request=0.0), Weighting(1.0, 0.9)
    monkeypatch.setattr(module, "EXPERTS", (by_request, by_user))
    experts = Experts(ExpertsSettings())
    for number in range(300):
        run(experts, alternating(1, 300)[number], 2 * number)
        run(experts, monotonous(2, 300)[number], 2 * number + 1)
    assert experts.weights(WorkCancelled(1, 600, 4, 1, 0).submitted())[0] > 0.9
    assert experts.weights(WorkCancelled(2, 600, 4, 1, 0).submitted())[1] > 0.6


def test_a_new_user_begins_with_the_common_weights() -> None:
    experts = Experts(ExpertsSettings())
    new = WorkCancelled(9, 600, 4, 1, 10).submitted()
    assert experts.weights(new).tolist() == [1 / len(EXPERTS)] * len(EXPERTS)
    for number, job in enumerate(alternating(1, 100)):
        run(experts, job, number)
    common = experts.weights(new)
    assert common.tolist() == experts.weights(WorkCancelled(None, 600, 4, 1, 10).submitted()).tolist()
    assert common.sum() == pytest.approx(1)
    assert common.max() > 1.2 / len(EXPERTS)


def test_the_mixture_is_the_weighted_sum() -> None:
    experts = Experts(ExpertsSettings())
    for number, job in enumerate(alternating(1, 40)):
        run(experts, job, number)
    asked = WorkCancelled(1, 600, 4, 1, 10).submitted()
    masses, prediction = experts.masses(asked), experts.predict_one(asked)
    assert masses is not None
    assert prediction is not None
    expected = experts.weights(asked) @ masses
    assert prediction.histogram == pytest.approx(expected[: len(prediction.histogram)], abs=1e-6)
    assert prediction.observations == 40


def test_experts_are_judged_by_what_they_said_at_submission() -> None:
    early, late = Experts(ExpertsSettings()), Experts(ExpertsSettings())
    judged = WorkCancelled(1, 36_000, 4, 1, 5000).submitted(1000)
    for experts in (early, late):
        run(experts, WorkCancelled(2, 600, 1, 1, 5), 0)
    early.observe(judged)
    for number, job in enumerate(alternating(1, 50), 1):
        for experts in (early, late):
            run(experts, job, number)
    late.observe(judged)
    early.learn_one(judged, 5000)
    late.learn_one(judged, 5000)
    assert early.weights(judged).tolist() != late.weights(judged).tolist()


def said(experts: Experts) -> list[int]:
    """Return the jobs of which the experts' words are remembered."""
    return [job_number for job_number, _ in experts.snapshot()["said"]]


def test_words_are_kept_until_the_job_is_gone() -> None:
    experts = Experts(ExpertsSettings())
    run(experts, WorkCancelled(1, 600, 1, 1, 5), 0)
    for number in (1, 2, 3):
        experts.observe(WorkCancelled(1, 600, 1, 1, 5).submitted(number))
        experts.observe(JobStarted(time=0, job_number=number, processors=1))
    experts.observe(JobEnded(time=5, job_number=1, run_time=5, outcome="killed", requeued=True))
    assert said(experts) == [1, 2, 3]
    experts.observe(JobEnded(time=5, job_number=1, run_time=5, outcome="killed"))
    assert said(experts) == [2, 3]
    experts.observe(JobEnded(time=5, job_number=2, run_time=5))
    assert said(experts) == [3]


def test_a_job_of_which_nothing_was_said_moves_no_weights() -> None:
    experts = Experts(ExpertsSettings())
    first = WorkCancelled(1, 600, 1, 1, 5)
    experts.observe(first.submitted())  # before any job has ended there is nothing to say
    experts.learn_one(first.submitted(), 5)
    assert experts.weights(first.submitted()).tolist() == [1 / len(EXPERTS)] * len(EXPERTS)


@pytest.mark.parametrize("hmm", [False, True])
def test_a_restored_mixture_judges_the_jobs_in_the_system(hmm: bool) -> None:
    whole, again = Experts(ExpertsSettings(hmm=hmm)), Experts(ExpertsSettings(hmm=hmm))
    jobs = alternating(1, 60)
    for number, job in enumerate(jobs):
        run(whole, job, number)
    for number in (100, 101):
        whole.observe(jobs[number % 2].submitted(number))
    again.restore(orjson.loads(orjson.dumps(whole.snapshot(), option=orjson.OPT_SERIALIZE_NUMPY)))
    for experts in (whole, again):
        for number in (100, 101):
            experts.learn_one(jobs[number % 2].submitted(number), 10)
    dumps = [orjson.dumps(each.snapshot(), option=orjson.OPT_SERIALIZE_NUMPY) for each in (whole, again)]
    assert dumps[0] == dumps[1]


def test_another_predictor_is_one_more_expert() -> None:
    experts = Experts(ExpertsSettings(hmm=True))
    jobs = [WorkCancelled(number % 5, 36_000, 4, 1, 600) for number in range(800)]
    rows: Any = None
    for number, job in enumerate(jobs):  # an hour apart: the model is learned after a week
        submitted = job.submitted(number).model_copy(update={"time": 3600 * number})
        rows = experts.masses(submitted)
        experts.observe(submitted)
        experts.observe(JobStarted(time=submitted.time, job_number=number, processors=4))
        experts.learn_one(submitted, job.run_time)
        experts.observe(JobEnded(time=submitted.time + 600, job_number=number, run_time=600))
        if number == 10:
            assert rows.shape == (len(EXPERTS) + 1, BINS)
            assert rows[-1].tolist() == rows[0].tolist()  # silent for a week: it repeats everybody's jobs
    assert rows[-1].tolist() != rows[0].tolist()
    assert rows[-1][bin_of(600)] > 0.8
    assert rows.sum(axis=1) == pytest.approx(1)
