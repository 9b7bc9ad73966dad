"""Quantiles of waits from several sources, moved so that they hold in every stretch of jobs, long or short."""

from typing import Any

import numpy as np

from shadowtime.services.wait_bound.aged_experts import AGES, SHIFT, SHORTEST, WEIGHT, bear, judge, shares_of
from shadowtime.services.wait_bound.tracked_quantiles import NEAR, rising_seconds
from shadowtime.shared.arrays import Floats, FloatTable, Integers, IntegerTable
from shadowtime.shared.kernel import kernel
from shadowtime.shared.packed_table import packed_numbers, unpacked_numbers

SINCE, WAIT, TOLD = range(3)
"""Columns of a job: since when it waits; its wait, `UNKNOWN` or `GONE`; then of each level the step at which it was
told, what the mixture told, and what each expert did, as logarithms."""

UNKNOWN, GONE = -1.0, -2.0

MAX_JOBS = 5_000
"""Jobs that are remembered at most; with more, the first is passed over."""


@kernel
def judge_in_order(
    now: float,
    jobs: FloatTable,
    next_jobs: Integers,
    levels: Floats,
    experts: FloatTable,
    births: IntegerTable,
    steps: Integers,
) -> None:
    """Learn, at each level, from the jobs that are next and of which all is known; O(levels · experts) a job.

    Of a job that has waited for longer than anybody told of it all is known: by how much does not matter.

    Parameters
    ----------
    next_jobs
        The row of the first job that is not learned from, of each level; changed here, as are the experts, those of one
        level after the other, their births, shape (levels, `AGES`), and the steps of each level.
    """
    of_level = len(experts) // len(levels)
    width = 2 + of_level
    for level in range(len(levels)):
        own = experts[level * of_level : (level + 1) * of_level]
        while next_jobs[level] < len(jobs):
            job = jobs[next_jobs[level]]
            told = job[TOLD + level * width : TOLD + (level + 1) * width]
            wait = job[WAIT]
            if wait == UNKNOWN:
                wait = max(now - job[SINCE], 0.0)
                if np.log(wait + NEAR) <= told[1:].max():
                    break
            if wait != GONE:
                behind = len(jobs) - next_jobs[level] - 1
                judge(told, behind, np.log(wait + NEAR), levels[level], own, births[level], steps[level])
                steps[level] += 1
            next_jobs[level] += 1


class StronglyAdaptive:
    """Experts of every age, whose quantiles follow their own misses by steps without a scale; and their mixture.

    Every `SHORTEST` / 2 jobs an expert is born for each source, where the mixture stands; of each of `AGES` lifetimes
    one lives. Weights are bets on the pinball loss of each against that of the mixture. If waits were known at once,
    the loss over any n jobs in a row would exceed that of the best fixed shift there by about sqrt(n) only. They are
    not, and short ones are known first: so jobs are learned from in the order in which they were told, each as soon as
    it has started or has waited for longer than anything told of it; and gradients count the more, the more jobs were
    told since, so that what a step would mend is not mended over and over. An expert learns nothing of jobs told before
    its birth: nothing is promised for stretches shorter than the line of those that wait. Levels never cross.

    O(levels) an event and O(levels · experts) a job, in compiled code; memory O(waiting jobs · levels · experts), of
    `MAX_JOBS` at most.

    Parameters
    ----------
    levels
        Probabilities, rising.
    sources
        How many sources there are.

    Examples
    --------
    >>> adaptive = StronglyAdaptive((0.5, 0.9), sources=1)
    >>> for number in range(2000):
    ...     adaptive.tell(number, 1_000.0 * number, np.log(np.array([[100.0], [200.0]]) + NEAR))
    ...     adaptive.start(number, wait=float(number * 381 % 1000))
    >>> adaptive.seconds(np.log(np.array([[100.0], [200.0]]) + NEAR)).round(-2).tolist()
    [500.0, 900.0]

    References
    ----------
    docs/algorithms.md#strongly-adaptive-quantiles (Bhatnagar 2023, algorithms 1 and 2; McMahan 2014, for the delay).
    """

    def __init__(self, levels: tuple[float, ...], sources: int) -> None:
        self.levels = np.array(levels)
        self._experts: FloatTable = np.zeros((len(levels) * sources * AGES, WEIGHT + 1))
        self._births: IntegerTable = np.zeros((len(levels), AGES), np.int64)
        self._steps: Integers = np.full(len(levels), SHORTEST // 2)
        for level, quantile in enumerate(levels):
            own = self._experts[level * sources * AGES : (level + 1) * sources * AGES]
            bear(np.zeros(len(own)), quantile, own, self._births[level], SHORTEST // 2)
        self._jobs: FloatTable = np.zeros((16, TOLD + len(levels) * (2 + sources * AGES)))
        self._numbers: list[int] = []
        """The jobs that are not learned from at every level, in the order of the rows of `_jobs`."""
        self._rows: dict[int, int] = {}
        """Of those that wait."""
        self._next: Integers = np.zeros(len(levels), np.int64)

    def seconds(self, quantiles: FloatTable) -> Floats:
        """Return the mixture of quantiles that sources have, as told now, in seconds, shape (levels,), rising.

        Parameters
        ----------
        quantiles
            The logarithms of waits and `NEAR`, shape (levels, sources).
        """
        return rising_seconds(self._told(quantiles)[:, 1])

    def tell(self, job_number: int, since: float, quantiles: FloatTable) -> None:
        """Remember what experts say of a job that waits from then on, in seconds."""
        if len(self._numbers) == MAX_JOBS:
            self._next = np.maximum(self._next, 1)
        self._forget_learned()
        row = self._rows[job_number] = len(self._numbers)
        self._numbers.append(job_number)
        if row == len(self._jobs):
            self._jobs = np.concatenate((self._jobs, np.zeros_like(self._jobs)))
        self._jobs[row] = np.concatenate(([since, UNKNOWN], self._told(quantiles).ravel()))

    def advance(self, now: float) -> None:
        """Learn from the jobs that are next and of which all is known at a time in seconds."""
        jobs = self._jobs[: len(self._numbers)]
        judge_in_order(now, jobs, self._next, self.levels, self._experts, self._births, self._steps)

    def start(self, job_number: int, wait: float) -> None:
        """Learn the wait of a job in seconds, if anything was told of it."""
        row = self._rows.pop(job_number, None)
        if row is not None:
            self._jobs[row, WAIT] = wait
            self.advance(self._jobs[row, SINCE] + wait)

    def withdraw(self, job_number: int) -> None:
        """Forget a job that leaves without starting."""
        row = self._rows.pop(job_number, None)
        if row is not None:
            self._jobs[row, WAIT] = GONE

    def _told(self, quantiles: FloatTable) -> FloatTable:
        """Return of each level its step, what the mixture says, and what each expert does; no less than no wait."""
        told: FloatTable = np.empty((len(self.levels), 2 + quantiles.shape[1] * AGES))
        told[:, 0] = self._steps
        told[:, 2:] = np.repeat(quantiles, AGES, axis=1) + self._experts[:, SHIFT].reshape(len(told), -1)
        told[:, 2:] = np.maximum(told[:, 2:], np.log(NEAR))
        own = self._experts.reshape(len(told), -1, WEIGHT + 1)
        for level in range(len(told)):
            told[level, 1] = told[level, 2:] @ shares_of(own[level], self._births[level])
        return told

    def _forget_learned(self) -> None:
        """Drop the first rows once they are most of all, if they are learned from at every level; O(1) in the mean."""
        learned = int(self._next.min())
        if learned > len(self._numbers) // 2:
            del self._numbers[:learned]
            self._jobs[: len(self._numbers)] = self._jobs[learned : learned + len(self._numbers)].copy()
            self._rows = {number: row - learned for number, row in self._rows.items() if row >= learned}
            self._next -= learned

    def snapshot(self) -> Any:
        """Return what was learned, and the jobs that are not learned from yet."""
        tables = self._experts, self._births, self._steps, self._next, self._jobs[: len(self._numbers)]
        return {"tables": [packed_numbers(each) for each in tables], "numbers": self._numbers.copy()}

    def restore(self, state: Any) -> None:
        """Take on what `snapshot` returned."""
        tables = [unpacked_numbers(each) for each in state["tables"]]
        self._experts, self._births, self._steps, self._next, jobs = tables
        self._numbers = list(state["numbers"])
        self._rows = {number: row for row, number in enumerate(self._numbers) if jobs[row, WAIT] == UNKNOWN}
        self._jobs = np.zeros((max(16, len(jobs)), self._jobs.shape[1]))
        self._jobs[: len(jobs)] = jobs
