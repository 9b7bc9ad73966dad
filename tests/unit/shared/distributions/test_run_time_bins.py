"""The grid on which run times are distributed."""

import math

import numpy as np
import pytest

from shadowtime.shared.distributions.histogram import BINS, EDGES, bin_of, expected_run_time, mean_run_time
from shadowtime.shared.distributions.outcomes import total_of
from shadowtime.shared.messages.base import MAX_DURATION
from shadowtime.shared.messages.predictions import RunTimePrediction, published
from tests.conformance.vectors.vector import vector


def test_edges_and_bins_of_the_worked_example() -> None:
    worked = vector("p0_bins_1.8")
    assert EDGES[: worked["n_bins"] + 1].round(3).tolist() == pytest.approx(worked["edges"], abs=1e-9)
    assert {each: bin_of(float(each)) for each in worked["bin_of"]} == worked["bin_of"]


def test_the_grid_reaches_past_every_time_a_message_can_carry() -> None:
    assert EDGES[-2] < MAX_DURATION <= EDGES[-1]
    assert bin_of(float(MAX_DURATION)) == BINS - 1


@pytest.mark.parametrize("limit", [0.5, 3.0, 700.0, 5000.0, math.inf])
def test_mean_equals_that_of_a_sample(limit: float) -> None:
    generator = np.random.default_rng(1)
    masses = generator.dirichlet(np.ones(14))
    masses[0] = 0.0  # of bin 0 the upper edge counts
    bins = generator.choice(14, p=masses / masses.sum(), size=400_000)
    sample = np.exp(generator.uniform(np.log(EDGES[bins]), np.log(EDGES[bins + 1])))
    assert mean_run_time(masses, limit) == pytest.approx(np.minimum(sample, limit).mean(), rel=0.01)


@pytest.mark.parametrize("limit", [2000.0, 5000.0, math.inf])
@pytest.mark.parametrize("elapsed", [0.0, 3.0, 700.0])
def test_mean_after_some_time_equals_that_of_a_sample(elapsed: float, limit: float) -> None:
    """Without a limit, the mean was not a number."""
    generator = np.random.default_rng(1)
    masses = np.concatenate(([0.0], generator.dirichlet(np.ones(13))))
    bins = generator.choice(len(masses), size=400_000, p=masses)
    run_times = np.exp(generator.uniform(np.log(EDGES[bins]), np.log(EDGES[bins + 1])))
    left = np.minimum(run_times[run_times > elapsed], limit)
    assert expected_run_time(masses, elapsed, limit) == pytest.approx(left.mean(), rel=0.01)


def test_a_prediction_is_rounded_cut_and_within_the_request() -> None:
    masses = np.zeros(BINS)
    masses[[3, 12]] = 2 / 3, 1 / 3
    made = RunTimePrediction.of(masses, 100, 7)
    assert made.histogram == (0.0,) * 3 + (0.666667,) + (0.0,) * 8 + (0.333333,)
    assert made.point == pytest.approx(2 / 3 * (5.832 - 3.24) / math.log(1.8) + 100 / 3, rel=1e-5)
    assert RunTimePrediction.model_validate_json(made.model_dump_json()) == made


@pytest.mark.parametrize("masses", [[0.0, 0.0], [math.nan, 1.0], [0.2, 0.2]])
def test_masses_that_are_no_distribution_make_no_prediction(masses: list[float]) -> None:
    with pytest.raises(ValueError, match=r"masses of a prediction|probabilities add up"):
        RunTimePrediction.of(np.array(masses), None, 7)


def test_masses_are_added_up_and_rounded_as_numpy_does() -> None:
    generator = np.random.default_rng(2)
    for count in range(1, BINS + 1):
        masses = generator.random(count) ** 3
        assert total_of(masses) == masses.sum()
        assert published(masses / 2) == tuple((masses / 2).round(6).tolist())
