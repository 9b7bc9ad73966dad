"""The run-time distributions of a pass, by what other jobs of the same users tell of them, in each joint state.

What a job's mates, the jobs of its user, have done since it was submitted makes some states of their factor likelier
than others (`rank_states`): those that have ended by their ranks, those that run by having outlived some. The mixture
over its states is what is known of the job alone.

For what is known of jobs together, the factors of all users are cut in five cells of equal probability, and a joint
state has one cell of each; over the joint states each user's factor takes each cell once, in an order of its own, so
that users are not alike. In a joint state all jobs are independent, and over all joint states each has the
distribution that it has alone. Reference: docs/algorithms.md#dependence.
"""

from typing import Final, NamedTuple

import numpy as np

from shadowtime.services.scheduler.rank_states import GRID, PRIOR, STATES, outliving, rank_at
from shadowtime.shared.arrays import Floats, FloatTable, Integers
from shadowtime.shared.kernel import kernel
from shadowtime.shared.run_time_bins import mass_before

CELLS: Final = 5
"""Cells of each user's factor, and joint states; a prime, for `cell_of`."""

OTHER_REQUEST: Final = 0.4
"""Share of what a job tells of another that one with another request does."""

NOBODY: Final = -1
"""In the place of a user: of a job that tells nothing, and is told nothing."""

WAITS: Final = -1.0
"""In the place of the seconds that a job has run."""


class InPlay(NamedTuple):
    """Jobs of a pass, running ones and candidates, shape (jobs,).

    Their users, counted from 0, requests and seconds that they have run; their run-time distributions, shape (jobs,
    bins); and logarithms of how likely what is `heard` of ended mates is in each state, shape (jobs, states).
    """

    users: Integers
    requests: Integers
    elapsed: Floats
    masses: FloatTable
    heard: FloatTable


@kernel
def told(heard: Floats) -> Floats:
    """Return the probability of each state by what is heard, logarithms of likelihoods.

    >>> heard = np.zeros(STATES)
    >>> heard[-3:] = 9.0
    >>> told(heard)[-4:].round(3).tolist()
    [0.0, 0.709, 0.23, 0.058]
    """
    weights = PRIOR * np.exp(heard - heard.max())
    found: Floats = weights / weights.sum()
    return found


@kernel
def said_of(job: int, jobs: InPlay, outlived: FloatTable, mate: int, following: Integers) -> Floats:
    """Return the probability of each state for a job, by its mates. O(mates * states).

    Parameters
    ----------
    outlived
        Of each job logarithms of the probability to outlive what it has run, in each state.
    mate, following
        A job of the same user that runs, and of each the next one; -1 after the last.
    """
    heard = jobs.heard[job].copy()
    while mate >= 0:
        if mate != job:
            heard += (1.0 if jobs.requests[mate] == jobs.requests[job] else OTHER_REQUEST) * outlived[mate]
        mate = following[mate]
    return told(heard)


@kernel
def cell_of(user: int, joint: int) -> int:
    """Return the cell of a user's factor in a joint state: each once.

    >>> [[cell_of(user, joint) for joint in range(CELLS)] for user in (0, 1)]
    [[0, 1, 2, 3, 4], [3, 0, 2, 4, 1]]
    """
    return ((1 + user % (CELLS - 1)) * joint + 3 * user) % CELLS


@kernel
def in_cell(weights: Floats, cell: int) -> Floats:
    """Return the probability of each state in a cell of the factor, all cells being equally likely.

    >>> in_cell(np.array([0.1, 0.2, 0.4, 0.2, 0.1]), 0).round(9).tolist()
    [0.5, 0.5, 0.0, 0.0, 0.0]
    """
    found = np.zeros(len(weights))
    before = 0.0
    for state in range(len(weights)):
        after = before + weights[state]
        found[state] = max(min(after, (cell + 1) / CELLS) - max(before, cell / CELLS), 0.0) * CELLS
        before = after
    return found


@kernel
def tilted(masses: Floats, ranks: Floats, points: int, found: Floats) -> None:
    """Write a distribution whose ranks have this distribution function, on a grid as fine, into `found`. O(bins).

    >>> found = np.empty(3)
    >>> tilted(np.array([0.0, 1.0]), np.linspace(0.0, 1.0, GRID + 1) ** 2, 2, found)
    >>> found.tolist()
    [0.0, 0.25, 0.75]
    """
    total = masses.sum()
    reached, before, at = 0.0, 0.0, 0
    for j in range(len(masses)):
        parts = points if j > 0 else 1
        for _ in range(parts):
            reached += masses[j] / parts / total
            now = rank_at(ranks, reached)
            found[at] = max(now - before, 0.0) if masses[j] > 0.0 else 0.0
            before = max(before, now)
            at += 1


@kernel
def by_state(jobs: InPlay, ranks: FloatTable, points: int, together: bool) -> FloatTable:
    """Return the distributions of all jobs in each joint state; one, of what is known of each alone, if that is all.

    O(jobs * (mates + joint states * bins)).

    Parameters
    ----------
    ranks
        Of each state the distribution function of ranks, shape (states, GRID + 1).
    points
        Parts in which each bin is cut.
    together
        Whether joint states are asked for; there is one where no running job has a mate.

    Returns
    -------
    histograms
        Shape (joint states * jobs, bins in parts); those of a state follow each other. A job without a distribution
        has none here.
    """
    count, bins = jobs.masses.shape
    outlived, mates, runs = np.zeros((count, STATES)), np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    first, following = np.full(count, -1), np.full(count, -1)
    for job in range(count):
        user = jobs.users[job]
        if user >= 0:
            mates[user] += 1
            runs[user] += jobs.elapsed[job] >= 0.0
            if jobs.elapsed[job] > 0.0:
                masses = jobs.masses[job]
                outlived[job] = np.log(outliving(ranks, mass_before(masses, jobs.elapsed[job]) / masses.sum()))
                following[job], first[user] = first[user], job
    joint = CELLS if together and (runs[mates > 1] > 0).any() else 1
    histograms = np.zeros((joint * count, 1 + (bins - 1) * points))
    for job in range(count):
        user = jobs.users[job]
        weights = said_of(job, jobs, outlived, first[user], following) if user >= 0 else PRIOR
        for state in range(joint):
            mixed = weights
            if joint > 1 and user >= 0 and mates[user] > 1 and runs[user] > 0:
                chances = np.exp(outlived[job])
                alive = weights * chances
                mixed = in_cell(alive / alive.sum(), cell_of(user, state)) / chances
                mixed /= mixed.sum()
            function = np.zeros(GRID + 1)
            for k in range(STATES):
                function += mixed[k] * ranks[k]
            if jobs.masses[job].sum() > 0.0:
                tilted(jobs.masses[job], function, points, histograms[state * count + job])
    return histograms
