"""The scheme that chooses among schemes keeps its bound and finds what a better choice would be."""

import numpy as np
import pytest
from numpy.random import PCG64, Generator

from shadowtime.services.walltime_adjustment.auto import PERCENTILES, SCHEMES, Auto, AutoSettings
from shadowtime.services.walltime_adjustment.cut import cut, cuts
from shadowtime.services.walltime_adjustment.scheme_scores import EVERY, SchemeScores
from shadowtime.shared.messages.envelope import JobEnded, JobSubmitted
from shadowtime.shared.messages.predictions import accuracy, adjustment_class


def played(adjuster: Auto, shares: np.ndarray, requested_time: int) -> tuple[float, float]:
    """Return mean accuracy and rate of bad under-estimates over the second half of one user's jobs."""
    found = []
    for number, share in enumerate(shares.tolist(), 1):
        job = JobSubmitted(
            time=number * 100, job_number=number, requested_processors=1, requested_time=requested_time, user_id=7
        )
        said = adjuster.predict_one(job)
        assert said is not None
        adjuster.observe(job)
        run_time = int(share * requested_time)
        ended = JobEnded(time=job.time + 50, job_number=number, run_time=run_time)
        adjuster.learn_one(job, ended)
        adjuster.observe(ended)
        found.append(
            (
                accuracy(run_time, said.adjusted_time),
                adjustment_class(run_time, requested_time, said.adjusted_time) == "bad",
            )
        )
    later = np.array(found[len(found) // 2 :], dtype=float)
    return float(later[:, 0].mean()), float(later[:, 1].mean())


def shares(seed: int, count: int = 3000) -> np.ndarray:
    """Return ratios of which nine in ten lie about 0.55 and one in ten about 0.95."""
    chance = Generator(PCG64([seed]))
    return np.where(chance.random(count) < 0.9, chance.uniform(0.5, 0.6, count), chance.uniform(0.9, 1.0, count))


@pytest.mark.parametrize("bad", [0.0, 0.02, 0.05])
def test_long_requests_keep_the_bound(bad: float) -> None:
    _, rate = played(Auto(AutoSettings(bad=bad)), shares(1), requested_time=36_000)
    assert rate <= bad


def test_short_requests_are_cut_as_accuracy_says() -> None:
    careful, _ = played(Auto(AutoSettings(bad=0.0)), shares(1), requested_time=36_000)
    short, rate = played(Auto(AutoSettings(bad=0.0)), shares(1), requested_time=3000)
    assert rate == 0.0  # nothing can run half an hour longer than half of its request
    assert short > careful + 0.2


def test_nothing_is_adjusted_before_enough_is_known() -> None:
    adjuster = Auto(AutoSettings())
    job = JobSubmitted(time=0, job_number=1, requested_processors=1, requested_time=3600, user_id=7)
    answer = adjuster.predict_one(job)
    assert answer is not None
    assert (answer.adjusted_time, answer.key) == (3600, None)
    assert adjuster.predict_one(job.model_copy(update={"requested_time": None})) is None


def test_every_scheme_is_scored_by_what_it_said_at_submission() -> None:
    adjuster = Auto(AutoSettings())
    like = JobSubmitted(time=0, job_number=1, requested_processors=1, requested_time=10_000, user_id=7)
    adjuster.observe(like)
    for _ in range(30):  # these ended after it was submitted: they must not help what was said of it
        adjuster.learn_one(like.model_copy(update={"job_number": 2}), JobEnded(time=5, job_number=2, run_time=5000))
    ((number, _, adjusted_times),) = adjuster.snapshot()["open"]
    assert (number, adjusted_times) == (1, [10_000] * SCHEMES)
    assert adjuster.snapshot()["scores"]["classes"] == []
    adjuster.learn_one(like, JobEnded(time=9, job_number=1, run_time=5000))
    ((_, jobs, accuracies, _),) = adjuster.snapshot()["scores"]["classes"]
    assert (jobs, accuracies) == (1, [0.5] * SCHEMES)


def test_adjusted_times_are_those_of_a_single_scheme() -> None:
    for requested_time in (1, 59, 3600, 86_400 * 100):
        parts = np.linspace(0, 1, 37)
        expected = [cut(requested_time, share, 0.5) for share in parts.tolist()]
        assert cuts(requested_time, parts, 0.5).tolist() == expected


def test_the_price_is_the_least_that_keeps_the_bound() -> None:
    scores = SchemeScores(schemes=3, bad=0.3)
    requested_time = 10_000
    for k in range(10 * EVERY):  # the boldest is bad for half of the jobs, the second for a fifth, the last never
        run_time = 9_000 if k % 2 else 5_000
        adjusted_now = np.array([5_000, 5_000 if k % 5 == 1 else 9_000, requested_time])
        scores.add(12, int(scores.chosen[12]), run_time, requested_time, adjusted_now)
    assert scores.chosen[12] == 1
    assert scores.chosen[3] == 2


def test_there_are_as_many_schemes_as_choices() -> None:
    assert (SCHEMES - 1) % len(PERCENTILES) == 0


def test_equals_go_to_the_careful() -> None:
    scores = SchemeScores(schemes=3, bad=0.5)
    for _ in range(EVERY):
        scores.add(12, int(scores.chosen[12]), 5_000, 10_000, np.array([10_000, 10_000, 10_000]))
    assert scores.chosen[12] == 2


def test_a_spent_bound_does_not_stop_what_was_never_bad() -> None:
    scores = SchemeScores(schemes=2, bad=0.0)
    for k in range(4 * EVERY):  # the first scheme is bad for long requests, once while it was followed; not for short
        scores.add(12, 0 if k == EVERY else int(scores.chosen[12]), 9_000, 10_000, np.array([5_000, 10_000]))
        scores.add(8, int(scores.chosen[8]), 400, 1_000, np.array([500, 1_000]))
    assert scores.snapshot()["own_bad"] == 1
    assert scores.chosen[12] == 1
    assert scores.chosen[8] == 0
