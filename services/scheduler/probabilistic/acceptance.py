"""Acceptance of candidates by the probability that they delay the head."""

from typing import NamedTuple

import numpy as np

from shadowtime.services.scheduler.kernels import Distributions, RunningEnds, ends_of, terminations, walk
from shadowtime.services.scheduler.probabilistic.delay_probability import delay_of
from shadowtime.services.scheduler.probabilistic.recalibration import recalibrated
from shadowtime.shared.kernels import Flags, Floats, FloatTable, Integers, kernel
from shadowtime.shared.messages import DIGITS, Risk, construct_unchecked
from shadowtime.shared.statistics import RUN_TIME_FLOOR

UNITS = 4000
"""Processors up to which a walk counts every one; beyond it counts in larger units."""


MEASURES = ("exact", "paper", "gain")
"""Measures of each candidate, in this order.

Exact probability of delaying the head; the paper's bound on it from below; and what it costs the head at most for each
unit that it gains: the delay expected of the head if that lasts until the candidate ends, over the head's expected run
time, to the time expected until the head can start, over the candidate's. Both are slowdowns; run times count as at
least ten seconds (docs/algorithms.md#cost-against-gain).
"""

GAIN = MEASURES.index("gain")

STATED = len(MEASURES)
"""Where the recalibrated probability stands, behind them; without recalibration it is the exact one."""


@kernel
def in_units(processors: Integers, unit: int) -> Integers:
    """Return sizes in units, rounded so that any first few of them add up to what they hold, rounded up.

    >>> in_units(np.array([1, 1, 1, 1, 5]), 2).tolist()
    [1, 0, 1, 0, 3]
    """
    rounded = np.empty_like(processors)
    held, before = 0, 0
    for job in range(len(processors)):
        held += processors[job]
        so_far = -(-held // unit)
        rounded[job] = so_far - before
        before = so_far

    return rounded


WORK_PER_STEP = 40
"""Work that each instant at which a job may end stands for, in steps of a walk: conditioning and putting in order."""

TOO_MUCH = -2
"""In the place of a row: weighing all would have been too much work."""


RISKIEST = 3
"""Terminations that a decision names."""

ROUNDED = 0.5 * 10.0**-DIGITS
"""Largest value that rounds to 0."""


class Evaluation(NamedTuple):
    """The result of `evaluate_candidates`."""

    accepted: int
    measures: FloatTable
    times: Floats
    jobs: Integers
    risks: Floats
    resolution: int
    work: int

    def riskiest(self, numbers: Integers) -> tuple[Risk, ...]:
        """Return the terminations at which the accepted candidate delays the head likeliest; `numbers` of the jobs."""
        first = np.argsort(-self.risks, kind="stable")[:RISKIEST].tolist()
        return tuple(
            construct_unchecked(
                Risk,
                job_number=int(numbers[self.jobs[k]]),
                time=int(self.times[k]),
                probability=round(float(self.risks[k]), DIGITS),
            )
            for k in first
            if self.risks[k] > ROUNDED
        )


class Candidates(NamedTuple):
    """Of each candidate, shape (candidates,): size, and when it ends as of a running job that starts now.

    One with a free pass may start whatever it does.
    """

    processors: Integers
    predicted_times: Integers
    limits: Integers
    slots: Integers
    free_pass: Flags


class AcceptanceRule(NamedTuple):
    """The rule by which a candidate may start.

    One of which this `measure` of the `MEASURES`, rounded to six digits, is below `tau`, and the exact probability at
    most `most`. `weights` are those of `recalibrated` for candidates whose measure is not below `tau`, and for those
    whose is; without any rows nothing is recalibrated. `weigh` is whether the recalibrated probability is what the
    measure is of, and `most`.
    """

    measure: int
    tau: float
    most: float
    weights: FloatTable
    weigh: bool


@kernel
def evaluate_candidates(
    now: int,
    needed: int,
    head_run_time: float,
    running: RunningEnds,
    candidates: Candidates,
    distributions: Distributions,
    rule: AcceptanceRule,
    allowed: int,
) -> tuple[int, FloatTable, Floats, Integers, Floats, int, int]:
    """Try candidates in the order given until one may start; one walk serves all.

    Parameters
    ----------
    needed, head_run_time
        Processors that running jobs must release for the head, and its expected run time in seconds.
    allowed
        Work at most; it is counted, and known before anything of that size is allocated.

    Returns
    -------
    accepted, measures
        Row of the candidate that may start, -1 if none, `TOO_MUCH` if that was more work than allowed; the measures of
        those tried before it and of itself, with the recalibrated probability, shape (candidates, 4).
    times, jobs, risks, unit
        Terminations that make up the accepted candidate's exact probability, and the processors per unit if larger
        than what all running jobs are multiples of, else 0.
    work
        What it took.
    """
    processors, edges = candidates.processors, distributions.edges
    count = len(processors)
    work = WORK_PER_STEP * (count + len(running.processors)) * len(edges)
    if work > allowed:
        return TOO_MUCH, np.empty((0, 4)), edges[:0], processors[:0], edges[:0], 0, work

    # 1. Find when each candidate may end, and the horizon of the walk.
    ends, weights = np.empty((count, len(edges))), np.empty((count, len(edges)))
    events = np.empty(count, dtype=np.int64)
    horizon = 0.0
    for c in range(count):
        expected_end, limit, slot = now + candidates.predicted_times[c], candidates.limits[c], candidates.slots[c]
        times, probabilities = ends_of(now, now, expected_end, limit, slot, distributions)
        events[c] = len(times)
        ends[c, : len(times)], weights[c, : len(times)] = times, probabilities
        horizon = max(horizon, times[-1])

    if rule.measure == GAIN:
        horizon = np.inf  # its time counts until the head can start, whatever the candidates do

    # 2. Count processors in the largest unit that all running jobs share, or in a coarser one on a large machine.
    unit = 0
    for size in running.processors:
        unit = np.gcd(unit, size)
    unit = max(unit, 1)
    units, resolution = -(-(needed + processors.max()) // unit), 0
    if units > UNITS:
        unit *= -(-units // UNITS)
        resolution = unit
    lacking = -(-needed // unit)
    sizes = -(-(needed + processors) // unit) - lacking
    kinds = np.unique(sizes)

    # 3. Walk the terminations of the running jobs, once for all sizes of candidates.
    at, by, ready, delays, bounds, walked = walk(
        lacking,
        in_units(running.processors, unit),
        *terminations(now, horizon, running, distributions),
        kinds,
        allowed - work,
    )
    work += walked + 4 * len(at) * count
    if work > allowed:
        return TOO_MUCH, np.empty((0, 4)), edges[:0], processors[:0], edges[:0], 0, work

    # 4. Find the expected time until the head is ready.
    until_ready = (ready * (at - now)).sum()
    if len(at):
        until_ready += max(1.0 - ready.sum(), 0.0) * (at[-1] - now)

    # 5. Measure candidates in order, until one may start.
    measures, risks = np.zeros((count, 4)), np.empty(len(at))
    for c in range(count):
        kind, last = np.searchsorted(kinds, sizes[c]), events[c]
        times, probabilities = ends[c, :last], weights[c, :last]
        exact, bound = delay_of(at, delays, bounds, kind, times, probabilities)

        delay, event, left, left_time = 0.0, 0, 1.0, (times * probabilities).sum()
        for row in range(len(at)):
            while event < last and times[event] <= at[row]:
                left -= probabilities[event]
                left_time -= probabilities[event] * times[event]
                event += 1

            if event == last:
                left = left_time = 0.0
            risks[row] = delays[row, kind] * left
            delay += delays[row, kind] * (left_time - left * at[row])

        cost = max(delay, 0.0) * max(float(candidates.predicted_times[c]), RUN_TIME_FLOOR)
        gain = max(until_ready, 1.0) * max(head_run_time, RUN_TIME_FLOOR)
        measures[c] = np.round(exact, 6), np.round(bound, 6), np.round(cost / gain, 6), np.round(exact, 6)
        passes = measures[c, rule.measure] < rule.tau
        probability = measures[c, 0]
        if len(rule.weights):
            measures[c, STATED] = np.round(recalibrated(rule.weights[int(passes)], measures[c, 0]), 6)
            if rule.weigh and probability > 0.0:
                passes = measures[c, rule.measure] * measures[c, STATED] / probability < rule.tau
                probability = measures[c, STATED]

        if candidates.free_pass[c] or (passes and probability <= rule.most):
            return c, measures[: c + 1], at, by, risks, resolution, work

    return -1, measures, at, by, risks[:0], resolution, work
