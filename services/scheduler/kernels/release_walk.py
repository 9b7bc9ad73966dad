"""A walk over the terminations of running jobs: the distribution of the processors that they have released over time.

Theory of operation
-------------------
The head starts once running jobs have released the processors that it lacks. Each running job ends at one of several
instants, with known probabilities, independently of the others. The walk goes through all these terminations in order
of time. At each step, one job ends with some probability. The walk needs the distribution of the processors that all
*other* jobs have released before this step. From this distribution, a sum gives the probability that the step makes the
head ready.

That distribution is a convolution over all jobs but one. To compute it anew at each step costs O(jobs) convolutions. To
keep one distribution of all jobs and take one job out again (a deconvolution) is cheap, but loses digits.

So the walk halves the steps instead. A job without a step in a half has the same probability of having ended at every
step of that half. The job is added once for the half, and both quarters of the half start from the result. At depth
log2(steps) one step is left, and all jobs but the job of this step have been added. No job is ever taken out. The state
has one distribution for each depth: the one that all steps of the current half share. For the cost, see
docs/algorithms.md#exact-delay-probability.
"""

from typing import NamedTuple

import numpy as np

from shadowtime.shared.kernels import Floats, FloatTable, Integers, kernel

READY = 1e-13
"""Once the probability that the head still waits falls to this value, the head counts as ready. Later terms are below
rounding."""

CERTAIN = 1.0 - READY

EACH_SIZE = 24
"""Work counted for each candidate size in each step. It also limits the memory of the results."""

UNBOUNDED = 1 << 62
"""Work that no walk exceeds."""


class Walk(NamedTuple):
    """The result of one walk over the terminations, for candidates of every size; rows are steps in order of time.

    `ready[k]` is the probability that the head becomes ready in step k. `delays[k, d]` is the probability that the head
    becomes ready in step k, but does not fit beside a candidate of the d-th size. `bounds[k, d]` is the greatest
    probability, just after any instant up to step k, that the head fits alone, but not beside such a candidate.
    `jobs[k]` is the job that ends in step k, the first one if there are several. `work` is the work done. If `work`
    exceeds the allowed work, the walk was aborted and must not be used.
    """

    times: Floats
    jobs: Integers
    ready: Floats
    delays: FloatTable
    bounds: FloatTable
    work: int


@kernel
def by_time(times: Floats, jobs: Integers, probabilities: Floats) -> tuple[Floats, Integers, Floats]:
    """Return terminations by time; at the same instant, certain ones first, then in the given order. O(n log n)."""
    certain = probabilities >= CERTAIN
    certain_first = np.concatenate((np.flatnonzero(certain), np.flatnonzero(~certain)))
    order = certain_first[np.argsort(times[certain_first], kind="mergesort")]
    return times[order], jobs[order], probabilities[order]


@kernel
def add_job(released: Floats, top: int, size: int, ended: float, lowest: int, length: int, into: Floats) -> int:
    """Add one more job, which has ended with probability `ended`, to a distribution. Return its new greatest value.

    `released[x]` is the probability that x processors have been released, for x up to `top`. The new distribution is
    written to `into`, only for values from `lowest` on and below `length`. O(top + size - lowest).
    """
    stays, grown = 1.0 - ended, min(top + size, length - 1)
    for x in range(lowest, min(size, grown + 1)):
        into[x] = stays * released[x] if x <= top else 0.0
    first = max(size, lowest)
    end = max(first, min(top, grown) + 1)
    both, kept, moved = into[first:end], released[first:end], released[first - size : end - size]
    for k in range(len(both)):
        both[k] = stays * kept[k] + ended * moved[k]
    above, moved = into[end : grown + 1], released[end - size :]
    for k in range(len(above)):
        above[k] = ended * moved[k]
    return grown


@kernel
def below(value: int, sums: Floats, first: int, last: int) -> float:
    """Return the probability of the values from `first` to below `value`, from cumulative sums up to `last`."""
    return float(sums[min(max(value, first), last + 1)])


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
    """Walk the terminations of running jobs once, for candidates of all sizes. Return the fields of a `Walk`.

    A half only computes the numbers of released processors from which its own jobs can make the head ready, alone or
    beside the largest candidate. These numbers become fewer as halves become shorter.

    O(steps * values that matter) for jobs of one size, and at most log(jobs) times that. The values that matter are at
    most `needed` plus the largest candidate.

    Parameters
    ----------
    needed
        Processors that must be released before the head can start, above zero.
    processors
        Processors of each running job, shape (jobs,).
    times, jobs, probabilities
        Their terminations, as `by_time` returns them. The probabilities of a job may add up to less than 1 if later
        ends do not matter.
    candidates
        Processors of the candidates, each size once, rising, shape (sizes,).
    allowed
        Limit of the work, in steps of the loops over processors. It is checked before large arrays are allocated.
    """
    # 1. Merge certain terminations of one instant into one step.
    sizes, kinds = processors.copy(), len(candidates)
    at, by, mass = np.empty_like(times), np.empty_like(jobs), np.empty_like(probabilities)
    steps = 0
    for k in range(len(times)):
        if steps > 0 and probabilities[k] >= CERTAIN and mass[steps - 1] >= CERTAIN and at[steps - 1] == times[k]:
            sizes[by[steps - 1]] += sizes[jobs[k]]
        else:
            at[steps], by[steps], mass[steps] = times[k], jobs[k], probabilities[k]
            steps += 1

    # 2. Return the work alone if it exceeds what is allowed, before anything of that size is allocated.
    largest = candidates[-1] if kinds else 0
    length = needed + largest
    depths = 2
    while 1 << (depths - 2) < steps:
        depths += 1
    work = depths * (2 * length + len(sizes))
    if work > allowed:
        nothing = np.empty((0, kinds))
        return at[:0].copy(), by[:0].copy(), mass[:0].copy(), nothing, nothing, work

    # 3. Allocate the state of the walk: for each depth of the halving, the state of the current half. `released` has
    # the distribution over the jobs without a step in the half, in row `at_row`, up to the value `top`. `least` is the
    # least value that matters, `certain` the processors released for certain. `pending` has the jobs with a step in the
    # half.
    released, at_row = np.empty((2 * depths, length)), np.zeros(depths, dtype=np.int64)
    top, least = np.zeros(depths, dtype=np.int64), np.zeros(depths, dtype=np.int64)
    certain = np.zeros(depths, dtype=np.int64)
    pending, count = np.empty((depths, len(sizes)), dtype=np.int64), np.zeros(depths, dtype=np.int64)
    released[0, 0] = 1.0
    least[0] = needed - sizes.sum()
    count[0] = len(sizes)
    pending[0] = np.arange(len(sizes))
    stack = np.empty((2 * depths, 3), dtype=np.int64)
    stack[0] = 0, steps, 1
    stacked = 1 if steps > 0 else 0
    has_step, half = np.zeros(len(sizes), dtype=np.int64), 0
    ended, sums = np.zeros(len(sizes)), np.zeros(length + 1)
    rows = min(steps, allowed // (EACH_SIZE * max(kinds, 1)) + 1)  # the allowed work ends before more rows are filled
    ready, delays, bounds = np.zeros(steps), np.empty((rows, kinds)), np.empty((rows, kinds))
    waiting, row = 1.0, 0

    # 4. Walk the halves, depth first and earliest first.
    while stacked > 0 and (waiting > READY or at[row] == at[row - 1]):  # an instant is walked to its end
        if work > allowed:
            break
        stacked -= 1
        first, last, depth = stack[stacked]
        half += 1
        has_step[by[first:last]] = half

        # 4a. Jobs of the outer half without a step in this half take part in its distribution.
        here, free = at_row[depth - 1], 2 * depth
        top[depth], least[depth] = top[depth - 1], least[depth - 1]
        certain[depth], count[depth] = certain[depth - 1], 0
        work += count[depth - 1] + last - first
        for job in pending[depth - 1, : count[depth - 1]]:
            if has_step[job] == half:
                pending[depth, count[depth]] = job
                count[depth] += 1
            elif ended[job] >= CERTAIN:
                certain[depth] += sizes[job]
            else:
                least[depth] += sizes[job]
                if ended[job] > 0.0:
                    low, end = max(least[depth], 0), length - certain[depth]
                    top[depth] = add_job(released[here], top[depth], sizes[job], ended[job], low, end, released[free])
                    work += max(top[depth] + 1 - low, 0)
                    here, free = free, 2 * depth + 1 if free == 2 * depth else 2 * depth

        at_row[depth] = here

        # 4b. Halve again until one step is left.
        if last - first > 1:
            middle = (first + last) // 2
            stack[stacked] = middle, last, depth + 1
            stack[stacked + 1] = first, middle, depth + 1
            stacked += 2
            continue

        # 4c. Sum up the distribution of the processors that all other jobs have released.
        job, first, lacking = by[row], max(least[depth], 0), needed - certain[depth]
        size, last = sizes[job], max(min(top[depth], lacking + largest - 1), first - 1)
        work += EACH_SIZE * kinds + max(last - first, 0)
        values, so_far, sums[first] = released[here, first : last + 1], 0.0, 0.0
        added = sums[first + 1 : last + 2]
        for k in range(len(values)):
            so_far += values[k]
            added[k] = so_far

        # 4d. The step makes the head ready if the processors still lacking are at most the size of its job.
        one_short = below(lacking - size, sums, first, last)
        short = below(lacking, sums, first, last)
        ready[row] = mass[row] * (short - one_short)
        waiting -= ready[row]
        ended[job] += mass[row]

        # 4e. For each candidate size: the probability of a delay, and its bound.
        complete = row + 1 == steps or at[row + 1] > at[row]
        for d in range(kinds):
            both = lacking + candidates[d]
            both_one_short = below(both - size, sums, first, last)
            delays[row, d] = mass[row] * (min(short, both_one_short) - one_short)
            most = bounds[row - 1, d] if row > 0 else 0.0
            if complete:
                if_ended, if_not = both_one_short - one_short, below(both, sums, first, last) - short
                most = max(most, ended[job] * if_ended + (1.0 - ended[job]) * if_not)
            bounds[row, d] = most

        row += 1

    return at[:row].copy(), by[:row].copy(), ready[:row].copy(), delays[:row], bounds[:row], work
