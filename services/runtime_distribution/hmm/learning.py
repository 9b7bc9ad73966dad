"""Learning a hidden Markov model of the run times in successive slices of time.

The states begin as histograms of single slices, chosen far apart by k-means++ on the Kullback-Leibler divergence. Each
pass then improves them: by hard expectation-maximisation of a mixture of multinomials over the histograms of slices, or
by Baum-Welch. Shapes are as in `filter`.
"""

import math
from collections.abc import Callable
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.random import Generator

from shadowtime.services.runtime_distribution.hmm.filter import Counts, Model, forward, log_likelihoods
from shadowtime.shared.kernels import CountTable, Floats, FloatTable, kernel

PASSES: Final = 3
"""Maximum number of passes; more passes overfit (Nissimov 2007, section 3)."""

SMOOTHING: Final = 0.5
"""Pseudo-count added to each bin of each state, up to the longest run time seen."""

Method = Literal["em", "baum-welch"]


class Learned(NamedTuple):
    """A model, the distance that the last pass moved it, and the number of jobs behind each state (states,)."""

    model: Model
    distance: float
    jobs: Floats


def learn(counts: Counts, model: Model, method: Method, threshold: float, ended: int, chance: Generator) -> Learned:
    """Return a model that fits successive slices better than `model` does, or a first model.

    There are at most three passes. They stop after a pass with distance(before, after) · √ended < `threshold`. A state
    without a slice is seeded anew before the first pass. A pass is O(slices states (bins + states)).

    Parameters
    ----------
    counts
        Shape (slices, bins); at least one job.
    model
        The previous model, or `unlearned`.
    method
        Kind of the passes, a key of `PASS`.
    ended
        Number of jobs that have ended so far.
    chance
        Seeded random numbers, for the states that are seeded.

    >>> counts = np.tile(np.array([[9, 1], [1, 9]], np.uint16), (50, 1))
    >>> learned = learn(counts, unlearned(2, 2), "em", 0.0, 1000, np.random.default_rng(1))
    >>> sorted(learned.model.emission[:, 0].round(3).tolist())
    [0.101, 0.899]

    References: docs/algorithms.md#hidden-markov-model (Nissimov 2007, section 3).
    """
    emission = seeded(counts, model.emission, chance)
    model, moved = model._replace(emission=emission), math.inf
    jobs = np.zeros(emission.shape)
    for _ in range(PASSES):
        if moved * math.sqrt(ended) < threshold:
            break
        before = model.emission
        model, jobs = PASS[method](counts, model)
        moved = distance(before, model.emission)

    return Learned(model, moved, jobs.sum(axis=1))


def unlearned(states: int, bins: int) -> Model:
    """Return the model from which the first model is learned. It emits nothing.

    With probability 1/2 it stays in its state; else it moves to a random state, possibly the same one.

    >>> unlearned(2, 1).transition.tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    return Model(np.zeros((states, bins)), 0.5 * np.eye(states) + 0.5 / states)


def start(states: int) -> Floats:
    """Return the probability of each state in the first of all slices, before its evidence; shape (states,)."""
    return np.full(states, 1 / states)


def distance(one: Floats, other: Floats) -> float:
    """Return the mean over states of the L1 distance between two emissions; from 0 to 2.

    States are matched by their number, which a pass does not change.

    >>> distance(np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([[0.0, 1.0], [0.5, 0.5]]))
    1.0
    """
    return float(np.abs(one - other).sum(axis=1).mean())


def seeded(counts: Counts, emission: Floats, chance: Generator) -> Floats:
    """Return `emission`, where the histogram of a slice replaces each state that is the likeliest of no slice.

    The slice is drawn with a probability proportional to its jobs times its divergence from the nearest state
    (k-means++). So it is far from the other states. If there are no other states, only the jobs count.
    O(slices bins states) for each state that is replaced.

    References: docs/algorithms.md#hidden-markov-model (Arthur 2007).
    """
    counts = counts[counts.any(axis=1)]
    sizes = counts.sum(axis=1, dtype=np.float64)
    histograms = normalised(counts + smoothing(counts))
    own = (counts * np.log(np.where(counts > 0, histograms, 1.0))).sum(axis=1)
    chosen = np.zeros(len(emission), np.bool_)
    if emission.any():
        chosen[log_likelihoods(counts, emission).argmax(axis=1)] = True
    emission = emission.copy()
    for state in np.flatnonzero(~chosen):
        weights = sizes
        if chosen.any():
            weights = np.maximum(own - log_likelihoods(counts, emission[chosen]).max(axis=1), 0.0)
        cumulated = weights.cumsum()
        drawn = np.searchsorted(cumulated, chance.random() * cumulated[-1], side="right")
        emission[state] = histograms[min(drawn, len(counts) - 1)]
        chosen[state] = True

    return emission


def hard_pass(counts: Counts, model: Model) -> tuple[Model, Floats]:
    """Assign each slice to its likeliest state and count jobs; return the new model and its jobs (states, bins).

    Transitions are counted by their expectation, because a slice without jobs has no likeliest state. If each slice
    counted for one state only, nearly all such slices would count for the same state, chosen by chance.
    """
    likeliest = log_likelihoods(counts, model.emission).argmax(axis=1)
    jobs = jobs_of_states(counts, np.eye(len(model.emission))[likeliest])
    emission = normalised(jobs + smoothing(counts))
    filtered = forward(log_likelihoods(counts, emission), model.transition, start(len(emission)))
    steps = smooth(filtered, model.transition)[1]
    return Model(emission, normalised(steps + 1.0)), jobs


def soft_pass(counts: Counts, model: Model) -> tuple[Model, Floats]:
    """Share each slice among the states (Baum-Welch); return the new model and its expected jobs (states, bins).

    A pass never lowers the posterior: the likelihood of the counts times the prior of the model. The pseudo-counts
    that are added to the counts stand for that prior.

    References: docs/algorithms.md#hidden-markov-model (Rabiner 1989, section III-C).
    """
    filtered = forward(log_likelihoods(counts, model.emission), model.transition, start(len(model.emission)))
    smoothed, steps = smooth(filtered, model.transition)
    jobs = jobs_of_states(counts, smoothed)
    return Model(normalised(jobs + smoothing(counts)), normalised(steps + 1.0)), jobs


PASS: Final[dict[Method, Callable[[Counts, Model], tuple[Model, Floats]]]] = {
    "em": hard_pass,
    "baum-welch": soft_pass,
}


@kernel
def smooth(filtered: FloatTable, transition: FloatTable) -> tuple[FloatTable, FloatTable]:
    """Return the probability of each state in each slice given all slices, and the expected transitions between states.

    Shapes (slices, states) and (states, states). O(slices states²).

    >>> smoothed, steps = smooth(np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([[0.9, 0.1], [0.1, 0.9]]))
    >>> smoothed.round(6).tolist(), steps.round(6).tolist()
    ([[0.9, 0.1], [1.0, 0.0]], [[0.9, 0.0], [0.1, 0.0]])
    """
    slices, states = filtered.shape
    smoothed = filtered.copy()
    steps = np.zeros((states, states))
    for t in range(slices - 2, -1, -1):
        ratio = np.zeros(states)
        for before in range(states):
            for state in range(states):
                ratio[state] += filtered[t, before] * transition[before, state]
        for state in range(states):
            ratio[state] = smoothed[t + 1, state] / ratio[state] if ratio[state] > 0 else 0.0
        for before in range(states):
            smoothed[t, before] = 0.0
            for state in range(states):
                step = filtered[t, before] * transition[before, state] * ratio[state]
                steps[before, state] += step
                smoothed[t, before] += step

    return smoothed, steps


@kernel
def jobs_of_states(counts: CountTable, shares: FloatTable) -> FloatTable:
    """Return the jobs of each state by bin (states, bins). `shares` (slices, states) divides each slice among states.

    >>> jobs_of_states(np.array([[4, 0], [0, 2]], np.uint16), np.array([[1.0, 0.0], [0.5, 0.5]])).tolist()
    [[4.0, 1.0], [0.0, 1.0]]
    """
    slices, bins = counts.shape
    states = shares.shape[1]
    jobs = np.zeros((states, bins))
    for t in range(slices):
        for j in range(bins):
            if counts[t, j] > 0:
                for state in range(states):
                    jobs[state, j] += counts[t, j] * shares[t, state]

    return jobs


def smoothing(counts: Counts) -> Floats:
    """Return the pseudo-count to add to each bin of a state, 0 beyond the longest run time; shape (bins,).

    >>> smoothing(np.array([[0, 3, 0]], np.uint16)).tolist()
    [0.5, 0.5, 0.0]
    """
    longest = np.flatnonzero(counts.any(axis=0)).max(initial=0)
    return np.where(np.arange(counts.shape[1]) <= longest, SMOOTHING, 0.0)


def normalised(rows: Floats) -> Floats:
    """Return `rows` (…, n), each divided by its sum."""
    result: Floats = rows / rows.sum(axis=-1, keepdims=True)
    return result
