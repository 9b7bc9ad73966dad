"""Where in the bins run times lie: parts, quantiles and the transform agree, and follow the user and the request."""

import math
from itertools import pairwise

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.services.runtime_distribution.ensembles.within_bins import (
    EVEN,
    PARTS,
    NearRequest,
    edge,
    gathered,
    parts_of,
    quantiles_of,
    spread,
    transformed_within,
)
from shadowtime.services.runtime_distribution.ensembles.within_bins import (
    NEAR as NEAR_WEIGHT,
)
from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.distributions.histogram import bin_of
from shadowtime.shared.distributions.outcomes import LEVELS, pieces, transformed_in
from shadowtime.testing.examples import examples
from tests.support.plain_formulas import transformed

LIMITS = st.just(math.inf) | st.integers(2, 400_000).map(float)  # with one of 1 s all ends are at it
NEAR = np.full(PARTS, 2.0)
NONE = np.zeros((0, 4), np.int64)


@given(limit=LIMITS, seed=st.integers(0, 999))
@examples(200)
def test_quantiles_parts_and_transform_agree(limit: float, seed: int) -> None:
    chance = np.random.default_rng(seed)
    jobs = chance.integers(0, 9_000, (20, 4))
    jobs[::3, 1] = -1
    parts = parts_of(jobs, chance.uniform(0, 9, PARTS), limit)
    assert parts.sum(axis=1) == pytest.approx(1)
    outcomes = chance.dirichlet(np.full(len(parts) + 1, 0.5))
    fine = spread(outcomes, parts)
    assert gathered(fine) == pytest.approx(outcomes)
    quantiles = quantiles_of(fine, limit, LEVELS)
    assert (np.diff(quantiles) >= 0).all()
    assert quantiles[-1] <= min(limit, MAX_DURATION)
    within = pieces(outcomes, quantiles, limit)
    for level, time in zip(LEVELS, quantiles, strict=True):
        begin, end = transformed_within(fine, time, limit)
        if 1 < time < min(limit, MAX_DURATION):
            assert begin == pytest.approx(level)
        else:
            assert begin - 1e-9 <= level <= end + 1e-9 or limit == math.inf
        assert transformed_in(within, outcomes, time, limit)[1] == pytest.approx(end, abs=1e-6)


def test_with_nothing_known_the_logarithm_is_uniform_but_near_the_request() -> None:
    parts, outcomes = parts_of(NONE, np.zeros(PARTS), 3600.0), np.full(16, 1 / 16)
    for time in (3, 700, 2500, 3500, 3599):
        assert transformed_within(spread(outcomes, parts), time, 3600.0) == pytest.approx(
            transformed(outcomes, time, 3600.0)
        )


def test_the_same_job_again_lies_where_it_lay() -> None:
    """A user of Mira: 917 to 965 s of 1,800, in a bin of 643 to 1,157 s."""
    jobs = np.array([[run_time, 1800, 1, -1] for run_time in (917, 965, 950, 930, 944, 921, 960, 938)])
    fine = spread(np.eye(15)[bin_of(940.0)], parts_of(jobs, NEAR, 1800.0))
    low, high = quantiles_of(fine, 1800.0, LEVELS)[[3, 15]]
    assert 890 < low < high < 1000


def test_ends_shortly_before_the_request_are_looked_for_before_any_request() -> None:
    near = NearRequest()
    for _ in range(2_000):
        near.learn(3590, 3600.0)
        near.learn(3600, 3600.0)  # at the request
        near.learn(60, 3600.0)  # in another bin
        near.learn(60, math.inf)
    again = NearRequest()
    again.restore(orjson.loads(orjson.dumps(near.snapshot())))
    parts = parts_of(NONE, again.counts, 86_400.0)
    assert parts[bin_of(86_400.0), -1] > 0.45
    assert parts[5] == pytest.approx(1 / PARTS)
    jobs = np.array([[3500, 3600, 1, 1]] * 9)  # this user's come to 97 %
    assert parts_of(jobs, again.counts, 86_400.0)[bin_of(86_400.0), 4] > 0.7


@given(limit=st.integers(2, 400_000).map(float), seed=st.integers(0, 999))
def test_jobs_near_their_request_count_in_the_parts_that_reach_into_its_bin(limit: float, seed: int) -> None:
    near, last = np.random.default_rng(seed).uniform(0, 9, PARTS), bin_of(limit)
    ends = [edge(last, k, last, limit) for k in range(PARTS + 1)]
    widths = np.array([math.log(end / begin) for begin, end in pairwise(ends)]) if last else np.ones(PARTS)
    weights = EVEN * widths / widths.sum()
    if last:
        weights += NEAR_WEIGHT * near * (widths > 0) / near[widths > 0].sum()
    assert parts_of(NONE, near, limit)[last] == pytest.approx(weights / weights.sum())
