"""Orders of waiting jobs for compiled passes: steady orders, and orders that change as jobs wait."""

import numpy as np

from shadowtime.services.scheduler.ordering.columns import WaitingColumns
from shadowtime.services.scheduler.ordering.orders import Key, exp, unicep, wfp3
from shadowtime.shared.kernels import Floats, Integers, kernel

STEADY, EXP, WFP3, UNICEP = range(4)
"""Kinds of order in a compiled pass: by a constant number for each job, or by a key that changes as jobs wait."""


def _run_times(jobs: WaitingColumns) -> Floats:
    return jobs.run_times.astype(np.float64)


def _times_logarithms(jobs: WaitingColumns) -> Floats:
    return np.maximum(np.log2(jobs.processors), 2.0**-60) * _run_times(jobs)


AGEING: dict[Key, tuple[int, Key]] = {
    exp: (EXP, _run_times),
    wfp3: (WFP3, _run_times),
    unicep: (UNICEP, _times_logarithms),
}
"""Kind and basis of each order that changes as jobs wait: see `compiled`."""


def compiled(key: Key) -> tuple[int, Key]:
    """Return the kind of an order for `sort_keys`, and the function that returns its basis.

    The basis is a constant number for each job. `sort_keys` computes the key of a job from its basis and its wait.

    Raise `ValueError` if the order changes as time passes and has no compiled form.
    """
    if getattr(key, "steady", False):
        return STEADY, key
    if key not in AGEING:
        raise ValueError(
            "the sort keys of this order may change as jobs wait; of such orders, simulated machines support only exp, "
            "wfp3 and unicep"
        )
    return AGEING[key]


@kernel
def sort_keys(
    kind: int, now: int, submit_times: Integers, processors: Integers, basis: Floats, waiting: Integers
) -> Floats:
    """Return the sort keys of the waiting jobs, smallest first, equal to those of the key functions. O(waiting).

    Parameters
    ----------
    kind, basis
        The kind of order, and its basis for each job, shape (jobs,): see `compiled`.
    submit_times, processors, waiting
        Submit time and processors of each job, and the indices of the waiting jobs.

    >>> waiting = np.array([0, 1])
    >>> sort_keys(WFP3, 100, np.array([0, 70]), np.array([2, 2]), np.array([300.0, 30.0]), waiting).round(3).tolist()
    [-0.074, -2.0]
    """
    keys = basis[waiting]
    if kind == STEADY:
        return keys
    for place in range(len(waiting)):
        wait, number = float(now - submit_times[waiting[place]]), keys[place]
        if kind == EXP:
            keys[place] = -((wait + number) / number)
        elif kind == WFP3:
            ratio = wait / number
            keys[place] = -(ratio * ratio * ratio * processors[waiting[place]])
        else:
            keys[place] = -(wait / number)

    return keys
