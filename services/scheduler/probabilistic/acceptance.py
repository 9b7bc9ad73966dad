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
"""Maximum number of units in which a walk counts processors. If more are needed, the walk uses larger units."""


MEASURES = ("exact", "paper", "gain")
"""Measures of each candidate, in this order.

`exact` is the probability of delaying the head, `paper` the paper's lower bound on it. `gain` is the ratio of the
head's greatest cost to the candidate's gain, both as slowdowns. The cost is the expected delay of the head over the
head's expected run time. Every delay is assumed to last until the candidate ends. The gain is the expected time until
the head can start, over the candidate's expected run time. Run times count as at least ten seconds
(docs/algorithms.md#cost-against-gain).
"""

GAIN = MEASURES.index("gain")

STATED = len(MEASURES)
"""Column of the recalibrated probability, behind the measures. Without recalibration, it holds the exact
probability."""


@kernel
def in_units(processors: Integers, unit: int) -> Integers:
    """Return sizes in units.

    For any k, the first k results add up to the sum of the first k sizes in units, rounded up.

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
"""Work for each instant at which a job may end, in steps of a walk: conditioning and sorting."""

TOO_MUCH = -2
"""Returned instead of a row if evaluating all candidates would be too much work."""


RISKIEST = 3
"""Maximum number of terminations that a decision names."""

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
        """Return the terminations at which the accepted candidate most likely delays the head.

        `numbers` are the job numbers of the running jobs, which `jobs` refers to.
        """
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
    """Columns of the candidates, shape (candidates,): processors, and the arguments of `ends_of` for run times.

    A candidate with a free pass may start with any measures.
    """

    processors: Integers
    predicted_times: Integers
    limits: Integers
    slots: Integers
    free_pass: Flags


class AcceptanceRule(NamedTuple):
    """The rule by which a candidate may start.

    A candidate may start if its `measure` (index in `MEASURES`), rounded to six digits, is below `tau`, and its exact
    probability is at most `most`. `weights` are those of `recalibrated`: row 1 for candidates with a measure below
    `tau`, row 0 for all others. Without rows, nothing is recalibrated. With `weigh`, both tests use the recalibrated
    probability: the measure is multiplied by the ratio of the recalibrated to the exact probability.
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
    """Evaluate candidates in the given order until one may start. One walk serves all candidates.

    Parameters
    ----------
    needed, head_run_time
        Processors that running jobs must release for the head, and its expected run time in seconds.
    allowed
        Limit of the work, in steps of a walk. The work is known before arrays of that size are allocated.

    Returns
    -------
    accepted, measures
        Row of the candidate that may start, -1 if none may, `TOO_MUCH` if the evaluation would exceed the allowed work.
        The measures of all candidates up to this row, with the recalibrated probability, shape (candidates, 4).
    times, jobs, risks, unit
        Terminations that make up the accepted candidate's exact probability. Processors per unit if sizes had to be
        coarsened, else 0. A coarser unit does not divide the sizes of all running jobs.
    work
        Work done, in steps of a walk.
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
        horizon = np.inf  # the gain needs the time until the head can start, even after candidates end

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
