"""How sure a mean is over jobs that come after one another: a bootstrap of blocks of time."""

from typing import NamedTuple

import numpy as np

from shadowtime.shared.arrays import Floats, Integers
from shadowtime.shared.chance import uniform

WEEK = 604_800
MIN_BLOCKS = 10
"""Blocks of a log at the least: of one shorter than as many weeks, each is such a part of it."""

RESAMPLES = 4_000


class Interval(NamedTuple):
    """A mean, with the bounds between which it lies with 95 % confidence; None where too little is known."""

    mean: float
    low: float | None
    high: float | None


def block_length(submit_times: Integers) -> int:
    """Return the seconds of a block of the bootstrap: a week, or a tenth of a log that has less than ten.

    >>> block_length(np.array([0, 20 * WEEK])) == WEEK, block_length(np.array([0, 99]))
    (True, 10)
    """
    return min(WEEK, int(np.ptp(submit_times)) // MIN_BLOCKS + 1)


def mean_of_blocks(values: Floats, submit_times: Integers, key: int) -> Interval:
    """Return the mean of values whose neighbours in time are alike, with a 95 % interval of the block bootstrap.

    Blocks of successive jobs are drawn with replacement, as many as there are; values within a block stay together,
    so that what makes neighbours alike stays in. The percentiles of the means of such draws are the interval.

    Parameters
    ----------
    values, submit_times
        One of each job, (n,).
    key
        Of the draws of chance: the same key, the same interval.

    Examples
    --------
    >>> alike = mean_of_blocks(np.ones(100), np.arange(100), key=7)
    >>> alike
    Interval(mean=1.0, low=1.0, high=1.0)

    References
    ----------
    docs/algorithms.md#block-bootstrap (Künsch 1989; Carlstein 1986, whose blocks do not overlap).
    """
    blocks = (submit_times - submit_times.min()) // block_length(submit_times)
    return ratio_of_blocks(blocks, values, np.ones(len(values)), key)


def ratio_of_blocks(blocks: Integers, over: Floats, under: Floats, key: int) -> Interval:
    """Return the sum of `over` divided by that of `under`, with the interval of `mean_of_blocks`.

    Parameters
    ----------
    blocks
        The block of each value, (n,); less than five blocks tell no interval.
    over, under
        Values, (n,); `under` are not negative, and not all 0.
    key
        Of the draws of chance.

    Examples
    --------
    >>> ratio_of_blocks(np.arange(50), np.full(50, 3.0), np.full(50, 4.0), key=7)
    Interval(mean=0.75, low=0.75, high=0.75)
    """
    _, block = np.unique(blocks, return_inverse=True)
    sums, counts = np.bincount(block, weights=over), np.bincount(block, weights=under)
    mean = float(over.sum() / under.sum())
    if len(counts) < MIN_BLOCKS // 2:
        return Interval(mean, None, None)
    draws = uniform(key, np.arange(RESAMPLES * len(counts)), 0).reshape(RESAMPLES, -1)
    drawn = (draws * len(counts)).astype(np.int64)
    below = counts[drawn].sum(axis=1)
    some = below > 0
    low, high = np.quantile(sums[drawn].sum(axis=1)[some] / below[some], (0.025, 0.975))
    return Interval(mean, float(low), float(high))
