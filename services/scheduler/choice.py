"""Which member of a portfolio decides: the one that would have done best so far, longest waits included."""

from typing import NamedTuple

import numpy as np

from shadowtime.services.scheduler.settled import LONGEST, POWER, SLOWDOWN, TAIL, WAIT, worst_user
from shadowtime.shared.arrays import Floats, FloatTable

FEW = 20
"""Jobs that a user has at least whose mean wait is guarded."""

FLOOR = 600.0
"""Seconds that are added at the least to either mean wait of a user: a ratio of next to nothing says nothing."""

LEAST = 1e-6
"""In the place of a share of nothing."""


class Aims(NamedTuple):
    """What a choice is by; see `TunedSettings`. `slowdown` is its share in the objective, that of the wait the rest."""

    slowdown: float
    tail: float
    longest: float
    user: float


class Comparison(NamedTuple):
    """What each member made of the settled jobs, as shares of what the first made; shape (members,)."""

    slowdowns: Floats
    waits: Floats
    longest: Floats
    worst_users: Floats
    losses: Floats
    """What a choice makes least: logarithms of these shares, weighed; 0 of the first member."""


def compare(totals: FloatTable, waits: FloatTable, counts: Floats, aims: Aims) -> Comparison:
    """Return where the members stand. O(members * users).

    The loss is the logarithm of the objective, plus `tail` times that of the sixteenth-power mean of the waits, plus
    those of longest wait and worst user as far as they are beyond their guards.

    Parameters
    ----------
    totals, waits, counts
        As of `settle`.
    """
    first = totals[0]
    shares = np.where(first > 0, totals / np.where(first > 0, first, 1.0), 1.0)
    logs = np.log(np.maximum(shares, LEAST))
    logs[:, TAIL] = np.log(np.maximum(shares[:, TAIL], LEAST**POWER))
    users = worst_user(waits, counts, FEW, max(FLOOR, first[WAIT] / counts.sum()))
    losses = aims.slowdown * logs[:, SLOWDOWN] + (1.0 - aims.slowdown) * logs[:, WAIT]
    losses += aims.tail * logs[:, TAIL] / POWER
    losses += np.maximum(logs[:, LONGEST] - np.log(aims.longest), 0.0)
    losses += np.log(np.maximum(users / aims.user, 1.0))
    return Comparison(shares[:, SLOWDOWN], shares[:, WAIT], shares[:, LONGEST], users, losses)


def leader(losses: Floats, perturbations: Floats) -> int:
    """Return the member that has lost least, after what chance has added once for all.

    References
    ----------
    docs/ordering.md#the-choice (Kalai 2005, section 2: follow the lazy leader).

    >>> leader(np.array([0.0, -0.5, -0.51]), np.array([0.0, 0.0, 0.02]))
    1
    """
    return int(np.argmin(losses + perturbations))
