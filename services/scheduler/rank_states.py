"""How the ranks of run times are distributed in each state of a factor that jobs share.

The rank of a run time is its probability integral transform: evenly distributed where predictions are true. A Gaussian
copula with one factor ties ranks to each other; given the factor, they are independent. Its values are the states, its
loading is the correlation that it makes between two ranks. A share of all ranks pays no heed to it, so that one odd job
says little of others. Over all states a rank stays evenly distributed.

References: docs/algorithms.md#dependence (Li 2000).
"""

import math
from functools import cache
from typing import Final

import numpy as np

from shadowtime.shared.arrays import Floats, FloatTable
from shadowtime.shared.kernel import kernel

LOADINGS: Final = (0.0, 0.3, 0.5, 0.7, 0.8)
"""Loadings that are told apart; with the first, jobs are independent."""

STATES: Final = 13
"""Values of the factor, half a standard deviation apart."""

NODES: Final = np.linspace(-3.0, 3.0, STATES)
"""These values, rising, shape (states,)."""

PRIOR: Final = np.exp(-(NODES**2) / 2.0) / np.exp(-(NODES**2) / 2.0).sum()
"""How likely each is before anything is known."""

GRID: Final = 100
"""Equal parts of the ranks."""

HEEDLESS: Final = 0.2
"""Share of the ranks that have nothing to do with the factor."""

LEAST: Final = 1e-6
"""What no probability of outliving something counts as less than."""


@kernel
def normal(x: float) -> float:
    """Return the distribution function of the standard normal distribution."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


@kernel
def ranks_of(loading: float) -> FloatTable:
    """Return the distribution function of ranks in each state, at the edges of the grid, shape (states, GRID + 1).

    >>> ranks_of(0.0)[0, [0, 50, 100]].tolist()
    [0.0, 0.5, 1.0]
    >>> table = ranks_of(0.7)
    >>> table[[2, 6, 10], 50].round(2).tolist(), (PRIOR @ table)[[25, 50, 75]].round(6).tolist()
    ([0.9, 0.5, 0.1], [0.25, 0.5, 0.75])
    """
    table = np.empty((STATES, GRID + 1))
    moved, spread = math.sqrt(loading), math.sqrt(1.0 - loading)
    for edge in range(GRID + 1):
        rank = edge / GRID
        low, high = -9.0, 9.0
        for _ in range(60):  # the score of which the mixture of all states has this rank
            middle = (low + high) / 2.0
            reached = 0.0
            for state in range(STATES):
                reached += PRIOR[state] * normal((middle - moved * NODES[state]) / spread)
            if reached < rank:
                low = middle
            else:
                high = middle
        for state in range(STATES):
            below = normal((low - moved * NODES[state]) / spread) if 0 < edge < GRID else rank
            table[state, edge] = rank if loading == 0.0 else HEEDLESS * rank + (1.0 - HEEDLESS) * below
    return table


@cache
def tables() -> FloatTable:
    """Return `ranks_of` all loadings, one below the other, shape (loadings * states, GRID + 1)."""
    return np.concatenate([ranks_of(loading) for loading in LOADINGS])


@kernel
def rank_at(ranks: Floats, rank: float) -> float:
    """Return a distribution function of ranks, shape (GRID + 1,), at a rank.

    >>> rank_at(np.linspace(0.0, 1.0, GRID + 1) ** 2, 0.505)
    0.25505
    """
    place = min(max(rank, 0.0), 1.0) * GRID
    edge = min(int(place), GRID - 1)
    return float(ranks[edge] + (place - edge) * (ranks[edge + 1] - ranks[edge]))


@kernel
def likelihoods(ranks: FloatTable, begin: float, end: float) -> Floats:
    """Return how likely a rank between two values is in each state, against how likely it is in all.

    Parameters
    ----------
    ranks
        Of each state its distribution function, shape (states, GRID + 1).
    begin, end
        Alike but at an atom, as `transformed` returns them; what is nearer than a part of the grid counts as one part.

    >>> ranks = ranks_of(0.7)
    >>> likelihoods(ranks, 0.95, 0.95)[[2, 6, 10]].round(2).tolist(), likelihoods(ranks, 0.0, 1.0)[0].tolist()
    ([0.2, 0.25, 6.3], 1.0)
    """
    found = np.empty(len(ranks))
    if end - begin < 1.0 / GRID:
        part = min(int((begin + end) / 2.0 * GRID), GRID - 1)
        begin, end = part / GRID, (part + 1) / GRID
    for state in range(len(ranks)):
        found[state] = (rank_at(ranks[state], end) - rank_at(ranks[state], begin)) / (end - begin)
    return found


@kernel
def outliving(ranks: FloatTable, rank: float) -> Floats:
    """Return how likely a rank above this one is in each state.

    >>> outliving(ranks_of(0.7), 0.9)[[2, 6, 10]].round(3).tolist()
    [0.02, 0.028, 0.631]
    """
    found = np.empty(len(ranks))
    for state in range(len(ranks)):
        found[state] = max(1.0 - rank_at(ranks[state], rank), LEAST)
    return found
