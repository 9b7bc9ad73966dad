"""Conversion of a table of quantiles into a discrete distribution."""

from collections.abc import Sequence
from itertools import pairwise


def point_masses(table: Sequence[tuple[float, int]]) -> list[tuple[float, int]]:
    """Return the discrete distribution of a table of quantiles: pairs of mass and seconds, in order of the seconds.

    The table has pairs of probability and seconds. Each quantile gets the mass of all probabilities that are nearer to
    its own probability than to any other.

    >>> point_masses([(0.25, 60), (0.75, 600)])
    [(0.5, 60), (0.5, 600)]
    """
    shares, seconds = sorted(share for share, _ in table), sorted(value for _, value in table)
    edges = [0.0, *((low + high) / 2 for low, high in pairwise(shares)), 1.0]
    return list(zip((high - low for low, high in pairwise(edges)), seconds, strict=True))
