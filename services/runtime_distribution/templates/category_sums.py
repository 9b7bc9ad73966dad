"""Categories of like jobs as arrays, for compiled learning and predicting: sums, and the jobs in a chain by age.

A job is remembered in a slot, a category is a row. Each template has put each remembered job into a category, or none.

- `rules`, shape (templates, 6): what each template asks, columns from `RELATIVE` on;
- `jobs`, shape (slots, 4): see `similar_jobs.Jobs`;
- `chains`, shape (templates, 3, slots): the job's category, the next older and the next younger job in it, or `NONE`;
- `sums`, shape (categories, 8): columns from `COUNT` on.

Sums are of whole numbers: what is added and taken away again leaves no trace. A number so large that they could not
hold as many like it as a category keeps counts as the largest that they could; of 20,000 jobs that is half a year, or
14 times the request.
"""

import math
from collections.abc import Sequence

import numpy as np

from shadowtime.services.runtime_distribution.templates.template import PREDICTIONS, Template
from shadowtime.shared.kernels import Floats, IntegerCube, Integers, IntegerTable, kernel

# The estimate that like values give, by their mean or a regression, and the interval in which the next one lies.

MIN_DEVIATION = 1.0
"""Seconds; no smaller standard deviation is believed, so that two equal run times do not claim to know it all."""

MIN_SPREAD = 1e-13
"""Variance of x over its mean square; what is less is an error of rounding."""


def t_quantiles(confidence: float, degrees: int) -> Floats:
    """Return how many standard errors an interval of this confidence reaches to either side, by degrees of freedom.

    Shape (degrees + 1,); with none there is no interval, so the first is infinite.

    >>> t_quantiles(0.9, 3).round(3).tolist()
    [inf, 6.314, 2.92, 2.353]
    """
    from scipy.special import stdtrit  # here, for it takes a moment, which a run without templates need not

    return np.concatenate(([math.inf], stdtrit(np.arange(1, degrees + 1), (1 + confidence) / 2)))


@kernel
def estimate(
    fitted: bool, n: int, y: float, yy: float, x: float, xx: float, xy: float, at: float, scale: float
) -> tuple[float, float]:
    """Return the estimate of the next value, and the standard error of that value about it; both times `scale`.

    Parameters
    ----------
    fitted
        Whether the estimate is that of the regression line of y on x, with n - 2 degrees of freedom; else it is the
        mean of y, with n - 1.
    n, y, yy, x, xx, xy
        Number of values, and the sums of y, y², x, x² and xy.
    at
        Where x is asked about.
    scale
        What one unit of y is worth, in seconds; the error is that of a deviation of at least `MIN_DEVIATION`.

    Returns
    -------
    tuple
        Two numbers in seconds. The error is infinite where there are too few values, or no two different x.

    Examples
    --------
    >>> mean, error = estimate(False, 4, 460.0, 53400.0, 0.0, 0.0, 0.0, 0.0, 1.0)  # 100, 110, 120, 130
    >>> mean, round(float(error * t_quantiles(0.9, 3)[3]), 3)
    (115.0, 33.968)

    References
    ----------
    docs/algorithms.md#templates (Draper 1998, section 1.4, for the interval of a new observation).
    """
    if n < 2:
        return 0.0, math.inf
    mean = y / n
    squares = max(yy - y * mean, 0.0)
    if not fitted:
        deviation = math.sqrt(squares / (n - 1)) * scale
        return mean * scale, max(deviation, MIN_DEVIATION) * math.sqrt(1.0 + 1.0 / n)
    spread = n * xx - x * x
    if n < 3 or spread <= MIN_SPREAD * n * xx:
        return 0.0, math.inf
    slope = (n * xy - x * y) / spread
    off = at - x / n
    deviation = math.sqrt(max(squares - slope * slope * spread / n, 0.0) / (n - 2)) * scale
    error = max(deviation, MIN_DEVIATION) * math.sqrt(1.0 + 1.0 / n + off * off * n / spread)
    return (mean + slope * off) * scale, error


NONE = -1

RELATIVE, PREDICTION, MAX_SAMPLES, MIN_SAMPLES, RUNNING, MAX_VALUE = range(6)
COUNT, Y, YY, X, XX, XY, OLDEST, NEWEST = range(8)
CATEGORY, OLDER, YOUNGER = range(3)
EMPTY = (0, 0, 0, 0, 0, 0, NONE, NONE)
MEAN, LINEAR, INVERSE, LOGARITHMIC = map(PREDICTIONS.index, ("mean", "linear", "inverse", "logarithmic"))

UNIT = 1 << 20
"""Integer that stands for 1: for a share of the request, or of 1 / processors."""


def rules_of(templates: Sequence[Template], history: int) -> IntegerTable:
    """Return what the templates ask, where so many jobs are remembered in all; shape (templates, 6)."""
    rows = []
    for template in templates:
        most = min(template.history or history, history)
        largest = math.isqrt(2**62 // most)
        prediction = PREDICTIONS.index(template.prediction)
        rows.append((template.relative, prediction, most, template.fewest, template.running or 0, largest))

    return np.array(rows, np.int64)


@kernel
def values(rule: Integers, job: Integers) -> tuple[int, int]:
    """Return what a job counts as: its run time in seconds, or share of the request in units, and what it is fitted on.

    >>> from shadowtime.services.runtime_distribution.templates.template import template_of
    >>> templates = map(template_of, ("linear", "inverse(relative=yes)", "logarithmic"))
    >>> job = np.array([900, 3600, 4, -1])
    >>> [values(rule, job) for rule in rules_of(tuple(templates), 1000)]
    [(900, 4), (262144, 262144), (900, 131072)]
    """
    y = job[0]
    if rule[RELATIVE]:
        share = float(y) / float(job[1])
        y = rule[MAX_VALUE] if share * UNIT > rule[MAX_VALUE] else job[0] * UNIT // job[1]
    processors, x = job[2], 0
    if rule[PREDICTION] == LINEAR:
        x = processors
    elif rule[PREDICTION] == INVERSE:
        x = UNIT // processors
    elif rule[PREDICTION] == LOGARITHMIC:
        x = round(math.log2(processors) * 65536.0)

    return min(y, rule[MAX_VALUE]), min(x, rule[MAX_VALUE])


@kernel
def count(slot: int, category: int, sign: int, rule: Integers, jobs: IntegerTable, sums: IntegerTable) -> None:
    """Add the job in a slot to the sums of a category, or with `sign` -1 take it away."""
    y, x = values(rule, jobs[slot])
    row = sums[category]
    row[COUNT] += sign
    row[Y] += sign * y
    row[YY] += sign * y * y
    row[X] += sign * x
    row[XX] += sign * x * x
    row[XY] += sign * x * y


@kernel
def drop_oldest(
    slot: int, category: int, rule: Integers, jobs: IntegerTable, chain: IntegerTable, sums: IntegerTable
) -> None:
    """Take the oldest job, which is that in the slot, out of a category."""
    count(slot, category, -1, rule, jobs, sums)
    younger = chain[YOUNGER, slot]
    sums[category, OLDEST] = younger
    if younger == NONE:
        sums[category, NEWEST] = NONE
    else:
        chain[OLDER, younger] = NONE


@kernel
def insert(
    slot: int, categories: Integers, rules: IntegerTable, jobs: IntegerTable, chains: IntegerCube, sums: IntegerTable
) -> None:
    """Put the newest job, in a slot, into its categories by template; full ones lose their oldest. O(templates)."""
    for k in range(len(rules)):
        category, chain = categories[k], chains[k]
        chain[CATEGORY, slot] = category
        if category == NONE:
            continue
        if sums[category, COUNT] == rules[k, MAX_SAMPLES]:
            drop_oldest(sums[category, OLDEST], category, rules[k], jobs, chain, sums)
        newest = sums[category, NEWEST]
        chain[OLDER, slot], chain[YOUNGER, slot] = newest, NONE
        if newest == NONE:
            sums[category, OLDEST] = slot
        else:
            chain[YOUNGER, newest] = slot

        sums[category, NEWEST] = slot
        count(slot, category, 1, rules[k], jobs, sums)


@kernel
def remove(slot: int, rules: IntegerTable, jobs: IntegerTable, chains: IntegerCube, sums: IntegerTable) -> bool:
    """Take the oldest job, in a slot, out of its categories; return whether it leaves one empty. O(templates)."""
    empty = False
    for k in range(len(rules)):
        category = chains[k, CATEGORY, slot]
        if category != NONE and sums[category, OLDEST] == slot:
            drop_oldest(slot, category, rules[k], jobs, chains[k], sums)
            empty |= sums[category, COUNT] == 0

    return empty


@kernel
def surest(
    categories: Integers,
    job: Integers,
    elapsed: int,
    rules: IntegerTable,
    jobs: IntegerTable,
    chains: IntegerCube,
    sums: IntegerTable,
    quantiles: Floats,
) -> tuple[int, int, float, float]:
    """Return the estimate with the narrowest interval for a job that has run for `elapsed` seconds.

    Parameters
    ----------
    found
        The job's category by template, or `NONE`; shape (templates,).
    job
        Shape (4,), of which the first number is not used.
    quantiles
        See `t_quantiles`.

    Returns
    -------
    tuple
        The template, or `NONE` where no category has enough jobs, the first of equals; number of jobs behind it;
        estimate; and how far the interval reaches to either side, both in seconds. O(templates); with those that ask
        for jobs which ran longer than what has elapsed, O(jobs of the category).
    """
    best, behind, value, reach = NONE, 0, 0.0, math.inf
    among = np.empty((1, sums.shape[1]), np.int64)
    for k in range(len(rules)):
        category, rule = categories[k], rules[k]
        if category == NONE:
            continue
        row = sums[category]
        if rule[RUNNING] and elapsed >= rule[RUNNING]:
            among[0] = 0
            slot = row[NEWEST]
            while slot != NONE:
                if jobs[slot, 0] > elapsed // rule[RUNNING] * rule[RUNNING]:
                    count(slot, 0, 1, rule, jobs, among)
                slot = chains[k, OLDER, slot]

            row = among[0]

        n, fitted = row[COUNT], rule[PREDICTION] != MEAN
        if n < rule[MIN_SAMPLES]:
            continue
        scale = job[1] / UNIT if rule[RELATIVE] else 1.0
        at = values(rule, job)[1]
        estimated, error = estimate(fitted, n, row[Y], row[YY], row[X], row[XX], row[XY], at, scale)
        half = error * quantiles[n - 1 - fitted]
        if half < reach:
            best, behind, value, reach = k, n, estimated, half

    return best, behind, value, reach


@kernel
def last_jobs(category: int, most: int, jobs: IntegerTable, chain: IntegerTable, sums: IntegerTable) -> IntegerTable:
    """Return the last jobs of a category, last first; shape (at most `most`, 4)."""
    values = np.empty((min(most, sums[category, COUNT]), jobs.shape[1]), np.int64)
    slot = sums[category, NEWEST]
    for age in range(len(values)):
        values[age] = jobs[slot]
        slot = chain[OLDER, slot]
    return values
