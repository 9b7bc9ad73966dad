"""The forward filter: the worked example, every path of states one by one, and the kernels in plain Python."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.services.runtime_distribution.hmm.filter import (
    Model,
    add_unfinished,
    forward,
    log_likelihoods,
    propagate,
)
from shadowtime.shared.kernels.arrays import Floats
from tests.conformance.vectors.vector import vector
from tests.unit.services.runtime_distribution.hmm_cases import Case, cases


def brute_force(case: Case) -> Floats:
    """Return the filtered states from the probability of every path up to every slice."""
    states = len(case.prior)
    filtered = np.zeros((len(case.counts), states))
    for t in range(len(case.counts)):
        for path in product(range(states), repeat=t + 1):
            probability = case.prior[path[0]]
            for before, after in pairwise(path):
                probability *= case.model.transition[before, after]
            for state, jobs in zip(path, case.counts, strict=False):
                probability *= np.prod(case.model.emission[state] ** jobs)
            filtered[t, path[-1]] += probability
        filtered[t] /= filtered[t].sum()
    return filtered


def test_worked_example() -> None:
    worked = vector("p0_hmm_forward")
    model = Model(np.array(worked["B_bins"]), np.array(worked["A"]))
    counts = np.array(worked["slice_counts"], np.uint16)
    filtered = forward(log_likelihoods(counts, model.emission), model.transition, np.array(worked["pi"]))
    assert filtered == pytest.approx(np.array(worked["filtered"]), abs=1e-9)
    following = propagate(filtered[-1], model.transition, 1)
    assert following == pytest.approx(np.array(worked["predictive_next"]), abs=1e-9)
    mixture = following @ model.emission
    assert mixture == pytest.approx(np.array(worked["mixture_distribution_for_new_job"]), abs=1e-9)
    assert following.argmax() == worked["argmax_state"]
    assert model.sojourn() == pytest.approx(np.array(worked["expected_sojourn_slices"]))


@given(cases())
def test_filter_equals_the_sum_over_all_paths(case: Case) -> None:
    likelihoods = log_likelihoods(case.counts, case.model.emission)
    assert forward(likelihoods, case.model.transition, case.prior) == pytest.approx(brute_force(case), abs=1e-9)


@given(cases(), st.integers(0, 40))
def test_propagating_equals_filtering_slices_without_jobs(case: Case, slices: int) -> None:
    nothing = np.zeros((slices + 1, len(case.prior)))
    stepwise = forward(nothing, case.model.transition, case.prior)[-1]
    assert propagate(case.prior, case.model.transition, slices) == pytest.approx(stepwise, abs=1e-9)


def test_a_gap_of_ages_is_no_more_work() -> None:
    transition = np.array([[0.9, 0.1], [0.2, 0.8]])
    assert propagate(np.array([0.0, 1.0]), transition, 2**50) == pytest.approx([2 / 3, 1 / 3])


def test_a_bin_that_no_state_emits_says_nothing_and_one_that_some_emit_much() -> None:
    emission = np.array([[0.5, 0.5, 0.0], [0.5, 0.0, 0.0]])
    likelihoods = log_likelihoods(np.array([[0, 0, 9], [0, 1, 0]], np.uint16), emission)
    assert likelihoods[0].tolist() == [0.0, 0.0]
    assert forward(likelihoods, np.eye(2), np.array([0.1, 0.9]))[1] == pytest.approx([1.0, 0.0])


def test_a_hundred_thousand_jobs_in_a_slice_are_not_too_many() -> None:
    likelihoods = log_likelihoods(np.full((1, 2), 50_000, np.uint16), np.array([[0.5, 0.5], [0.9, 0.1]]))
    assert forward(likelihoods, np.eye(2), np.array([1e-300, 1.0])).tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize(
    ("elapsed", "share"),
    [(0.0, 1.0), (0.5, 1.0), (1.0, 1.0), (1.8, 0.5), (1.8**1.5, 0.35), (1.8**2, 0.2), (1e9, 1.0)],
)
def test_an_unfinished_job_counts_by_the_share_that_runs_longer(elapsed: float, share: float) -> None:
    emission = np.array([[0.3, 0.2, 0.3, 0.2]])
    likelihoods = np.zeros((2, 1))
    add_unfinished(likelihoods, np.array([1]), np.array([elapsed]), emission)
    assert np.exp(likelihoods[:, 0]) == pytest.approx([1.0, share])
