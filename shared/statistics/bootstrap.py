"""Confidence intervals for means over consecutive, dependent jobs: a bootstrap over blocks of time."""

from typing import NamedTuple

import numpy as np

from shadowtime.shared.chance import uniform
from shadowtime.shared.kernels import Floats, FloatTable, Integers

BLOCKS = 10
"""Number of blocks of equal time. Few blocks are long, so they depend little on each other. The quantile of the
studentized draws accounts for their small number."""

MIN_BLOCKS = 5
"""Smallest number of blocks with values for which an interval is computed."""

RESAMPLES = 4_000

CONFIDENCE = 0.95

MOST_ERRORS, MOST_MEANS = 100.0, 10.0
"""Half width in standard errors, and in means. There is no interval if it exceeds both. Heavy tails reach 20 standard
errors. If the draws deviate more, nearly the whole sum lies in one block."""

ROUNDING = 1e-9
"""A spread below this share of its reference counts as a rounding error."""


class Interval(NamedTuple):
    """A mean with the bounds of its 95 % confidence interval. The bounds are None for too few or too uneven data."""

    mean: float
    low: float | None
    high: float | None

    def within(self, least: float, most: float) -> "Interval":
        """Return the interval with its bounds clamped to the possible range.

        >>> Interval(0.9, 0.75, 1.05).within(0, 1)
        Interval(mean=0.9, low=0.75, high=1.0)
        """
        if self.low is None or self.high is None:
            return self
        return Interval(self.mean, float(max(self.low, least)), float(min(self.high, most)))


def mean_over_time(values: Floats, times: Integers, key: int) -> Interval:
    """Return the mean of values that are correlated in time, with the interval of `ratio_over_time`.

    >>> mean_over_time(np.ones(100), np.arange(100), key=7)
    Interval(mean=1.0, low=1.0, high=1.0)
    """
    return ratio_over_time(values, np.ones(len(values)), times, key)


def ratio_over_time(over: Floats, under: Floats, times: Integers, key: int) -> Interval:
    """Return the sum of `over` divided by that of `under`, with a 95 % interval of the studentized block bootstrap.

    Values in one block of time stay together, which preserves their dependence. A draw has as many blocks as the data,
    with replacement. The interval is symmetric. Its half width, in standard errors, is the 95 % quantile of the draws'
    deviations from the mean, each in standard errors of the draw itself.

    Parameters
    ----------
    over, under
        Values, shape (n,). Values of `under` are not negative, and not all 0.
    times
        Time of each value, shape (n,), in any unit.
    key
        Key of the seeded random numbers. The same key gives the same interval.

    Examples
    --------
    >>> ratio_over_time(np.full(50, 3.0), np.full(50, 4.0), np.arange(50), key=7)
    Interval(mean=0.75, low=0.75, high=0.75)

    References
    ----------
    docs/algorithms.md#block-bootstrap (Carlstein 1986; Hall 1988; Götze 1996).
    """
    since = times - times.min()
    _, block = np.unique(since * BLOCKS // (since.max() + 1), return_inverse=True)
    sums, counts = (np.bincount(block, weights=values).astype(np.float64) for values in (over, under))
    mean = float(over.sum() / under.sum())
    if len(sums) < MIN_BLOCKS:
        return Interval(mean, None, None)

    _, error = _with_errors(sums[np.newaxis], counts[np.newaxis])
    if error[0] <= ROUNDING * np.abs(sums).sum() / counts.sum():
        return Interval(mean, mean, mean)

    draws = uniform(key, np.arange(RESAMPLES * len(sums)), 0).reshape(RESAMPLES, -1)
    drawn = (draws * len(sums)).astype(np.int64)
    drawn = drawn[counts[drawn].sum(axis=1) > 0]
    means, errors = _with_errors(sums[drawn], counts[drawn])
    # If all drawn blocks are alike, the draw has no standard error, and its deviation counts as infinite.
    known = errors > ROUNDING * error[0]
    off = np.full(len(means), np.inf)
    off[known] = np.abs(means[known] - mean) / errors[known]
    reach = float(np.quantile(off, CONFIDENCE, method="higher"))
    half = reach * float(error[0])
    if not np.isfinite(half) or (reach > MOST_ERRORS and half > MOST_MEANS * abs(mean)):
        return Interval(mean, None, None)
    return Interval(mean, mean - half, mean + half)


def _with_errors(sums: FloatTable, counts: FloatTable) -> tuple[Floats, Floats]:
    """Return the ratio of each draw, shape (draws,), and its standard error from the residuals of its blocks.

    `sums` and `counts` are those of the drawn blocks, shape (draws, blocks).
    """
    blocks, under = sums.shape[1], counts.sum(axis=1)
    ratios = sums.sum(axis=1) / under
    residuals = sums - ratios[:, np.newaxis] * counts
    return ratios, np.sqrt((residuals**2).sum(axis=1) * blocks / (blocks - 1)) / under
