"""Confidence intervals of means of a few draws, by Student's t."""

import math
from collections.abc import Sequence
from statistics import stdev


def half_width(values: Sequence[float]) -> float:
    """Return half of the 95 % confidence interval of the mean of independent draws.

    The result is NaN for fewer than two draws, or if one is not finite.

    >>> round(half_width([1.0, 3.0]), 3), half_width([1.0]), half_width([1.0, math.inf])
    (12.706, nan, nan)
    """
    from scipy.special import stdtrit  # here: the import is slow, and most commands do not need it

    if len(values) < 2 or not all(map(math.isfinite, values)):
        return float("nan")
    return float(stdtrit(len(values) - 1, 0.975) * stdev(values) / len(values) ** 0.5)
