"""Running jobs that must end before a waiting job fits, and the probability that they have ended by a time."""

import math
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from shadowtime.services.scheduler.probabilistic import PassState
from shadowtime.services.scheduler.tables import UNKNOWN
from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.distributions import EDGES, Masses
from shadowtime.shared.kernels import Integers, has_room
from shadowtime.shared.messages import DIGITS, MAX_NAMED_JOBS, Ending, Endings

QUANTILES = (0.5, 0.9)

MAX_STEPS = 2_000_000
"""Largest product of running jobs and lacking processors for which the joint probability of a release is computed."""


class Release(NamedTuple):
    """Rows of running jobs in order of their expected ends, and the expected end of the last one in seconds."""

    rows: Integers
    time: int


def share_until(masses: Masses, seconds: float) -> float:
    """Return the probability mass of run times up to `seconds`. O(bins).

    Within a bin the logarithm of the run time is uniform; within bin 0, the run time itself.

    >>> share_until(np.array([0.0, 0.5, 0.5]), 1.8), round(share_until(np.array([1.0]), 0.25), 2)
    (0.5, 0.25)
    """
    whole = int(np.searchsorted(EDGES[1 : len(masses) + 1], seconds, side="right"))
    share = float(masses[:whole].sum())
    if whole < len(masses) and seconds > (low := float(EDGES[whole])):
        high = float(EDGES[whole + 1])
        part = seconds / high if whole == 0 else math.log(seconds / low) / math.log(high / low)
        share += float(masses[whole]) * part

    return share


def ended_by(masses: Masses | None, elapsed: float, limit: float, seconds: float) -> float | None:
    """Return the probability that a job ends within `seconds` of its start, given that it has run for `elapsed`.

    The job ends at its limit at the latest. Before the limit, the result is None if the job has no distribution or has
    outlived it. O(bins).

    Parameters
    ----------
    masses
        Probability of each bin of its run time; None if the job has no distribution.
    elapsed, limit, seconds
        Seconds after the start of the job.

    >>> masses = np.array([0.0, 0.5, 0.5])
    >>> ended_by(masses, 1.0, 3.0, 1.8), ended_by(masses, 1.8, 3.0, 3.0), ended_by(masses, 9.0, 60.0, 20.0)
    (0.5, 1.0, None)
    """
    if seconds >= max(limit, elapsed + 1.0):
        return 1.0
    if masses is None:
        return None
    before, total = share_until(masses, elapsed), float(masses.sum())
    if total - before <= 10.0**-DIGITS:
        return None
    return float(min(max((share_until(masses, seconds) - before) / (total - before), 0.0), 1.0))


def released(needed: Integers, idle: Integers, busy: PassState) -> Release | None:
    """Return the running jobs that must end, in order of expected ends, until `needed` fits; None if it never fits.

    O(running log running).
    """
    order = np.lexsort((busy.numbers, busy.expected_ends))
    left = idle.copy()
    for count, row in enumerate(order, 1):
        left = left + busy.sizes[row]
        if has_room(left, needed):
            return Release(order[:count], int(busy.expected_ends[row]))

    return None


def endings(number: int, needed: Integers, idle: Integers, busy: PassState) -> Endings | None:
    """Return the running jobs that must end before a job fits; None if it never fits, or not within `MAX_DURATION`.

    The job requests `needed` of each resource.
    """
    release = released(needed, idle, busy)
    if release is None or release.time - busy.now > MAX_DURATION:
        return None
    named = tuple(_ending(row, release.time, busy) for row in release.rows[:MAX_NAMED_JOBS].tolist())
    lacked, alone = int(needed[0] - idle[0]), bool(np.all(needed[1:] <= idle[1:]))
    weighs = alone and lacked > 0 and lacked * len(busy.numbers) <= MAX_STEPS
    together = _enough(lacked, release.time, busy) if weighs else None
    return Endings(
        job_number=number,
        time=release.time,
        jobs=len(release.rows),
        named=named,
        probability=None if together is None else round(together, DIGITS),
        quantiles=() if together is None else tuple(_quantiles(lacked, busy)),
    )


def _ending(row: int, time: int, busy: PassState) -> Ending:
    chance = _ended(row, time, busy)
    return Ending(
        job_number=int(busy.numbers[row]),
        processors=int(busy.sizes[row, 0]),
        expected_end=int(busy.expected_ends[row]),
        predicted=bool(busy.expected_ends[row] < busy.requested_ends[row]),
        probability=None if chance is None else round(chance, DIGITS),
    )


def _ended(row: int, time: int, busy: PassState) -> float | None:
    start, slot = int(busy.start_times[row]), int(busy.slots[row])
    masses = None if slot == UNKNOWN else busy.queue.histograms.masses[slot]
    return ended_by(masses, busy.now - start, float(busy.requested_times[row]), time - start)


def _enough(lacked: int, time: int, busy: PassState) -> float:
    """Return a lower bound on the probability that running jobs have released `lacked` processors by `time`.

    Jobs end independently. A job whose probability is unknown counts as ending at its limit. O(running * lacked).
    """
    freed = np.zeros(lacked + 1)
    freed[0] = 1.0
    for row, size in enumerate(busy.processors.tolist()):
        chance = _ended(row, time, busy) or 0.0
        moved = np.zeros_like(freed)
        if size < lacked:
            moved[size:-1] = freed[: lacked - size]
        moved[-1] = freed[max(lacked - size, 0) :].sum()
        freed = (1.0 - chance) * freed + chance * moved

    return float(min(max(freed[-1], 0.0), 1.0))


def _quantiles(lacked: int, busy: PassState) -> Iterator[tuple[float, int]]:
    """Yield each of `QUANTILES`, and the time by which `lacked` processors are released with at least that probability.

    Times later than `MAX_DURATION` from now are left out. O(log time) calls of `_enough`.
    """
    times = range(busy.now + 1, int(busy.requested_ends.max()))
    for share in QUANTILES:
        time = times.start + bisect_left(times, share, key=lambda time: _enough(lacked, time, busy))
        if time - busy.now <= MAX_DURATION:
            yield share, time
