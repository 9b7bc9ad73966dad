"""Categories of similar jobs as arrays, for compiled code: their sums, and a linked list of their jobs by age.

A job is stored in a slot, a category in a row. Each template puts each stored job into one category, or into none.

- `rules`, shape (templates, 6): the settings of each template, columns from `RELATIVE` on;
- `jobs`, shape (slots, 4): see `weighted_jobs.Jobs`;
- `chains`, shape (templates, 3, slots): the job's category, the next older and the next younger job in it, or `NONE`;
- `sums`, shape (categories, 8): columns from `COUNT` on.

The sums are integers, so adding and removing a job leaves no rounding error. Values are limited so that the sums of a
full category do not overflow. With 20,000 jobs, the limit is half a year, or 14 times the request.
"""

import math
from collections.abc import Sequence

import numpy as np

from shadowtime.services.runtime_distribution.templates.template import PREDICTIONS, Template
from shadowtime.shared.kernels import Floats, IntegerCube, Integers, IntegerTable, kernel

# The estimate from the values of a category, by their mean or a regression, and the prediction interval of the next
# value.

MIN_DEVIATION = 1.0
"""Smallest standard deviation in seconds. Without it, two equal run times would always have the narrowest interval."""

MIN_SPREAD = 1e-13
"""Smallest ratio of the variance of x to its mean square. A smaller ratio is a rounding error."""


def t_quantiles(confidence: float, degrees: int) -> Floats:
    """Return the half-width of an interval of this confidence in standard errors, by degrees of freedom.

    Shape (degrees + 1,). The first is infinite: with 0 degrees of freedom there is no interval.

    >>> t_quantiles(0.9, 3).round(3).tolist()
    [inf, 6.314, 2.92, 2.353]
    """
    from scipy.special import stdtrit  # here, because the import is slow and only runs with templates need it

    return np.concatenate(([math.inf], stdtrit(np.arange(1, degrees + 1), (1 + confidence) / 2)))


@kernel
def estimate(
    fitted: bool, n: int, y: float, yy: float, x: float, xx: float, xy: float, at: float, scale: float
) -> tuple[float, float]:
    """Return the estimate of the next value and the standard error of its prediction, both multiplied by `scale`.

    Parameters
    ----------
    fitted
        True for the regression line of y on x, with n - 2 degrees of freedom. False for the mean of y, with n - 1.
    n, y, yy, x, xx, xy
        Number of values, and the sums of y, y², x, x² and xy.
    at
        The x of the next value.
    scale
        Seconds in one unit of y. The standard deviation counts as at least `MIN_DEVIATION`.

    Returns
    -------
    tuple
        Two numbers in seconds. The error is infinite if there are too few values, or all x of a regression are equal.

    >>> mean, error = estimate(False, 4, 460.0, 53400.0, 0.0, 0.0, 0.0, 0.0, 1.0)  # 100, 110, 120, 130
    >>> mean, round(float(error * t_quantiles(0.9, 3)[3]), 3)
    (115.0, 33.968)

    References: docs/algorithms.md#templates (Draper 1998, section 1.4, for the interval of a new observation).
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


# The columns of `rules`, `sums` and `chains`, the row of an empty category, and the kinds of predictions.

NONE = -1

RELATIVE, PREDICTION, MAX_SAMPLES, MIN_SAMPLES, RUNNING, MAX_VALUE = range(6)
COUNT, Y, YY, X, XX, XY, OLDEST, NEWEST = range(8)
CATEGORY, OLDER, YOUNGER = range(3)
EMPTY = (0, 0, 0, 0, 0, 0, NONE, NONE)
MEAN, LINEAR, INVERSE, LOGARITHMIC = map(PREDICTIONS.index, ("mean", "linear", "inverse", "logarithmic"))

UNIT = 1 << 20
"""Fixed-point 1, for shares of the request and for 1 / processors."""


def rules_of(templates: Sequence[Template], history: int) -> IntegerTable:
    """Return the settings of templates as `rules`, shape (templates, 6). In all, `history` jobs are stored."""
    rows = []
    for template in templates:
        most = min(template.history or history, history)
        largest = math.isqrt(2**62 // most)
        prediction = PREDICTIONS.index(template.prediction)
        rows.append((template.relative, prediction, most, template.fewest, template.running or 0, largest))

    return np.array(rows, np.int64)


@kernel
def values(rule: Integers, job: Integers) -> tuple[int, int]:
    """Return the integers of the regression for a job: y, what is predicted, and x, its regressor.

    y is the run time in seconds. For a relative template, it is the run time as a share of the request, times `UNIT`. x
    is processors, or 1 / processors times `UNIT`, or log2(processors) times 65,536, or 0 for a mean.

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
    """Add the job in a slot to the sums of a category, or subtract it with `sign` -1."""
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
    """Remove the oldest job of a category; it must be the one in `slot`."""
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
    """Insert the newest job, in `slot`, into its category of each template. O(templates).

    A full category drops its oldest job first.
    """
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
    """Remove the oldest job, in `slot`, from its categories. Return whether a category is empty now. O(templates)."""
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
    categories
        The job's category by template, or `NONE`; shape (templates,).
    job
        The job as a row of `jobs`, shape (4,). Its run time is not used.
    quantiles
        See `t_quantiles`.

    Returns
    -------
    tuple
        The number of the template, or `NONE` if no category gives a finite interval. Of equal intervals, the first
        wins. Then the number of jobs behind the estimate, the estimate, and the half-width of its interval, both in
        seconds.

    O(templates). If `elapsed` has reached `running` of a template, the template uses only the jobs that ran longer than
    the largest multiple of `running` up to `elapsed`. This takes O(jobs of the category).
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
    """Return the last jobs of a category, latest first; shape (at most `most`, 4)."""
    values = np.empty((min(most, sums[category, COUNT]), jobs.shape[1]), np.int64)
    slot = sums[category, NEWEST]
    for age in range(len(values)):
        values[age] = jobs[slot]
        slot = chain[OLDER, slot]
    return values
