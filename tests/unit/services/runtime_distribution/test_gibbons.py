"""Gibbons' six templates: which one speaks, and regressions between ranges of processors."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.services.runtime_distribution.gibbons import MIN_ENDED, MIN_VARIANCE, Gibbons, GibbonsSettings, range_of
from shadowtime.shared.messages.predictions import RunTimePrediction
from tests.unit.services.runtime_distribution.ended_jobs import ENDED, WorkCancelled


def learned(jobs: list[WorkCancelled], degree: int = 1, history: int = 1000) -> Gibbons:
    predictor = Gibbons(GibbonsSettings(degree=degree, history=history))
    for job in jobs:
        predictor.learn_one(job.submitted(), job.run_time)
    return predictor


def batch(log: list[WorkCancelled], asked: WorkCancelled, elapsed: int, degree: int) -> RunTimePrediction | None:
    """Return the prediction from the whole log."""
    log = [job for job in log if not elapsed or job.run_time > elapsed]
    limit = asked.requested_time or float("inf")
    for like in (
        [job for job in log if (job.user_id, job.executable_number) == (asked.user_id, asked.executable_number)],
        [job for job in log if job.executable_number == asked.executable_number],
        log,
    ):
        ranges: dict[int, list[WorkCancelled]] = {}
        for job in like:
            ranges.setdefault(range_of(job.processors), []).append(job)
        own = ranges.get(range_of(asked.processors), [])
        known = [jobs for jobs in ranges.values() if len(jobs) >= MIN_ENDED]
        if len(own) >= MIN_ENDED:
            found, behind = np.mean([job.run_time for job in own]), len(own)
        elif len(known) > degree:
            rows = [
                (
                    np.mean([job.processors for job in jobs]),
                    np.mean([job.run_time for job in jobs]),
                    1 / math.sqrt(max(float(np.var([job.run_time for job in jobs], ddof=1)), MIN_VARIANCE)),
                )
                for jobs in known
            ]
            x, y, roots = np.array(rows).T
            found = np.polynomial.Polynomial.fit(x, y, degree, w=roots)(asked.processors)
            behind = sum(map(len, known))
        else:
            continue
        return RunTimePrediction(point=float(max(min(found, limit), elapsed + 1.0)), observations=behind)
    return None


@given(st.lists(ENDED, max_size=30), st.sampled_from([0, 500]), st.sampled_from([1, 2]), st.sampled_from([7, 1000]))
def test_online_is_batch_at_every_prefix(log: list[WorkCancelled], elapsed: int, degree: int, history: int) -> None:
    predictor = Gibbons(GibbonsSettings(degree=degree, history=history))
    for prefix, asked in enumerate(log):
        found = predictor.predict_one(asked.submitted(), elapsed)
        expected = batch(log[:prefix][-history:], asked, elapsed, degree)
        if expected is None:
            assert found is None
        else:
            assert found is not None
            assert found.point == pytest.approx(expected.point, rel=1e-3, abs=1e-3)
            assert found.observations == expected.observations
        predictor.learn_one(asked.submitted(), asked.run_time)


@given(st.lists(ENDED, min_size=10, max_size=40), st.sampled_from([1, 2]))
def test_nothing_is_left_of_forgotten_jobs_to_the_last_digit(log: list[WorkCancelled], degree: int) -> None:
    """Ranges of processors are fitted in one order, whichever of them was met first, and forgotten since."""
    old, new = learned(log, degree, history=8), learned(log[-8:], degree, history=8)
    for processors in (1, 3, 8, 64):
        asked = WorkCancelled(9, None, processors, 9, 0).submitted()
        assert old.predict_one(asked) == new.predict_one(asked)


def test_equal_run_times_do_not_outweigh_all_others() -> None:
    """Without a floor of the variance two equal run times would have an infinite weight."""
    jobs = [
        WorkCancelled(1, None, n, 1, run_time)
        for n, run_time in ((1, 50), (1, 50), (4, 100), (4, 102), (16, 90), (16, 92))
    ]
    prediction = learned(jobs).predict_one(WorkCancelled(1, None, 8, 1, 0).submitted())
    assert prediction is not None
    assert 50 < prediction.point < 110


def test_a_log_without_executables_is_predicted_by_user() -> None:
    jobs = [WorkCancelled(user, None, 4, None, 100 * user) for user in (1, 1, 2, 2)]
    points = [learned(jobs).predict_one(job.submitted()) for job in (jobs[0], jobs[2])]
    assert [each and each.point for each in points] == [100, 200]


def test_nothing_is_said_of_too_few_jobs() -> None:
    assert learned([WorkCancelled(1, None, 4, 1, 100)]).predict_one(WorkCancelled(1, None, 4, 1, 0).submitted()) is None
