"""How sure a mean is over jobs that come after one another: a bootstrap of blocks of time."""

from typing import NamedTuple

import numpy as np

from shadowtime.shared.chance import uniform
from shadowtime.shared.kernels import Floats, FloatTable, Integers

BLOCKS = 10
"""Blocks of equal time. Few are long ones, which depend little on each other; the t-quantile makes up for few."""

MIN_BLOCKS = 5
"""With fewer that have values nothing is said."""

RESAMPLES = 4_000

CONFIDENCE = 0.95

ROUNDING = 1e-9
"""A spread that is smaller than this share of another is an error of rounding."""


class Interval(NamedTuple):
    """A mean, with the bounds between which it lies with 95 % confidence; None where too little is known."""

    mean: float
    low: float | None
    high: float | None

    def within(self, least: float, most: float) -> "Interval":
        """Return the interval without what lies outside of all that is possible.

        >>> Interval(0.9, 0.75, 1.05).within(0, 1)
        Interval(mean=0.9, low=0.75, high=1.0)
        """
        if self.low is None or self.high is None:
            return self
        return Interval(self.mean, float(max(self.low, least)), float(min(self.high, most)))


def mean_over_time(values: Floats, times: Integers, key: int) -> Interval:
    """Return the mean of values whose neighbours in time are alike, with the interval of `ratio_over_time`.

    >>> mean_over_time(np.ones(100), np.arange(100), key=7)
    Interval(mean=1.0, low=1.0, high=1.0)
    """
    return ratio_over_time(values, np.ones(len(values)), times, key)


def ratio_over_time(over: Floats, under: Floats, times: Integers, key: int) -> Interval:
    """Return the sum of `over` divided by that of `under`, with a 95 % interval of the block bootstrap.

    Values within a block of time stay together, so that their dependence stays in. Blocks are drawn with replacement,
    as many as there are. The interval reaches as many standard errors to either side as 95 % of the draws are off in
    their own standard errors.

    Parameters
    ----------
    over, under
        Values, (n,); `under` are not negative, and not all 0.
    times
        When each was, (n,), in any unit.
    key
        Of the draws of chance: the same key, the same interval.

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
    # Where all blocks that were drawn are alike, nothing bounds how far off their mean is.
    known = errors > ROUNDING * error[0]
    off = np.full(len(means), np.inf)
    off[known] = np.abs(means[known] - mean) / errors[known]
    reach = float(np.quantile(off, CONFIDENCE, method="higher") * error[0])
    return Interval(mean, mean - reach, mean + reach) if np.isfinite(reach) else Interval(mean, None, None)


def _with_errors(sums: FloatTable, counts: FloatTable) -> tuple[Floats, Floats]:
    """Return the ratio of each draw of blocks, (draws, blocks), and its standard error by the residuals of blocks."""
    blocks, under = sums.shape[1], counts.sum(axis=1)
    ratios = sums.sum(axis=1) / under
    residuals = sums - ratios[:, np.newaxis] * counts
    return ratios, np.sqrt((residuals**2).sum(axis=1) * blocks / (blocks - 1)) / under
