"""Confidence intervals of means of a few draws, by Student's t."""

from collections.abc import Sequence
from statistics import stdev


def half_width(values: Sequence[float]) -> float:
    """Return half of the 95 % confidence interval of the mean of independent draws; NaN for fewer than two.

    >>> round(half_width([1.0, 3.0]), 3), half_width([1.0])
    (12.706, nan)
    """
    from scipy.special import stdtrit  # here: the import is slow, and most commands do not need it

    if len(values) < 2:
        return float("nan")
    return float(stdtrit(len(values) - 1, 0.975) * stdev(values) / len(values) ** 0.5)
