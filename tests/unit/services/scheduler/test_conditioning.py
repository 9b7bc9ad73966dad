"""What is left of a run-time distribution, against numerical integration and at its guards."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.services.scheduler.kernels.terminations import (
    Distributions,
    condition,
    ends_of,
    refined_edges,
)
from shadowtime.shared.distributions.histogram import BINS, EDGES
from shadowtime.testing.examples import examples
from tests.conformance.vectors.vector import vector
from tests.support.plain_formulas import conditional


def outcome(example: dict[str, object]) -> list[float]:
    bins = np.array(example["bins"], dtype=np.float64)
    edges = np.concatenate((bins[:1, 0], bins[:, 1]))
    masses = np.array(example["old_p"], dtype=np.float64)
    times, left = condition(masses, edges, float(example["elapsed"]), float(example["estimate"]), False)  # type: ignore[arg-type]
    found = dict(zip(times.tolist(), left.tolist(), strict=True))
    return [found.get(min(high, float(example["estimate"])), 0.0) for high in edges[1:]]  # type: ignore[arg-type]


def test_a_running_job_of_the_worked_example() -> None:
    assert outcome(vector("p0_alg1_normal")) == pytest.approx(vector("p0_alg1_normal")["normalised"], abs=1e-9)


def test_a_waiting_job_of_the_worked_example() -> None:
    example = vector("p0_alg1_queued")
    assert outcome(example)[:2] == pytest.approx(example["normalised"][:2], abs=1e-9)


@pytest.mark.parametrize(
    ("example", "end"), [(vector("p0_alg1_bug_elapsed_gt_estimate"), 5001.0), (vector("p0_alg1_bug_zero_mass"), 2000.0)]
)
def test_where_the_printed_algorithm_fails_a_job_ends_at_its_limit(example: dict[str, float], end: float) -> None:
    edges = np.array([1.0, 10.0, 100.0, 1000.0, 10000.0])
    masses = np.array(example["old_p"], dtype=np.float64)
    for censor in (False, True):
        times, left = condition(masses, edges, float(example["elapsed"]), float(example["estimate"]), censor)
        assert (times.tolist(), left.tolist()) == ([end], [1.0])


MASSES = st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 1)), min_size=1, max_size=BINS).map(np.array)


@given(
    masses=MASSES,
    elapsed=st.one_of(st.floats(0, 1e6), st.sampled_from(EDGES[:20].tolist())),
    request=st.one_of(st.floats(1, 1e6), st.sampled_from(EDGES[1:20].tolist()), st.just(math.inf)),
    censor=st.booleans(),
)
@examples(1000)
def test_always_a_distribution_after_now_and_up_to_the_limit(
    masses: np.ndarray, elapsed: float, request: float, *, censor: bool
) -> None:
    times, left = conditional(masses, elapsed, request, censor=censor)
    assert left.sum() == pytest.approx(1.0)
    assert (left >= 0).all()
    assert (np.diff(times) > 0).all()
    assert times[0] > elapsed
    assert times[-1] <= max(request, elapsed + 1)


@pytest.mark.parametrize("censor", [False, True])
def test_equals_a_sample_that_is_cut(censor: bool) -> None:
    chance = np.random.default_rng(3)
    masses = chance.dirichlet(np.ones(18))
    masses[0] = 0.0
    bins = chance.choice(18, p=masses / masses.sum(), size=600_000)
    sample = np.exp(chance.uniform(np.log(EDGES[bins]), np.log(EDGES[bins + 1])))
    sample = sample[sample > 70.0]
    sample = np.minimum(sample, 2000.0) if censor else sample[sample <= 2000.0]
    times, left = conditional(masses, 70.0, 2000.0, censor=censor)
    for time, below in zip(times, np.cumsum(left), strict=True):
        assert (sample <= time).mean() == pytest.approx(below, abs=0.004)


def test_the_first_bin_is_whole_in_the_first_second() -> None:
    times, left = conditional(np.array([0.5, 0.5]), 0.0, 3600.0)
    assert times.tolist() == [1.0, 1.8]
    assert left.tolist() == [0.5, 0.5]
    assert conditional(np.array([0.5, 0.5]), 1.0, 3600.0)[0].tolist() == [1.8]


def test_without_request_a_job_that_outlives_everything_never_ends() -> None:
    times, left = conditional(np.array([0.0, 1.0]), 5.0, math.inf)
    assert (times.tolist(), left.tolist()) == ([math.inf], [1.0])


@pytest.mark.parametrize("points", [2, 5])
def test_finer_bins_share_the_mass_of_a_bin_equally(points: int) -> None:
    masses = np.arange(1.0, BINS + 1.0) / np.arange(1.0, BINS + 1.0).sum()
    distributions = Distributions(masses[np.newaxis], refined_edges(points), False)
    times, probabilities = ends_of(1_000, 1_000, 0, 10**15, 0, distributions)
    assert times.tolist() == (1_000 + refined_edges(points)[1:]).tolist()
    assert probabilities[0] == pytest.approx(masses[0])
    for number in range(1, BINS):
        shares = probabilities[1 + (number - 1) * points : 1 + number * points]
        assert shares == pytest.approx([masses[number] / points] * points)
