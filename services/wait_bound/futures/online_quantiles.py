"""Quantiles of waits from several sources, each shifted by its own misses, and mixed by their losses."""

from typing import Any

import numpy as np

from shadowtime.shared.distributions import packed_numbers, unpacked_numbers
from shadowtime.shared.kernels import Floats, FloatTable, NumberedRows, kernel
from shadowtime.shared.statistics import NEAR, seconds_of

STEPS = np.array([0.003, 0.01, 0.03])
"""Step of each expert of a source: how far one wait shifts the logarithm of a quantile, per unit of probability."""

FARTHEST = 3.0
"""Maximum shift of the logarithm of a quantile, up or down."""

LAST = 1_000
"""Number of waits after which a loss counts for little. Each wait distributes 1 / (2 `LAST`) of the weights equally
among the experts."""

SINCE, NEXT, FORECAST = range(3)
"""Columns of a waiting job: beginning of its wait; time until which its wait exceeds no further quantile; from
`FORECAST` on, the quantile of each level and expert; behind these, for each quantile 1 until the wait has exceeded
it."""


@kernel
def count_missed(now: float, jobs: FloatTable, shifts: FloatTable, levels: Floats, steps: Floats) -> None:
    """Move up the quantiles that the waits so far exceed, once for each waiting job, level and expert.

    O(jobs), and O(levels * experts) for each job with a wait that now exceeds a further quantile.

    Parameters
    ----------
    jobs
        Rows with the columns `SINCE`, `NEXT`, and from `FORECAST` on; changed in place.
    shifts
        Shift of each level and expert; changed in place.
    """
    experts, count = shifts.shape[1], shifts.size
    for job in range(len(jobs)):
        if now <= jobs[job, NEXT]:
            continue
        waited, least = np.log(max(now - jobs[job, SINCE], 0.0) + NEAR), np.inf
        for index in range(count):
            if jobs[job, FORECAST + count + index] > 0.0:
                if waited > jobs[job, FORECAST + index] + 1e-9:
                    jobs[job, FORECAST + count + index] = 0.0
                    level, expert = index // experts, index % experts
                    moved = shifts[level, expert] + steps[expert % len(steps)] * levels[level]
                    shifts[level, expert] = min(moved, FARTHEST)
                else:
                    least = min(least, jobs[job, FORECAST + index])

        jobs[job, NEXT] = jobs[job, SINCE] + np.exp(least) - NEAR - 1.0  # a second earlier, because of rounding


@kernel
def learn_wait(
    job: Floats, wait: float, shifts: FloatTable, weights: FloatTable, squares: Floats, levels: Floats, steps: Floats
) -> None:
    """Move down the quantiles that a wait did not exceed, and reweight experts by their losses. O(levels * experts).

    Parameters
    ----------
    job
        A row as in `count_missed`.
    weights
        Weight of each level and expert, adding up to 1 over experts; changed in place, as are the shifts.
    squares
        Mean squared loss of each level; changed in place.
    """
    experts, count = shifts.shape[1], shifts.size
    log_wait, shared = np.log(wait + NEAR), 0.5 / LAST
    losses = np.empty(experts)
    for level in range(len(levels)):
        square = 0.0
        for expert in range(experts):
            cell = level * experts + expert
            if job[FORECAST + count + cell] > 0.0:
                moved = shifts[level, expert] - steps[expert % len(steps)] * (1.0 - levels[level])
                shifts[level, expert] = max(moved, -FARTHEST)
            short = log_wait - job[FORECAST + cell]
            losses[expert] = levels[level] * short if short > 0.0 else (levels[level] - 1.0) * short
            square += weights[level, expert] * losses[expert] ** 2

        squares[level] += (square - squares[level]) / LAST
        rate = np.sqrt((np.log(2.0 * experts * LAST) + 1.0) / (LAST * squares[level] + 1e-12))
        weights[level] *= np.exp(-rate * (losses - losses.min()))
        weights[level] = (1.0 - shared) * weights[level] / weights[level].sum() + shared / experts


class TrackedQuantiles:
    """Experts, one for each source and step, whose quantiles follow their own misses, and the mixture of the experts.

    The logarithm of an expert's quantile at level q moves up by step · q as soon as a job has waited for longer. It
    moves down by step · (1 - q) when a job starts within it. So for any waits, the share of misses over n jobs is
    within (`FARTHEST` + step) / (n step) of 1 - q. This guarantee counts only jobs with a known outcome; the outcome of
    a waiting job may be unknown. It holds while `FARTHEST` does not limit the shift. The weights of experts follow the
    losses of about the last thousand waits, by the quantiles at submission. The mixture has no such guarantee. Its
    quantiles never fall as the level rises.

    O(waiting jobs) for each event, and O(levels * experts) for each submission, start and exceeded quantile, in
    compiled code; memory O(waiting jobs * levels * experts).

    Parameters
    ----------
    levels
        Probabilities, ascending.
    sources
        Number of sources.

    >>> tracked = TrackedQuantiles((0.5, 0.9), sources=1)
    >>> for number in range(2000):
    ...     tracked.tell(number, 1_000.0 * number, np.log(np.array([[100.0], [200.0]]) + NEAR))
    ...     tracked.start(number, wait=float(number * 7919 % 1000))
    >>> tracked.seconds(np.log(np.array([[100.0], [200.0]]) + NEAR)).round(-2).tolist()
    [500.0, 900.0]

    References: docs/algorithms.md#tracked-quantiles (Gibbs 2024; Angelopoulos 2023).
    """

    def __init__(self, levels: tuple[float, ...], sources: int) -> None:
        self.levels = np.array(levels)
        experts = sources * len(STEPS)
        self.shifts: FloatTable = np.zeros((len(levels), experts))
        self.weights: FloatTable = np.full((len(levels), experts), 1.0 / experts)
        self._squares: Floats = np.ones(len(levels))
        self._jobs = NumberedRows(FORECAST + 2 * self.shifts.size)

    def seconds(self, quantiles: FloatTable) -> Floats:
        """Return the mixture of the experts' quantiles, as of now, in seconds; shape (levels,), ascending.

        `quantiles` are those of the sources as log(wait + `NEAR`), shape (levels, sources).
        """
        return np.maximum.accumulate(seconds_of((self.weights * self._forecasts(quantiles)).sum(axis=1)))

    def tell(self, job_number: int, since: float, quantiles: FloatTable) -> None:
        """Store the experts' quantiles for a job that has waited since `since`, in seconds."""
        forecasts = self._forecasts(quantiles).ravel()
        self._jobs.add(job_number, np.concatenate(([since, -np.inf], forecasts, np.ones_like(forecasts))))

    def advance(self, now: float) -> None:
        """Learn from the jobs that have waited longer than their quantiles at `now`, in seconds."""
        count_missed(now, self._jobs.table, self.shifts, self.levels, STEPS)

    def start(self, job_number: int, wait: float) -> None:
        """Learn the wait of a job in seconds, if it has stored quantiles."""
        job = self._jobs.of(job_number)
        if job is None:
            return
        count_missed(job[0, SINCE] + wait, job, self.shifts, self.levels, STEPS)
        learn_wait(job[0], wait, self.shifts, self.weights, self._squares, self.levels, STEPS)
        self.withdraw(job_number)

    def withdraw(self, job_number: int) -> None:
        """Forget a job."""
        self._jobs.remove(job_number)

    def _forecasts(self, quantiles: FloatTable) -> FloatTable:
        """Return the quantiles of the experts as logarithms, at least log(`NEAR`); shape (levels, experts).

        The experts of one source are adjacent.
        """
        return np.maximum(np.repeat(quantiles, len(STEPS), axis=1) + self.shifts, np.log(NEAR))

    def snapshot(self) -> Any:
        """Return shifts, weights and squared losses, and the quantiles of the waiting jobs."""
        tables = self.shifts, self.weights, self._squares, self._jobs.table
        return {"tables": [packed_numbers(table) for table in tables], "numbers": self._jobs.numbers.copy()}

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self.shifts, self.weights, self._squares, jobs = (unpacked_numbers(numbers) for numbers in state["tables"])
        self._jobs = NumberedRows(FORECAST + 2 * self.shifts.size, state["numbers"], jobs)
