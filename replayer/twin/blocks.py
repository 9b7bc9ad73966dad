"""How sure a ratio of sums over days is, whose neighbours are alike: a bootstrap of blocks of days."""

from collections.abc import Sequence

import numpy as np

from shadowtime.replayer.block_bootstrap import MIN_BLOCKS, Interval, ratio_of_blocks
from shadowtime.shared.arrays import Floats

DAYS_OF_BLOCK = 7


def days_of_block(days: int) -> int:
    """Return how many days a block has: a week, or a tenth where there are less than ten weeks.

    >>> days_of_block(365), days_of_block(40), days_of_block(5)
    (7, 4, 1)
    """
    return max(1, min(DAYS_OF_BLOCK, days // MIN_BLOCKS))


def ratio_of_days(days: Sequence[int], over: Floats, under: Floats, key: int) -> Interval | None:
    """Return the sum of `over` divided by that of `under`, with a 95 % interval; None where that is 0.

    Blocks of successive days are drawn with replacement, as many as there are. Less than five tell no interval.

    Parameters
    ----------
    days
        The number of each day, (n,), ascending.
    over, under
        Sums of each day, (n,).
    key
        Of the draws of chance: the same key, the same interval.

    Examples
    --------
    >>> ratio_of_days(range(50), np.full(50, 3.0), np.full(50, 4.0), key=7)
    Interval(mean=0.75, low=0.75, high=0.75)

    References
    ----------
    docs/algorithms.md#block-bootstrap (Künsch 1989; Carlstein 1986, whose blocks do not overlap).
    """
    if not under.sum():
        return None
    numbers = np.asarray(days, dtype=np.int64)
    blocks = (numbers - numbers[0]) // days_of_block(int(np.ptp(numbers)) + 1)
    return ratio_of_blocks(blocks, over, under, key)
