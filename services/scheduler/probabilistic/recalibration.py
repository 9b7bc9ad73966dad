"""Recalibration of the probability of delaying the head, by the outcomes of earlier candidates.

The stated probability of a candidate is a beta calibration of its raw probability p. The log-odds of the stated
probability are `a + b * log(p) - c * log(1 - p)`. Each bin of the calibrated probabilities has a shift, which is added
to the log-odds. The terms and the shifts are learned online. Candidates that pass the criterion of the policy are
learned separately from the others: they are selected for a low raw probability, so it is too low on average.

Learning begins with `a`, `b`, `c` of 0, 1, 1 and no shifts: the stated probability is p itself. Newton's method with
forgetting updates `a`, `b` and `c`. A shift moves by a constant step for each unit of error of the stated probability.
So over time, the stated probabilities in a bin add up to the number of delays there, under any drift.

References: docs/algorithms.md#recalibration (Kull 2017 for the form, Gupta 2023 for both stages, Angelopoulos 2025 for
the constant step).
"""

import math
from typing import Any

import numpy as np

from shadowtime.services.scheduler.probabilistic.outcomes import CandidateOutcome, Outcomes
from shadowtime.shared.kernels import Floats, FloatTable, kernel
from shadowtime.shared.messages import Event, JobEnded, JobStarted, JobWithdrawn

TERMS = 3
"""Number of terms that are learned for each kind of candidates: `a`, `b` and `c`."""

NOTHING_LEARNED: FloatTable = np.empty((0, 0))
"""Stands for the weights if nothing is recalibrated."""

BINS = 20
"""Equal bins of probabilities; each has a shift of log-odds."""

STEP = 0.0006
"""Step of a bin's shift for one outcome, per unit of error of the stated probability."""

PRIOR = 10.0
"""Weight of the prior value of each term. Forgetting does not reduce it."""

FORGOTTEN = 0.0002
"""Share of earlier knowledge that all candidates of one attempt to backfill replace together."""

CLOSEST = 0.001
"""A raw probability counts as at least this far from 0 and from 1."""

MIN_WEIGHT = 0.001
"""Least weight of an outcome, however certain its prediction was."""


@kernel
def terms_of(probability: float) -> Floats:
    """Return the factors of the terms: 1, log(p) and -log(1 - p)."""
    p = min(max(probability, CLOSEST), 1.0 - CLOSEST)
    return np.array([1.0, math.log(p), -math.log(1.0 - p)])


@kernel
def sum_of(weights: Floats, terms: Floats) -> float:
    """Return the weighted sum of the terms, the log-odds."""
    return float(weights[0] * terms[0] + weights[1] * terms[1] + weights[2] * terms[2])


@kernel
def logistic(log_odds: float) -> float:
    """Return the probability that has these log-odds."""
    return 1.0 / (1.0 + math.exp(-log_odds))


@kernel
def bin_of(probability: float) -> int:
    """Return the bin, 0 to BINS - 1, that contains a probability."""
    return min(int(probability * BINS), BINS - 1)


@kernel
def recalibrated(weights: Floats, probability: float) -> float:
    """Return the stated probability for a raw one. `weights` are the terms, then the shifts of the bins.

    >>> weights = np.array([1.0, 0.5, 0.5, *[0.0] * BINS])
    >>> round(recalibrated(weights, 0.25), 6)
    0.610804
    >>> weights[TERMS + 12] = -1.0  # from 0.6 to 0.65
    >>> round(recalibrated(weights, 0.25), 6)
    0.366025
    """
    log_odds = sum_of(weights, terms_of(probability))
    return logistic(log_odds + weights[TERMS + bin_of(logistic(log_odds))])


@kernel
def learn(
    weights: Floats, curvature: FloatTable, probability: float, stated: float, delayed: float, forgotten: float
) -> None:
    """Learn an outcome: update the terms by one Newton step, and the shift of its bin. In place, O(terms^3).

    Parameters
    ----------
    weights, curvature
        The weights learned so far, and the second derivatives of the loss in the terms, shape (terms, terms).
    probability, stated, delayed
        The raw probability, the stated one, and 1 if the head would have been delayed, else 0.
    forgotten
        Share of earlier knowledge that this outcome replaces. The prior regains the same share.
    """
    terms = terms_of(probability)
    expected = logistic(sum_of(weights, terms))
    weights[TERMS + bin_of(expected)] += STEP * (delayed - stated)
    weight = max(expected * (1.0 - expected), MIN_WEIGHT)
    step = np.empty(TERMS)
    left = np.empty((TERMS, TERMS))
    for j in range(TERMS):
        for k in range(TERMS):
            curvature[j, k] = (1.0 - forgotten) * curvature[j, k] + weight * terms[j] * terms[k]
        curvature[j, j] += forgotten * PRIOR
        assumed = 0.0 if j == 0 else 1.0
        step[j] = (delayed - expected) * terms[j] + forgotten * PRIOR * (assumed - weights[j])
        left[j] = curvature[j]

    for j in range(TERMS):  # the curvature is positive definite, so no pivots are needed
        for row in range(j + 1, TERMS):
            factor = left[row, j] / left[j, j]
            step[row] -= factor * step[j]
            for k in range(j, TERMS):
                left[row, k] -= factor * left[j, k]

    for j in range(TERMS - 1, -1, -1):
        for k in range(j + 1, TERMS):
            step[j] -= left[j, k] * step[k]
        step[j] /= left[j, j]

    for j in range(TERMS):
        weights[j] += step[j]


class DelayRecalibration:
    """Recalibration that follows candidates to their outcomes, and learns from these outcomes.

    Row 0 of the weights is for candidates that do not pass the criterion, row 1 for those that pass.

    >>> from shadowtime.services.scheduler.probabilistic.outcomes import FollowedCandidate
    >>> mended = DelayRecalibration()
    >>> for _ in range(200):
    ...     mended.learn(CandidateOutcome(FollowedCandidate(7, 1, 0.1, 0.1, True, among=1), delayed=True))
    >>> [round(recalibrated(weights, 0.1), 1) for weights in mended.weights]
    [0.1, 0.9]
    """

    def __init__(self) -> None:
        self.weights = np.tile([0.0, 1.0, 1.0, *[0.0] * BINS], (2, 1))
        self.curvature = np.tile(PRIOR * np.eye(TERMS), (2, 1, 1))
        self.outcomes = Outcomes()

    def learn_until(self, now: int) -> None:
        """Learn from the outcomes that are due by now. O(1) each."""
        for outcome in self.outcomes.take_until(now):
            self.learn(outcome)

    def learn(self, outcome: CandidateOutcome) -> None:
        """Learn from the outcome of a candidate."""
        candidate, delayed = outcome
        kind, forgotten = int(candidate.passes), FORGOTTEN / candidate.among
        probability, stated = candidate.probability, candidate.stated
        learn(self.weights[kind], self.curvature[kind], probability, stated, float(delayed), forgotten)

    def observe(self, event: Event) -> None:
        """Apply the start, end or withdrawal of a job."""
        if isinstance(event, JobWithdrawn):
            self.outcomes.withdraw(event.job_number)
        elif isinstance(event, JobStarted):
            self.outcomes.start(event)
        elif isinstance(event, JobEnded):
            self.outcomes.end(event)

    def snapshot(self) -> Any:
        """Return the learned weights and the followed candidates as plain values."""
        learned = {"weights": self.weights.tolist(), "curvature": self.curvature.tolist()}
        return learned | {"outcomes": self.outcomes.snapshot()}

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self.weights[...], self.curvature[...] = state["weights"], state["curvature"]
        self.outcomes.restore(state["outcomes"])
