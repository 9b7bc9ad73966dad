"""The binomial method: the rank of the sorted observation that bounds a quantile with a stated confidence."""

import math
from functools import lru_cache

from shadowtime.shared.kernels import kernel
from shadowtime.shared.messages import Side

# Quantiles of the binomial distribution as ranks of observations.

NEGLIGIBLE = 1e-20
ROUNDING = 1e-12


@kernel
def covering_rank(count: int, quantile: float, confidence: float) -> int:
    """Return one more than the quantile at `confidence` of a binomial variable: `count` trials, probability `quantile`.

    Probabilities are computed relative to that of the mode, each from its neighbour, until they are negligible. Their
    sum normalises them. A probability below `confidence` by no more than rounding counts as equal. For example,
    consider an odd number of observations: with probability exactly 1/2, fewer than half lie below the median.
    """
    odds = quantile / (1.0 - quantile)
    likeliest = min(int((count + 1) * quantile), count)
    number, share, total = likeliest, 1.0, 1.0
    while number < count and share > NEGLIGIBLE:
        share *= (count - number) / (number + 1.0) * odds
        number += 1
        total += share

    number, share = likeliest, 1.0
    while number > 0 and share > NEGLIGIBLE:
        share *= number / (count - number + 1.0) / odds
        number -= 1
        total += share

    asked, covered = confidence * (1.0 - ROUNDING) * total, share
    while covered < asked and number < count:
        share *= (count - number) / (number + 1.0) * odds
        number += 1
        covered += share

    return number + 1


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


@lru_cache(maxsize=1 << 16)
def upper_rank(count: int, quantile: float, confidence: float) -> int | None:
    """Return the rank of the observation that bounds `quantile` from above with `confidence`, 1 for the smallest.

    It is the smallest rank such that, with probability at least `confidence`, fewer than that many of `count`
    observations lie below the quantile. It is None if there are too few observations. The rule as printed in the paper
    always picks the maximum. Its equation 1 decreases in k, so the largest k is meant. O(sqrt(count)).

    >>> upper_rank(59, 0.95, 0.95), upper_rank(200, 0.95, 0.95), upper_rank(58, 0.95, 0.95)
    (59, 196, None)

    References: docs/algorithms.md#binomial-bound (Brevik 2006, section 3.1).
    """
    if count < minimum_history(quantile, confidence):
        return None
    rank = covering_rank(count, quantile, confidence)
    return rank if rank <= count else None


def lower_rank(count: int, quantile: float, confidence: float) -> int | None:
    """Return the rank of the observation that bounds `quantile` from below with `confidence`, 1 for the smallest.

    Counted from the largest observation, it is the upper rank of the quantile 1 - `quantile`. It is None if there are
    too few observations.

    >>> lower_rank(100, 0.05, 0.95), lower_rank(58, 0.05, 0.95)
    (2, None)
    """
    opposite = upper_rank(count, round(1 - quantile, 12), confidence)
    return None if opposite is None else count + 1 - opposite
