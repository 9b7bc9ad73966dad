"""The binomial method: the rank of the sorted observation that bounds a quantile with a stated confidence."""

import math
from functools import lru_cache

import numpy as np

from shadowtime.shared.kernels import Integers, kernel
from shadowtime.shared.messages import Side

# Quantiles of the binomial distribution as ranks of observations.

NEGLIGIBLE = 1e-20
ROUNDING = 1e-12


@kernel
def covering_ranks(first: int, number: int, quantile: float, confidence: float) -> Integers:
    """Return the covering ranks of `number` successive counts of observations, from `first` on; shape (number,).

    A covering rank is one more than the quantile at `confidence` of a binomial variable: the count is that of its
    trials, `quantile` their probability.

    For the first count, probabilities are computed relative to that of the mode, each from its neighbour, until they
    are negligible. Their sum normalises them. A probability below `confidence` by no more than rounding counts as
    equal. For example, consider an odd number of observations: with probability exactly 1/2, fewer than half lie below
    the median. With another observation, the quantile remains or grows by one. So the probabilities of the next count
    follow from those of the last one.
    """
    odds = quantile / (1.0 - quantile)
    likeliest = min(int((first + 1) * quantile), first)
    at, share, total = likeliest, 1.0, 1.0
    while at < first and share > NEGLIGIBLE:
        share *= (first - at) / (at + 1.0) * odds
        at += 1
        total += share

    at, share = likeliest, 1.0
    while at > 0 and share > NEGLIGIBLE:
        share *= at / (first - at + 1.0) / odds
        at -= 1
        total += share

    ranks = np.empty(number, dtype=np.int64)
    asked, covered = confidence * (1.0 - ROUNDING) * total, share
    for count in range(first, first + number):
        if count > first:  # `share` is the probability of `at`, and `covered` that of at most `at`
            covered -= quantile * share
            share *= (1.0 - quantile) * count / (count - at)
        while covered < asked and at < count:
            share *= (count - at) / (at + 1.0) * odds
            at += 1
            covered += share

        ranks[count - first] = at + 1

    return ranks


@lru_cache(maxsize=1024)
def minimum_history(quantile: float, confidence: float) -> int:
    """Return the fewest observations whose maximum bounds `quantile` with `confidence`.

    Raise `ValueError` if `quantile` or `confidence` is not between 0 and 1. The functions that return ranks raise it
    too.

    >>> minimum_history(quantile=0.95, confidence=0.95)
    59
    """
    if not (0 < quantile < 1 and 0 < confidence < 1):
        raise ValueError(f"quantile {quantile} and confidence {confidence} must be between 0 and 1")
    least = max(math.ceil(math.log(1 - confidence) / math.log(quantile)) - 1, 1)
    if 1 - quantile**least < confidence:  # checked, because rounding may have put the quotient one off
        least += 1
    return least


def one_sided(confidence: float, side: Side) -> float:
    """Return the confidence of each side of a bound: of two sides, each has half of the error probability.

    >>> one_sided(0.95, "upper"), one_sided(0.95, "both")
    (0.95, 0.975)
    """
    return (1 + confidence) / 2 if side == "both" else confidence


def fewest_observations(quantile: float, confidence: float, side: Side) -> int:
    """Return the fewest observations that bound `quantile` on a side, or on both sides.

    >>> [fewest_observations(0.95, 0.95, side) for side in ("upper", "lower", "both")]
    [59, 1, 72]
    """
    tail = one_sided(confidence, side)
    return max(
        minimum_history(quantile, tail) if side != "lower" else 1,
        minimum_history(round(1 - quantile, 12), tail) if side != "upper" else 1,
    )


BLOCK = 64
"""Number of successive counts whose ranks are computed together: so few that rounding does not add up."""


@lru_cache(maxsize=1 << 12)
def rank_block(block: int, quantile: float, confidence: float) -> list[int | None]:
    """Return the upper ranks of the counts from `BLOCK` * `block` on."""
    least, first = minimum_history(quantile, confidence), BLOCK * block
    ranks = covering_ranks(first, BLOCK, quantile, confidence).tolist()
    return [rank if least <= count >= rank else None for count, rank in enumerate(ranks, first)]


def upper_rank(count: int, quantile: float, confidence: float) -> int | None:
    """Return the rank of the observation that bounds `quantile` from above with `confidence`, 1 for the smallest.

    It is the smallest rank such that, with probability at least `confidence`, fewer than that many of `count`
    observations lie below the quantile. It is None if there are too few observations. The rule as printed in the paper
    always picks the maximum. Its equation 1 decreases in k, so the largest k is meant. O(sqrt(count)) for each `BLOCK`.

    >>> upper_rank(59, 0.95, 0.95), upper_rank(200, 0.95, 0.95), upper_rank(58, 0.95, 0.95)
    (59, 196, None)

    References: docs/algorithms.md#binomial-bound (Brevik 2006, section 3.1).
    """
    return rank_block(count // BLOCK, quantile, confidence)[count % BLOCK]


@lru_cache(maxsize=1 << 10)
def _blocks(block: int, quantiles: tuple[float, ...], confidence: float) -> list[tuple[int | None, ...]]:
    return list(zip(*(rank_block(block, quantile, confidence) for quantile in quantiles), strict=True))


def upper_ranks(count: int, quantiles: tuple[float, ...], confidence: float) -> tuple[int | None, ...]:
    """Return the `upper_rank` of each of some quantiles.

    >>> upper_ranks(59, (0.5, 0.95, 0.99), 0.95)
    (37, 59, None)
    """
    return _blocks(count // BLOCK, quantiles, confidence)[count % BLOCK]


def lower_rank(count: int, quantile: float, confidence: float) -> int | None:
    """Return the rank of the observation that bounds `quantile` from below with `confidence`, 1 for the smallest.

    Counted from the largest observation, it is the upper rank of the quantile 1 - `quantile`. It is None if there are
    too few observations.

    >>> lower_rank(100, 0.05, 0.95), lower_rank(58, 0.05, 0.95)
    (2, None)
    """
    opposite = upper_rank(count, round(1 - quantile, 12), confidence)
    return None if opposite is None else count + 1 - opposite
