"""Accuracy of the times that users requested, and of the adjusted times."""

from collections import Counter
from typing import Any

import numpy as np

from shadowtime.services.scoreboard.batch import Batched
from shadowtime.shared.kernels import Floats, Integers, IntegerTable, kernel
from shadowtime.shared.messages import BAD_GAP, AdjustmentClass, AdjustmentScores

STEPS = 10_000
"""Resolution of the median. Accuracies are counted in steps of 1/10,000, so memory does not grow with the jobs."""


CLASSES: tuple[AdjustmentClass, ...] = ("none", "over", "under", "bad")


@kernel
def add_requests(jobs: IntegerTable, sums: Floats, classes: Integers, steps: Integers) -> None:
    """Add jobs, one after another, to the sums of both accuracies, and count them by class and step, in place. O(jobs).

    A row has a job's run time, requested time and adjusted time, in seconds. The formulas are those of `accuracy` and
    `adjustment_class`.
    """
    for job in range(len(jobs)):
        run_time, requested, adjusted = jobs[job]
        near = min(run_time, adjusted) / max(run_time, adjusted, 1)
        sums[0] += near
        sums[1] += min(run_time, requested) / max(run_time, requested, 1)
        steps[int(np.rint(near * STEPS))] += 1
        gap = run_time - adjusted
        if adjusted == requested:
            classes[0] += 1
        elif gap <= 0:
            classes[1] += 1
        else:
            classes[2 if gap < BAD_GAP else 3] += 1


class WalltimeAccuracy(Batched):
    """Running sums over ended jobs that had a request."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs = 0
        self.accuracy = 0.0
        self.accuracy_requested = 0.0
        self.classes: Counter[AdjustmentClass] = Counter()
        self.steps = np.zeros(STEPS + 1, dtype=np.int64)

    def add(self, run_time: int, requested_time: int, adjusted_time: int) -> None:
        """Add an ended job. Times in seconds."""
        self._keep((run_time, requested_time, adjusted_time))

    def _take_in(self, rows: list[tuple[Any, ...]]) -> None:
        sums, classes = np.array([self.accuracy, self.accuracy_requested]), np.zeros(len(CLASSES), dtype=np.int64)
        add_requests(np.array(rows, dtype=np.int64), sums, classes, self.steps)
        self.jobs += len(rows)
        self.accuracy, self.accuracy_requested = sums.tolist()
        self.classes.update({name: count for name, count in zip(CLASSES, classes.tolist(), strict=True) if count})

    def scores(self) -> AdjustmentScores:
        """Return means, the median and the shares of the classes; None without jobs."""
        self.fold()
        jobs = self.jobs
        return AdjustmentScores(
            mean_accuracy=self.accuracy / jobs if jobs else None,
            median_accuracy=self._median() if jobs else None,
            mean_accuracy_requested=self.accuracy_requested / jobs if jobs else None,
            none=self.classes["none"] / jobs if jobs else None,
            over=self.classes["over"] / jobs if jobs else None,
            under=self.classes["under"] / jobs if jobs else None,
            bad=self.classes["bad"] / jobs if jobs else None,
        )

    def _median(self) -> float:
        """Return the lower median of the accuracies of adjusted times."""
        return int(np.searchsorted(2 * np.cumsum(self.steps), self.jobs)) / STEPS

    def snapshot(self) -> dict[str, Any]:
        """Return the sums."""
        return self._sums() | {
            "classes": sorted(self.classes.items()),
            "steps": [[step, int(self.steps[step])] for step in np.flatnonzero(self.steps).tolist()],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        vars(self).update(state)
        self.classes = Counter(dict(state["classes"]))
        self.steps = np.zeros(STEPS + 1, dtype=np.int64)
        for step, count in state["steps"]:
            self.steps[step] = count
