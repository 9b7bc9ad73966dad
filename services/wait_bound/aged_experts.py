"""Experts of every age that follow a quantile of one source each, and their shares in the mixture."""

from typing import Final

import numpy as np

from shadowtime.services.wait_bound.tracked_quantiles import FARTHEST
from shadowtime.shared.arrays import Floats, FloatTable, Integers
from shadowtime.shared.kernel import inlined, kernel

SHORTEST: Final = 64
"""Jobs that an expert lives at least: in fewer a quantile of 95 % is hardly ever missed. Experts are born twice as
often."""

AGES: Final = 11
"""Experts of each source that live at once, each twice as long as the one before: up to 65,536 jobs."""

REACH: Final = 1.0
"""The logarithm by which a quantile may have to be moved; of the steps, and of what one job can win or lose."""

SHIFT, SQUARES, WON, BET, JUDGED, WEIGHT = range(6)
"""What is known of an expert: the logarithm by which it moves its source, the sum of its squared gradients, what it won
against the mixture, that times its weights, the jobs that it was judged by, and its weight, which may be below 0."""


@kernel
def shares_of(experts: FloatTable, births: Integers) -> Floats:
    """Return how much each expert of a level is heard, adding up to 1; O(experts).

    Parameters
    ----------
    experts
        As of `SHIFT` and the following; those of one source after the other, in each by age.
    births
        The step at which the expert of each age was born, 0 where none was yet.
    """
    shares, priors = np.zeros(len(experts)), np.zeros(len(experts))
    for expert in range(len(experts)):
        born = births[expert % len(births)]
        if born > 0:
            priors[expert] = 1.0 / (float(born) ** 2 * (1.0 + np.floor(np.log2(float(born)))))
            shares[expert] = priors[expert] * max(experts[expert, WEIGHT], 0.0)
    if shares.sum() <= 0.0:
        shares = priors
    shares /= shares.sum()
    return shares


@inlined
def pinball(short: float, quantile: float) -> float:
    """Return the loss of a quantile that a wait was longer by so much than."""
    return max(quantile * short, (quantile - 1.0) * short)


@kernel
def bear(shares: Floats, quantile: float, experts: FloatTable, births: Integers, step: int) -> None:
    """Let an expert of each source take the place of one that has lived, where the mixture stands; O(experts)."""
    ages, age, turn = len(births), 0, step // (SHORTEST // 2)
    while age + 1 < ages and turn % (2 << age) == 0:
        age += 1
    for source in range(len(experts) // ages):
        own = slice(source * ages, (source + 1) * ages)
        heard, shift = shares[own].sum(), 0.0
        if heard > 0.0:
            shift = (shares[own] * experts[own, SHIFT]).sum() / heard
        experts[source * ages + age] = 0.0
        experts[source * ages + age, SHIFT] = shift
        experts[source * ages + age, SQUARES] = quantile**2
    births[age] = step


@kernel
def judge(
    job: Floats, behind: int, log_wait: float, quantile: float, experts: FloatTable, births: Integers, step: int
) -> None:
    """Learn the logarithm of a wait at one level, then let the next expert of each source be born; O(experts).

    Parameters
    ----------
    job
        The step at which it was told, what the mixture told, what each expert did.
    behind
        The jobs that were told since.
    """
    shares = shares_of(experts, births)
    for expert in range(len(experts)):
        known = experts[expert]
        if not 0 < births[expert % len(births)] <= job[0]:  # it told nothing of this job
            continue
        won = pinball(log_wait - job[1], quantile) - pinball(log_wait - job[2 + expert], quantile)
        won = min(max(won / REACH, -1.0), 1.0)
        if known[WEIGHT] <= 0.0:
            won = max(won, 0.0)
        known[WON] += won
        known[BET] += won * known[WEIGHT]
        known[JUDGED] += 1.0
        known[WEIGHT] = known[WON] / (known[JUDGED] + 1.0) * (1.0 + known[BET])
        gradient = -quantile if log_wait > job[2 + expert] else 1.0 - quantile
        known[SQUARES] += gradient**2 * (1.0 + 2.0 * behind)
        moved = known[SHIFT] - REACH / np.sqrt(3.0) * gradient / np.sqrt(known[SQUARES])
        known[SHIFT] = min(max(moved, -FARTHEST), FARTHEST)
    if (step + 1) % (SHORTEST // 2) == 0:
        bear(shares, quantile, experts, births, step + 1)
