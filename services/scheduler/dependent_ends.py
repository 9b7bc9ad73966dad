"""When the running jobs of a pass and its candidates may end, by what jobs of the same users tell of each other."""

import numpy as np

from shadowtime.services.scheduler.busy import Busy
from shadowtime.services.scheduler.candidates import Candidates, Evaluation
from shadowtime.services.scheduler.dependence import Dependence
from shadowtime.services.scheduler.histograms import UNKNOWN
from shadowtime.services.scheduler.rank_states import STATES, tables
from shadowtime.services.scheduler.terminations import Distributions, RunningEnds
from shadowtime.services.scheduler.tilted import NOBODY, WAITS, InPlay, by_state
from shadowtime.shared.arrays import Floats, Integers

TOGETHER = 2_000
"""Jobs of a pass, running ones and candidates, up to which joint states are gone through: they take memory each."""


def dependent_ends(
    dependence: Dependence,
    busy: Busy,
    rows: Integers,
    running: RunningEnds,
    candidates: Candidates,
    distributions: Distributions,
    *,
    joint: bool,
) -> tuple[RunningEnds, Candidates, Distributions]:
    """Return what a walk takes: running jobs and candidates, and their distributions by joint state.

    Where no dependence has been found, that is what it takes of independent jobs.

    Parameters
    ----------
    rows
        Of the candidates.
    running, candidates, distributions
        As they are of independent jobs.
    joint
        Whether there is to be more than one joint state, for what jobs that run tell of each other's ends.
    """
    if not dependence.loading:
        return running, candidates, distributions
    numbers = [*busy.numbers.tolist(), *busy.queue.job_number[rows].tolist()]
    slots = np.concatenate((running.slots, candidates.slots))
    count, ran = len(numbers), len(running.slots)
    followed = [dependence.jobs.get(number) for number in numbers]
    known = [each if each is not None and each.masses is not None else None for each in followed]
    users: dict[int, int] = {}
    masses = distributions.histograms[slots]
    masses[slots == UNKNOWN] = 0.0
    heard, states = np.zeros((count, STATES)), dependence.rows()
    for at, each in enumerate(known):
        if each is not None:
            heard[at] = each.heard[states]
    jobs = InPlay(
        np.array([NOBODY if each is None else users.setdefault(each.user, len(users)) for each in known]),
        np.concatenate((busy.requested_times, busy.queue.requested_time[rows])),
        np.concatenate((np.maximum(busy.now - busy.start_times, 0.0), np.full(len(rows), WAITS))),
        masses,
        heard,
    )
    points = (len(distributions.edges) - 2) // (distributions.histograms.shape[1] - 1)
    tilted = by_state(jobs, tables()[states], points, joint and count <= TOGETHER)
    places: Integers = np.where(slots == UNKNOWN, UNKNOWN, np.arange(count))
    return (
        running._replace(slots=places[:ran].copy()),
        candidates._replace(slots=places[ran:].copy()),
        Distributions(tilted, distributions.edges, distributions.censor, len(tilted) // count),
    )


def over_states(found: Evaluation) -> Evaluation:
    """Return what was found with the risks of one termination in all joint states added up."""
    told = np.stack((found.times, found.jobs))[:, : len(found.risks)]
    steps, into = np.unique(told, axis=1, return_inverse=True)
    risks: Floats = np.bincount(into.ravel(), found.risks, minlength=steps.shape[1]).astype(np.float64)
    return found._replace(times=steps[0], jobs=steps[1].astype(np.int64), risks=risks)
