"""A walk over the terminations of running jobs: how many processors they have released by then, with what probability.

The distribution over the jobs that do not end in a half of the steps serves all steps of that half (a job without a
step in it takes part once for the half), so nothing is ever taken out again, which loses digits.
"""

from typing import NamedTuple

import numpy as np

from shadowtime.shared.arrays import Floats, FloatTable, Integers
from shadowtime.shared.kernel import kernel

READY = 1e-13
"""A head that is ready but for this probability is ready; what comes later is below rounding."""

CERTAIN = 1.0 - READY

EACH_SIZE = 24
"""Work that each size of candidate stands for in each step, also for the memory of what is found."""

UNBOUNDED = 1 << 62
"""Work that no walk exceeds."""


class Terminations(NamedTuple):
    """What running jobs may do, in the order of the walk: event by event, shape (events,)."""

    times: Floats
    jobs: Integers
    probabilities: Floats


class Walk(NamedTuple):
    """What one walk over the terminations says of candidates of every size; rows are steps in order of time.

    `ready[k]` is the probability that the head becomes ready in step k, and `delays[k, d]` that it does, but not
    beside a candidate of the d-th size; `bounds[k, d]` is the greatest probability, up to step k, that the machine is
    in between just after an instant. `jobs[k]` is the job that ends in step k, the first of them if there are several.
    `work` counts what it took; more than was allowed: the walk was broken off, and is not to be used.
    """

    times: Floats
    jobs: Integers
    ready: Floats
    delays: FloatTable
    bounds: FloatTable
    work: int


@kernel
def by_time(times: Floats, jobs: Integers, probabilities: Floats) -> tuple[Floats, Integers, Floats]:
    """Return terminations by time; at one instant certain ones first, then in the order given. O(n log n)."""
    certain = probabilities >= CERTAIN
    certain_first = np.concatenate((np.flatnonzero(certain), np.flatnonzero(~certain)))
    order = certain_first[np.argsort(times[certain_first], kind="mergesort")]
    return times[order], jobs[order], probabilities[order]


@kernel
def add_job(released: Floats, top: int, size: int, ended: float, length: int) -> int:
    """Let one more job, ended with probability `ended`, take part in a distribution; return its new greatest value.

    `released[x]` is the probability that x processors have been released, x up to `top`; values from `length` on are
    dropped. In place, O(top + size).
    """
    grown = min(top + size, length - 1)
    for x in range(grown, -1, -1):
        stays = (1.0 - ended) * released[x] if x <= top else 0.0
        released[x] = stays + ended * released[x - size] if x >= size else stays
    return grown


@kernel
def between(sums: Floats, top: int, low: int, high: int) -> float:
    """Return the probability of the values in [low, high), from their running sums up to the greatest, `top`."""
    low, high = max(low, 0), min(high, top + 1)
    return sums[high] - sums[low] if low < high else 0.0


@kernel
def walk(
    needed: int,
    processors: Integers,
    times: Floats,
    jobs: Integers,
    probabilities: Floats,
    candidates: Integers,
    allowed: int,
) -> tuple[Floats, Integers, Floats, FloatTable, FloatTable, int]:
    """Walk the terminations of running jobs once, for candidates of all sizes; returns the fields of a `Walk`.

    Each step needs the distribution of what all *other* jobs have released. The steps are halved again and again: a
    job without a step in a half has one probability throughout it and takes part once for the whole half; in a half
    of one step, all but the job of that step do. Only sums of products of probabilities: nothing is divided out,
    which would lose all digits within some ten steps when jobs are small.

    O(steps * log(jobs) * processors that matter), which are at most `needed` and the largest candidate.

    Parameters
    ----------
    needed
        Processors that must be released before the head can start, above zero.
    processors
        Of each running job, shape (jobs,).
    times, jobs, probabilities
        Their terminations as `by_time` gives them; those of a job may add up to less than 1 if the later ones do not
        matter.
    candidates
        Processors of the candidates, each size once, rising, shape (sizes,).
    allowed
        Work at most, in steps of the loops over processors; known before anything of that size is allocated.
    """
    sizes, kinds = processors.copy(), len(candidates)
    at, by, mass = np.empty_like(times), np.empty_like(jobs), np.empty_like(probabilities)
    steps = 0
    for k in range(len(times)):  # certain terminations of one instant are one step
        if steps > 0 and probabilities[k] >= CERTAIN and mass[steps - 1] >= CERTAIN and at[steps - 1] == times[k]:
            sizes[by[steps - 1]] += sizes[jobs[k]]
        else:
            at[steps], by[steps], mass[steps] = times[k], jobs[k], probabilities[k]
            steps += 1
    length = needed + (candidates[-1] if kinds else 0)
    depths = 2
    while 1 << (depths - 2) < steps:
        depths += 1
    work = depths * (length + len(sizes))
    if work > allowed:
        nothing = np.empty((0, kinds))
        return at[:0].copy(), by[:0].copy(), mass[:0].copy(), nothing, nothing, work
    # What is true of the half at each depth that the walk is in: the distribution over the jobs that have no step in
    # it, its greatest value, processors released for certain, and the jobs that do have a step in it.
    released, top = np.empty((depths, length)), np.zeros(depths, dtype=np.int64)
    certain = np.zeros(depths, dtype=np.int64)
    pending, count = np.empty((depths, len(sizes)), dtype=np.int64), np.zeros(depths, dtype=np.int64)
    released[0, 0] = 1.0
    count[0] = len(sizes)
    pending[0] = np.arange(len(sizes))
    stack = np.empty((2 * depths, 3), dtype=np.int64)
    stack[0] = 0, steps, 1
    stacked = 1 if steps > 0 else 0
    has_step, half = np.zeros(len(sizes), dtype=np.int64), 0
    ended, sums = np.zeros(len(sizes)), np.zeros(length + 1)
    rows = min(steps, allowed // (EACH_SIZE * max(kinds, 1)) + 1)  # for more no work is allowed
    ready, delays, bounds = np.zeros(steps), np.empty((rows, kinds)), np.empty((rows, kinds))
    waiting, row = 1.0, 0
    while stacked > 0 and (waiting > READY or at[row] == at[row - 1]):  # an instant is walked to its end
        if work > allowed:
            break
        stacked -= 1
        first, last, depth = stack[stacked]
        half += 1
        has_step[by[first:last]] = half
        here, there = released[depth], released[depth - 1]
        here[: top[depth - 1] + 1] = there[: top[depth - 1] + 1]
        top[depth], certain[depth], count[depth] = top[depth - 1], certain[depth - 1], 0
        work += top[depth] + count[depth - 1] + last - first
        for job in pending[depth - 1, : count[depth - 1]]:
            if has_step[job] == half:
                pending[depth, count[depth]] = job
                count[depth] += 1
            elif ended[job] >= CERTAIN:
                certain[depth] += sizes[job]
            elif ended[job] > 0.0:
                top[depth] = add_job(here, top[depth], sizes[job], ended[job], length)
                work += top[depth] + 1
        if last - first > 1:
            middle = (first + last) // 2
            stack[stacked] = middle, last, depth + 1
            stack[stacked + 1] = first, middle, depth + 1
            stacked += 2
            continue
        work += EACH_SIZE * kinds
        for x in range(top[depth] + 1):
            sums[x + 1] = sums[x] + here[x]
        job, greatest = by[row], top[depth]
        size, lacking = sizes[job], needed - certain[depth]
        ready[row] = mass[row] * between(sums, greatest, lacking - size, lacking)
        waiting -= ready[row]
        ended[job] += mass[row]
        complete = row + 1 == steps or at[row + 1] > at[row]
        for d in range(kinds):
            both = lacking + candidates[d]
            delays[row, d] = mass[row] * between(sums, greatest, lacking - size, min(lacking, both - size))
            most = bounds[row - 1, d] if row > 0 else 0.0
            if complete:
                if_ended = between(sums, greatest, lacking - size, both - size)
                if_not = between(sums, greatest, lacking, both)
                most = max(most, ended[job] * if_ended + (1.0 - ended[job]) * if_not)
            bounds[row, d] = most
        row += 1
    return at[:row].copy(), by[:row].copy(), ready[:row].copy(), delays[:row], bounds[:row], work
