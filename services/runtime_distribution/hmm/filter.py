"""The forward filter of a hidden Markov model: the state of a slice of time, given the jobs so far.

Shapes: `slices` slices of time, `states` hidden states, `bins` bins of run times. Rows of `emission` (states, bins) and
of `transition` (states, states) add up to 1. A job in a bin that no state can emit is no evidence.
"""

import math
from typing import Final, NamedTuple

import numpy as np

from shadowtime.shared.distributions import EDGES, bin_of
from shadowtime.shared.kernels import CountTable, Floats, FloatTable, Integers, kernel

Counts = CountTable
"""Ended jobs by slice of arrival and bin of run time; shape (slices, bins)."""

IMPOSSIBLE: Final = 1e-300
"""Probability used instead of 0, so that no job rules out all states."""


class Model(NamedTuple):
    """A hidden Markov model: `emission` (states, bins) and `transition` (states, states)."""

    emission: Floats
    transition: Floats

    def sojourn(self) -> Floats:
        """Return the mean number of slices that each state lasts. The number is geometrically distributed.

        >>> Model(np.eye(2), np.array([[0.9, 0.1], [0.2, 0.8]])).sojourn().round(9).tolist()
        [10.0, 5.0]
        """
        sojourn: Floats = 1 / (1 - self.transition.diagonal())
        return sojourn


@kernel
def log_likelihoods(counts: CountTable, emission: FloatTable) -> FloatTable:
    """Return the logarithm of the probability of each slice's jobs in each state, up to a constant per slice.

    Shape (slices, states). O(slices bins + states (bins + non-zero counts)).

    >>> log_likelihoods(np.array([[2, 1]], np.uint16), np.array([[0.8, 0.2]])).round(6).tolist()
    [[-2.055725]]
    """
    states, bins = emission.shape
    logarithms = np.zeros((bins, states))
    for j in range(bins):
        if emission[:, j].max() > 0:
            for state in range(states):
                logarithms[j, state] = math.log(max(emission[state, j], IMPOSSIBLE))

    likelihoods = np.zeros((len(counts), states))
    for t in range(len(counts)):
        for j in range(bins):
            if counts[t, j] > 0:
                for state in range(states):
                    likelihoods[t, state] += counts[t, j] * logarithms[j, state]

    return likelihoods


@kernel
def add_unfinished(likelihoods: FloatTable, slices: Integers, elapsed: Floats, emission: FloatTable) -> None:
    """Add the evidence of running jobs to `likelihoods` (slices, states), in place: log Pr(run time > elapsed | state).

    Within a bin the logarithm of the run time is uniform; bin 0 is not divided. If the probability is 0, nothing is
    added. The probability is then 0 in all states, because a learned model has the same longest run time in all states.

    `slices` and `elapsed` have the row of the slice in which each running job arrived, and the seconds that it has run;
    shape (jobs,). O(states (bins + jobs)).

    >>> likelihoods = np.zeros((1, 1))
    >>> add_unfinished(likelihoods, np.array([0]), np.array([1.8]), np.array([[0.5, 0.25, 0.25]]))
    >>> np.exp(likelihoods).round(9).tolist()
    [[0.25]]
    """
    states, bins = emission.shape
    tails = np.zeros((bins + 1, states))
    for j in range(bins - 1, -1, -1):
        for state in range(states):
            tails[j, state] = tails[j + 1, state] + emission[state, j]
    for job in range(len(slices)):
        j = bin_of(elapsed[job])
        if j >= bins:
            continue
        share = 1.0 if j == 0 else math.log(EDGES[j + 1] / elapsed[job]) / math.log(EDGES[j + 1] / EDGES[j])
        for state in range(states):
            tail = tails[j + 1, state] + share * emission[state, j]
            if tail > 0:
                likelihoods[slices[job], state] += math.log(tail)


@kernel
def forward(likelihoods: FloatTable, transition: FloatTable, prior: Floats) -> FloatTable:
    """Return the probability of each state in each slice, given the evidence up to that slice; (slices, states).

    Parameters
    ----------
    likelihoods
        Logarithms of the likelihood of each slice's evidence, shape (slices, states).
    prior
        Probability of each state in the first slice before its evidence, shape (states,).

    O(slices states²).

    References: docs/algorithms.md#hidden-markov-model (Rabiner 1989, section III-A).

    >>> forward(np.log([[0.5, 0.25]]), np.eye(2), np.array([0.5, 0.5])).round(6).tolist()
    [[0.666667, 0.333333]]
    """
    slices, states = likelihoods.shape
    filtered = np.zeros((slices, states))
    for t in range(slices):
        if t == 0:
            for state in range(states):
                filtered[0, state] = prior[state]
        else:
            for before in range(states):
                for state in range(states):
                    filtered[t, state] += filtered[t - 1, before] * transition[before, state]

        highest = -math.inf
        for state in range(states):
            if filtered[t, state] > 0:
                highest = max(highest, likelihoods[t, state])
        total = 0.0
        for state in range(states):
            filtered[t, state] *= math.exp(min(likelihoods[t, state] - highest, 0.0))
            total += filtered[t, state]
        for state in range(states):
            filtered[t, state] /= total

    return filtered


@kernel
def propagate(belief: Floats, transition: FloatTable, slices: int) -> Floats:
    """Return the probability of each state after `slices` slices without evidence; shape (states,).

    By repeated squaring: O(states²) for a single slice, O(states³ log slices) for more.

    >>> propagate(np.array([1.0, 0.0]), np.array([[0.9, 0.1], [0.2, 0.8]]), 2).round(6).tolist()
    [0.83, 0.17]
    """
    states = len(belief)
    power = transition.copy()
    result = belief.copy()
    while slices > 0:
        if slices % 2 == 1:
            moved = np.zeros(states)
            for before in range(states):
                for state in range(states):
                    moved[state] += result[before] * power[before, state]
            result = moved / moved.sum()

        slices //= 2
        if slices > 0:
            squared = np.zeros((states, states))
            for row in range(states):
                for inner in range(states):
                    for column in range(states):
                        squared[row, column] += power[row, inner] * power[inner, column]

            for row in range(states):
                power[row] = squared[row] / squared[row].sum()

    return result


@kernel
def idled(belief: Floats, transition: FloatTable, slices: int) -> Floats:
    """Return the probability of each state after `slices` slices without jobs, filtered one by one; shape (states,).

    The result is bit-identical to `forward` and `propagate` slice by slice. O(states² slices).

    >>> idled(np.array([1.0, 0.0]), np.array([[0.9, 0.1], [0.2, 0.8]]), 2).round(6).tolist()
    [0.83, 0.17]
    """
    nothing = np.zeros((1, len(belief)))
    for _ in range(slices):
        belief = propagate(forward(nothing, transition, belief)[0], transition, 1)
    return belief
