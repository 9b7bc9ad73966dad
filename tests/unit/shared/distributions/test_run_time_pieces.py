"""Quantiles beside bins: what they make of the distribution, and that its transform is judged by it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from shadowtime.services.scoreboard.scores.run_time_distributions import PIT_BINS, RunTimeDistributionScores, crps
from shadowtime.shared.distributions.histogram import bin_of
from shadowtime.shared.distributions.outcomes import HIGH, LEVELS, LOW, MASS, NO_QUANTILES, pieces, transformed_in
from shadowtime.shared.kernels.arrays import Floats
from shadowtime.shared.messages.predictions import RunTimePrediction
from shadowtime.testing.examples import examples
from tests.support.plain_formulas import transformed

LIMITS = st.integers(1, 50_000).map(float)
QUANTILES = st.lists(st.floats(1, 60_000), min_size=19, max_size=19).map(sorted).map(np.array)


def outcomes_of(limit: float, seed: int) -> Floats:
    return np.random.default_rng(seed).dirichlet(np.full(bin_of(limit) + 2, 0.4))


@given(limit=LIMITS, seed=st.integers(0, 999), quantiles=QUANTILES)
@examples(200)
def test_pieces_have_the_masses_of_their_bins_in_order(limit: float, seed: int, quantiles: Floats) -> None:
    outcomes = outcomes_of(limit, seed)
    found = pieces(outcomes, quantiles, limit)
    assert (found[:, MASS] >= 0).all()
    assert (found[1:, LOW] == found[:-1, HIGH]).all()
    masses = np.zeros(len(outcomes))
    for low, high, mass in found:
        masses[bin_of(math.sqrt(low * high)) if low < high else bin_of(low)] += mass
    reached, told = np.cumsum(masses), np.cumsum(outcomes[:-1]) - outcomes[0]
    inside = found[:, LOW] < found[:, HIGH]
    if inside.all():  # an atom at an edge is of either bin
        assert reached[:-1] == pytest.approx(told)
    assert masses.sum() == pytest.approx(outcomes[1:-1].sum())


@given(limit=LIMITS, seed=st.integers(0, 999), run_time=st.integers(0, 60_000))
@examples(200)
def test_without_quantiles_it_is_the_transform_of_bins(limit: float, seed: int, run_time: int) -> None:
    outcomes = outcomes_of(limit, seed)
    found = transformed_in(pieces(outcomes, NO_QUANTILES, limit), outcomes, run_time, limit)
    assert found == pytest.approx(transformed(outcomes, run_time, limit))


def test_a_quantile_is_transformed_into_its_level() -> None:
    outcomes, limit = np.array([0.02, *[0.0] * 12, 0.4, 0.5, 0.08]), 3600.0
    quantiles = np.array([*np.linspace(1200, 2000, 8), *np.linspace(3300, 3500, 10), 3600.0])
    within = pieces(outcomes, quantiles, limit)
    found = [transformed_in(within, outcomes, each, limit)[0] for each in quantiles]
    assert found[:18] == pytest.approx(LEVELS[:18])
    assert transformed_in(within, outcomes, limit, limit) == pytest.approx((0.92, 1.0))


def test_several_quantiles_at_one_time_are_an_atom() -> None:
    outcomes, quantiles = np.array([0.0, 1.0, 0.0]), np.array([1.1, *[1.5] * 17, 1.6])
    within = pieces(outcomes, quantiles, 1.8)
    assert transformed_in(within, outcomes, 1.5, 1.8) == pytest.approx((0.10, 0.90))
    step = np.linspace(1.0, 1.8, 20_001)
    reached = np.array([transformed_in(within, outcomes, each, 1.8)[1] for each in step])
    expected = float(((reached - (step >= 1.4)) ** 2).mean() * 0.8)
    assert crps(within, outcomes, 1.4, 1.8) == pytest.approx(expected, rel=1e-3)


def test_ends_shortly_before_the_request_come_out_even_only_where_quantiles_tell_of_them() -> None:
    """A tenth to a half of the jobs end in the last hundredth before their request, which the forecast knows."""
    chance = np.random.default_rng(3)
    bins_alone, told = RunTimeDistributionScores(), RunTimeDistributionScores()
    limit, low = 3600, 1.8**13
    for _ in range(20_000):
        near = chance.uniform(0.1, 0.5)
        histogram = (*[0.0] * 14, 1.0)
        levels = np.minimum(LEVELS / (1 - near), 1.0), np.maximum(LEVELS - 1 + near, 0.0) / near
        quantiles = low * (0.99 * limit / low) ** levels[0] * (1 / 0.99) ** levels[1]
        if chance.random() < near:
            run_time = 0.99 * limit * (1 / 0.99) ** chance.random()
        else:
            run_time = low * (0.99 * limit / low) ** chance.random()
        prediction = RunTimePrediction(point=1, observations=1, histogram=histogram, at_request=0.0)
        bins_alone.add(prediction, limit, run_time)
        told.add(prediction.model_copy(update={"quantiles": tuple(quantiles)}), limit, run_time)
    off = [abs(np.array(each.summary()["pit"]) - 1 / PIT_BINS).max() for each in (bins_alone, told)]
    assert off[0] > 0.15
    assert off[1] < 4 * math.sqrt(0.09 / 20_000)
    assert told.summary()["log_score"] == bins_alone.summary()["log_score"]
    assert told.summary()["crps"] < bins_alone.summary()["crps"]


@pytest.mark.parametrize("quantiles", [(1.0,) * 18, (2.0, *[1.0] * 18), ()])
def test_quantiles_are_all_told_and_ascend(quantiles: tuple[float, ...]) -> None:
    with pytest.raises(ValidationError, match="quantiles"):
        RunTimePrediction(point=1, observations=1, quantiles=quantiles)
