"""Learning: what never falls, what was planted, and when it stops."""

import math
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.services.runtime_distribution.hmm.filter import Counts, Model, forward, log_likelihoods
from shadowtime.services.runtime_distribution.hmm.learning import (
    PASSES,
    SMOOTHING,
    Method,
    distance,
    hard_pass,
    learn,
    normalised,
    seeded,
    smooth,
    smoothing,
    soft_pass,
    start,
    unlearned,
)
from shadowtime.shared.kernels.arrays import Floats

METHODS = pytest.mark.parametrize("method", ["em", "baum-welch"])


@st.composite
def slices(draw: st.DrawFn, most: int = 30) -> Counts:
    """Return random counts of which some slices, and maybe the last bins, are empty; at least one job."""
    chance = np.random.default_rng(draw(st.integers(0, 2**32)))
    length, bins = draw(st.integers(1, most)), draw(st.integers(1, 6))
    counts = chance.poisson(chance.choice([0.0, 0.3, 3.0], (length, 1)) * chance.random(bins), (length, bins))
    counts[chance.integers(length), 0] += 1
    return counts.astype(np.uint16)


def planted(model: Model, length: int, seed: int = 1) -> Counts:
    """Return slices of 0 to 5 jobs drawn from a model."""
    chance = np.random.default_rng(seed)
    states, bins = model.emission.shape
    state, counts = 0, np.zeros((length, bins), np.uint16)
    for t in range(length):
        counts[t] = chance.multinomial(chance.integers(0, 6), model.emission[state])
        state = chance.choice(states, p=model.transition[state])
    return counts


def evidence(counts: Counts, model: Model) -> float:
    """Return the logarithm of the probability of the counts, by all paths at once, up to a constant."""
    likelihoods = log_likelihoods(counts, model.emission)
    belief, total = start(len(model.emission)), 0.0
    for likelihood in likelihoods:
        highest = likelihood.max()
        belief = belief * np.exp(likelihood - highest)
        total += highest + math.log(belief.sum())
        belief = belief / belief.sum() @ model.transition
    return total


def prior(counts: Counts, emission: Floats) -> float:
    held = smoothing(counts) > 0
    return SMOOTHING * float(np.log(emission[:, held]).sum())


@given(slices(), st.integers(1, 5), st.integers(0, 99))
def test_the_probability_never_falls_in_baum_welch(counts: Counts, states: int, seed: int) -> None:
    chance = np.random.default_rng(seed)
    model = unlearned(states, counts.shape[1])._replace(
        emission=seeded(counts, np.zeros((states, counts.shape[1])), chance)
    )
    before = -math.inf
    for _ in range(6):
        after = evidence(counts, model) + prior(counts, model.emission) + float(np.log(model.transition).sum())
        assert after >= before - 1e-9 * abs(after)
        before, (model, jobs) = after, soft_pass(counts, model)
        assert jobs.sum() == pytest.approx(counts.sum())


@given(slices(), st.integers(1, 5), st.integers(0, 99))
def test_the_likelihood_of_the_likeliest_states_never_falls_in_hard_em(counts: Counts, states: int, seed: int) -> None:
    emission = seeded(counts, np.zeros((states, counts.shape[1])), np.random.default_rng(seed))
    model, before = unlearned(states, counts.shape[1])._replace(emission=emission), -math.inf
    for _ in range(6):
        after = log_likelihoods(counts, model.emission).max(axis=1).sum() + prior(counts, model.emission)
        assert after >= before - 1e-9 * abs(after)
        before, (model, jobs) = after, hard_pass(counts, model)
        assert jobs.sum() == counts.sum()
        assert model.transition.sum(axis=1) == pytest.approx(np.ones(states))


@METHODS
def test_planted_states_are_found(method: Method) -> None:
    truth = Model(np.array([[0.7, 0.2, 0.05, 0.05], [0.05, 0.05, 0.3, 0.6]]), np.array([[0.95, 0.05], [0.1, 0.9]]))
    counts = planted(truth, 3000)
    learned = learn(counts, unlearned(2, 4), method, 0.0, int(counts.sum()), np.random.default_rng(3)).model
    order = learned.emission[:, 0].argsort()[::-1]
    assert learned.emission[order] == pytest.approx(truth.emission, abs=0.05)
    assert learned.transition[order][:, order] == pytest.approx(truth.transition, abs=0.05)
    assert learned.sojourn()[order] == pytest.approx([20.0, 10.0], rel=0.4)


@METHODS
def test_slices_without_jobs_do_not_fall_to_one_state(method: Method) -> None:
    """On KTH two of three slices are empty, and one state, chosen by chance, predicted 94 to 98 % of the jobs."""
    truth = Model(np.array([[0.95, 0.05], [0.05, 0.95]]), np.array([[0.8, 0.2], [0.2, 0.8]]))
    counts = planted(truth, 6000)
    counts[np.random.default_rng(2).random(len(counts)) < 2 / 3] = 0
    for seed in range(5):
        model = learn(counts, unlearned(2, 2), method, 0.0, int(counts.sum()), np.random.default_rng(seed)).model
        one, other = model.transition.diagonal()
        assert one == pytest.approx(other, abs=0.08)


@METHODS
def test_it_stops_when_the_distance_is_small_for_so_many_jobs(method: Method) -> None:
    counts = planted(Model(normalised(np.eye(3) + 0.3), normalised(np.eye(3) + 0.2)), 400)

    def after(threshold: float, ended: int) -> Model:
        return learn(counts, unlearned(3, 3), method, threshold, ended, np.random.default_rng(5)).model

    step = hard_pass if method == "em" else soft_pass
    passes = [after(0.0, 1)._replace(emission=seeded(counts, np.zeros((3, 3)), np.random.default_rng(5)))]
    passes[0] = passes[0]._replace(transition=unlearned(3, 3).transition)
    for _ in range(PASSES):
        passes.append(step(counts, passes[-1])[0])
    first, second = (distance(a.emission, b.emission) for a, b in pairwise(passes[:3]))
    assert 0 < second < first
    for threshold, ended, expected in (
        (0.0, 1, PASSES),
        (first * 10 + 1e-9, 100, 1),
        (first * 10 - 1e-9, 100, 2),
        (second * 10 + 1e-9, 100, 2),
        (second * 10 + 1e-9, 121, 3),
    ):
        np.testing.assert_array_equal(after(threshold, ended).emission, passes[expected].emission)


@given(slices(), st.integers(1, 5), st.integers(0, 99))
def test_seeds_are_histograms_of_slices_and_leave_used_states_alone(counts: Counts, states: int, seed: int) -> None:
    bins = counts.shape[1]
    emission = seeded(counts, np.zeros((states, bins)), np.random.default_rng(seed))
    histograms = [normalised(each + smoothing(counts)) for each in counts if each.any()]
    assert all(any((state == each).all() for each in histograms) for state in emission)
    assert (seeded(counts, np.zeros((states, bins)), np.random.default_rng(seed)) == emission).all()
    used = np.unique(log_likelihoods(counts[counts.any(axis=1)], emission).argmax(axis=1))
    again = seeded(counts, emission, np.random.default_rng(seed + 1))
    assert (again[used] == emission[used]).all()


def test_seeds_lie_apart() -> None:
    counts = np.repeat(np.eye(4, dtype=np.uint16) * np.uint16(50), [97, 1, 1, 1], axis=0)
    for seed in range(20):
        emission = seeded(counts, np.zeros((4, 4)), np.random.default_rng(seed))
        assert sorted(emission.argmax(axis=1)) == [0, 1, 2, 3]


def test_a_state_that_lost_its_jobs_is_seeded_anew() -> None:
    counts = np.array([[9, 0, 0], [0, 9, 0], [0, 0, 9]] * 5, np.uint16)
    model = Model(np.array([[0.45, 0.45, 0.1], [0.1, 0.1, 0.8], [0.4, 0.4, 0.2]]), np.full((3, 3), 1 / 3))
    learned = learn(counts, model, "em", 0.0, 135, np.random.default_rng(1))
    assert (learned.jobs == 45).all()


@given(slices(most=5), st.integers(1, 3), st.integers(0, 99))
def test_smoothing_equals_the_sum_over_all_paths(counts: Counts, states: int, seed: int) -> None:
    chance = np.random.default_rng(seed)
    model = Model(chance.dirichlet(np.ones(counts.shape[1]), states), chance.dirichlet(np.ones(states), states))
    likelihoods = log_likelihoods(counts, model.emission)
    expected, steps, total = np.zeros((len(counts), states)), np.zeros((states, states)), 0.0
    for path in product(range(states), repeat=len(counts)):
        probability = math.exp(sum(likelihoods[t, state] for t, state in enumerate(path)))
        for before, state in pairwise(path):
            probability *= model.transition[before, state]
        total += probability
        for t, state in enumerate(path):
            expected[t, state] += probability
        for before, state in pairwise(path):
            steps[before, state] += probability
    smoothed, stepped = smooth(forward(likelihoods, model.transition, start(states)), model.transition)
    assert smoothed == pytest.approx(expected / total, abs=1e-9)
    assert stepped == pytest.approx(steps / total, abs=1e-9)
