"""The request told apart from an end shortly before it, by how often jobs have come to it."""

import math

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.services.runtime_distribution.ensembles.within_bins import AtRequest, share_at_request
from shadowtime.shared.distributions.histogram import EDGES, bin_of

NONE = np.zeros((0, 4), np.int64)


@given(
    st.lists(st.tuples(st.integers(0, 10_000), st.just(-1) | st.integers(1, 10_000)), max_size=60),
    st.floats(0, 1),
    st.floats(1, 1e6) | st.just(math.inf),
)
def test_a_share_is_one(ended: list[tuple[int, int]], everybody: float, limit: float) -> None:
    jobs = np.array([(*each, 1, -1) for each in ended], np.int64).reshape(-1, 4)
    share = share_at_request(jobs, everybody, limit)
    assert -1e-12 <= share <= 1 + 1e-12


def test_only_jobs_that_came_to_the_bin_count() -> None:
    limit = 3600.0
    early = math.floor(EDGES[bin_of(limit)])
    for run_time, expected in ((early, 0.25), (early + 1, 0.125 / 1.5), (3600, 1.125 / 1.5)):
        assert share_at_request(np.array([[run_time, 3600, 1, -1]]), 0.25, limit) == pytest.approx(expected)
    assert share_at_request(np.array([[3600, -1, 1, -1]]), 0.25, limit) == pytest.approx(0.25)


@pytest.mark.parametrize("limit", [1.0, math.inf])
def test_what_needs_no_telling_apart_stays(limit: float) -> None:
    outcomes = np.full(bin_of(limit) + 2, 1 / (bin_of(limit) + 2))
    assert AtRequest().apart(outcomes, NONE, limit).tolist() == outcomes.tolist()


def test_everybodys_jobs_are_counted_and_forgotten() -> None:
    everybody, outcomes = AtRequest(), np.array([0.4, 0.4, 0.2])

    def at() -> float:
        return float(everybody.apart(outcomes, NONE, 1.5)[-1])

    assert at() == pytest.approx(0.3)
    for _ in range(5_000):
        everybody.learn(3600, 3600.0)
    assert at() == pytest.approx(0.6, abs=0.01)
    again = AtRequest()
    again.restore(orjson.loads(orjson.dumps(everybody.snapshot())))
    for each in (everybody, again):
        for run_time, limit in ((3599, 3600.0),) * 3_000 + ((60, 3600.0), (60, math.inf)):
            each.learn(run_time, limit)
    assert at() == pytest.approx(0.03, abs=0.01)
    assert again.snapshot() == everybody.snapshot()
