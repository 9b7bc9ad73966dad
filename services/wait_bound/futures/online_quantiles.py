"""Quantiles of waits from several sources, each moved by what came of it, and mixed by how near they came."""

from typing import Any

import numpy as np

from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.distributions import packed_numbers, unpacked_numbers
from shadowtime.shared.kernels import Floats, FloatTable, kernel

STEPS = np.array([0.003, 0.01, 0.03])
"""By what one wait moves the logarithm of a quantile, for each unit that its probability is off; one each expert."""

FARTHEST = 3.0
"""The logarithm by which a quantile is moved at most."""

LAST = 1_000
"""Waits after which what experts lost counts for little: weights are shared among them at half of that rate."""

NEAR = 60.0
"""Seconds that are added to waits before their logarithms are taken."""

SINCE, NEXT, FORECAST = range(3)
"""Columns of a waiting job: since when it waits, up to when nothing of it is outwaited; then what each expert told of
it, then 1 where that still holds."""


@kernel
def count_missed(now: float, jobs: FloatTable, shifts: FloatTable, levels: Floats, steps: Floats) -> None:
    """Move up, once for each waiting job and expert, the quantiles that a job has outwaited.

    O(jobs), and O(levels * experts) for each that outwaits any.

    Parameters
    ----------
    jobs
        Of each `SINCE`, `NEXT`, then `FORECAST`; changed here, as are `shifts`, of each level and expert.
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

        jobs[job, NEXT] = jobs[job, SINCE] + np.exp(least) - NEAR - 1.0  # a second before, for rounding


@kernel
def learn_wait(
    job: Floats, wait: float, shifts: FloatTable, weights: FloatTable, squares: Floats, levels: Floats, steps: Floats
) -> None:
    """Move down the quantiles that a wait was within, and weigh experts by what they lost. O(levels * experts).

    Parameters
    ----------
    job
        As a row of `count_missed`.
    weights, squares
        Of each level and expert, adding up to 1 over experts, and the mean of squared losses of each level; all are
        changed here, as are the shifts.
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
    """Experts, one for each source and step, whose quantiles follow their own misses; and their mixture.

    An expert's quantile at level q is moved up by its step times q when a job has waited for longer, as soon as it has,
    and down by its step times 1 - q when one starts within; so whatever the waits do, its share of misses over n waits
    is within (`FARTHEST` + step) / (n step) of 1 - q, save for those that are not known yet (at most the jobs that
    wait), as long as it is not held at `FARTHEST`. Weights follow the losses of the last thousand waits, each told as
    it was; the mixture has no such guarantee of its own. Levels never cross.

    O(waiting jobs) an event, and O(levels * experts) a submission, start and outwaited quantile, in compiled
    code; memory O(waiting jobs * levels * experts).

    Parameters
    ----------
    levels
        Probabilities, rising.
    sources
        How many sources there are.

    Examples
    --------
    >>> tracked = TrackedQuantiles((0.5, 0.9), sources=1)
    >>> for number in range(2000):
    ...     tracked.tell(number, 1_000.0 * number, np.log(np.array([[100.0], [200.0]]) + NEAR))
    ...     tracked.start(number, wait=float(number * 7919 % 1000))
    >>> tracked.seconds(np.log(np.array([[100.0], [200.0]]) + NEAR)).round(-2).tolist()
    [500.0, 900.0]

    References
    ----------
    docs/algorithms.md#tracked-quantiles (Gibbs 2024; Angelopoulos 2023).
    """

    def __init__(self, levels: tuple[float, ...], sources: int) -> None:
        self.levels = np.array(levels)
        experts = sources * len(STEPS)
        self.shifts: FloatTable = np.zeros((len(levels), experts))
        self.weights: FloatTable = np.full((len(levels), experts), 1.0 / experts)
        self._squares: Floats = np.ones(len(levels))
        self._numbers: list[int] = []
        """The waiting jobs, in the order of the rows of `_jobs`."""
        self._rows: dict[int, int] = {}
        self._jobs: FloatTable = np.zeros((16, FORECAST + 2 * self.shifts.size))

    def seconds(self, quantiles: FloatTable) -> Floats:
        """Return the mixture of quantiles that sources have, as told now, in seconds, shape (levels,), rising.

        Parameters
        ----------
        quantiles
            The logarithms of waits and `NEAR`, shape (levels, sources).
        """
        logs = (self.weights * self._forecasts(quantiles)).sum(axis=1)
        seconds = np.rint(np.exp(np.minimum(logs, np.log(MAX_DURATION))) - NEAR)
        return np.maximum.accumulate(np.maximum(seconds, 0.0))

    def tell(self, job_number: int, since: float, quantiles: FloatTable) -> None:
        """Remember what experts say of a job that waits from then on, in seconds."""
        row = self._rows[job_number] = len(self._numbers)
        self._numbers.append(job_number)
        if row == len(self._jobs):
            self._jobs = np.concatenate((self._jobs, np.zeros_like(self._jobs)))
        forecasts = self._forecasts(quantiles).ravel()
        self._jobs[row] = np.concatenate(([since, -np.inf], forecasts, np.ones_like(forecasts)))

    def advance(self, now: float) -> None:
        """Learn from the jobs that have waited for longer than was told of them, at a time in seconds."""
        count_missed(now, self._jobs[: len(self._numbers)], self.shifts, self.levels, STEPS)

    def start(self, job_number: int, wait: float) -> None:
        """Learn the wait of a job in seconds, if anything was told of it."""
        row = self._rows.get(job_number)
        if row is None:
            return
        job = self._jobs[row]
        count_missed(job[SINCE] + wait, self._jobs[row : row + 1], self.shifts, self.levels, STEPS)
        learn_wait(job, wait, self.shifts, self.weights, self._squares, self.levels, STEPS)
        self.withdraw(job_number)

    def withdraw(self, job_number: int) -> None:
        """Forget a job; the last row takes the place of its own."""
        row = self._rows.pop(job_number, None)
        if row is None:
            return
        last = self._numbers.pop()
        if last != job_number:
            self._numbers[row], self._rows[last] = last, row
            self._jobs[row] = self._jobs[len(self._numbers)]

    def _forecasts(self, quantiles: FloatTable) -> FloatTable:
        """Return what each expert says, the experts of one source beside each other; no less than no wait."""
        return np.maximum(np.repeat(quantiles, len(STEPS), axis=1) + self.shifts, np.log(NEAR))

    def snapshot(self) -> Any:
        """Return what was learned, and the waiting jobs."""
        tables = self.shifts, self.weights, self._squares, self._jobs[: len(self._numbers)]
        return {"tables": [packed_numbers(table) for table in tables], "numbers": self._numbers.copy()}

    def restore(self, state: Any) -> None:
        """Take on what `snapshot` returned."""
        self.shifts, self.weights, self._squares, jobs = (unpacked_numbers(numbers) for numbers in state["tables"])
        self._numbers = list(state["numbers"])
        self._rows = {number: row for row, number in enumerate(self._numbers)}
        self._jobs = np.zeros((max(16, len(jobs)), FORECAST + 2 * self.shifts.size))
        self._jobs[: len(jobs)] = jobs
