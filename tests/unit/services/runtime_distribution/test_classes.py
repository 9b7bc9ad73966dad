"""Percentile and mean with sigma of a user's like jobs, and the longest of a queue, against the whole log."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.services.runtime_distribution.simple import (
    ClassMeanSigma,
    ClassP90,
    OwnerClassSettings,
    OwnersSettings,
    QueueMaximum,
)
from shadowtime.shared.messages.envelope import JobSubmitted
from tests.unit.services.runtime_distribution.ended_jobs import ENDED, WorkCancelled


def percentile(run_times: list[int]) -> float:
    return sorted(run_times)[math.ceil(0.9 * len(run_times)) - 1]


def mean_sigma(run_times: list[int]) -> float:
    return float(np.mean(run_times) + 1.5 * np.std(run_times, ddof=1))


@pytest.mark.parametrize(("predictor", "statistic"), [(ClassP90, percentile), (ClassMeanSigma, mean_sigma)])
@pytest.mark.parametrize("key", ["user", "user+processors", "user+executable", "user+executable+processors"])
@given(log=st.lists(ENDED, max_size=30), history=st.sampled_from([6, 1000]))
def test_online_is_batch_at_every_prefix(
    predictor: Any, statistic: Any, key: Any, log: list[WorkCancelled], history: int
) -> None:
    def class_of(job: WorkCancelled) -> tuple[int | None, ...]:
        values = {"user": job.user_id, "executable": job.executable_number, "processors": job.processors}
        return tuple(values[each] for each in key.split("+"))

    online = predictor(OwnerClassSettings(key=key, history=history))
    for prefix, asked in enumerate(log):
        like = [job.run_time for job in log[:prefix][-history:] if class_of(job) == class_of(asked)]
        found = online.predict_one(asked.submitted())
        if len(like) < 2 or None in class_of(asked):
            assert found is None
        else:
            limit = math.inf if asked.requested_time is None else asked.requested_time
            assert found.point == pytest.approx(max(min(statistic(like), limit), 1))
            assert found.observations == len(like)
        online.learn_one(asked.submitted(), asked.run_time)


def test_zero_variance_is_the_mean() -> None:
    predictor = ClassMeanSigma(OwnerClassSettings())
    job = WorkCancelled(1, None, 1, 1, 500)
    for _ in range(3):
        predictor.learn_one(job.submitted(), job.run_time)
    prediction = predictor.predict_one(job.submitted())
    assert prediction is not None
    assert prediction.point == 500


@given(st.lists(st.tuples(st.none() | st.integers(1, 3), st.integers(0, 9000)), max_size=30))
def test_the_longest_of_a_queue(log: list[tuple[int | None, int]]) -> None:
    predictor = QueueMaximum(OwnersSettings())

    def job(queue: int | None) -> JobSubmitted:
        return JobSubmitted(time=0, job_number=1, requested_processors=1, requested_time=6000, queue_number=queue)

    for prefix, (queue, run_time) in enumerate(log):
        for asked in (None, 1, 2, 3):
            own = [each for other, each in log[:prefix] if other == asked]
            found = predictor.predict_one(job(asked))
            assert (found and found.point) == (max(min(max(own), 6000), 1) if own else None)
        predictor.learn_one(job(queue), run_time)
