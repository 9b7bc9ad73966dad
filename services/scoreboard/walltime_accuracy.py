"""Accuracy of requested times, as made and as adjusted."""

from collections import Counter
from typing import Any

import numpy as np

from shadowtime.shared.scores import AdjustmentScores
from shadowtime.shared.walltime_accuracy import AdjustmentClass, accuracy, adjustment_class

STEPS = 10_000
"""Resolution of the median: accuracies are counted in steps of 1/10,000, so memory does not grow with the jobs."""


class WalltimeAccuracy:
    """Running sums over ended jobs that had a request."""

    def __init__(self) -> None:
        self.jobs = 0
        self.accuracy = 0.0
        self.accuracy_requested = 0.0
        self.classes: Counter[AdjustmentClass] = Counter()
        self.steps = np.zeros(STEPS + 1, dtype=np.int64)

    def add(self, run_time: int, requested_time: int, adjusted_time: int) -> None:
        """Take in an ended job; times in seconds."""
        adjusted = accuracy(run_time, adjusted_time)
        self.jobs += 1
        self.accuracy += adjusted
        self.accuracy_requested += accuracy(run_time, requested_time)
        self.classes[adjustment_class(run_time, requested_time, adjusted_time)] += 1
        self.steps[round(adjusted * STEPS)] += 1

    def scores(self) -> AdjustmentScores:
        """Return means, the median and the shares of the classes."""
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
        """Return the lower median."""
        return int(np.searchsorted(2 * np.cumsum(self.steps), self.jobs)) / STEPS

    def snapshot(self) -> dict[str, Any]:
        """Return the sums."""
        return vars(self) | {
            "classes": sorted(self.classes.items()),
            "steps": [[step, int(self.steps[step])] for step in np.flatnonzero(self.steps).tolist()],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take on what `snapshot` returned."""
        vars(self).update(state)
        self.classes = Counter(dict(state["classes"]))
        self.steps = np.zeros(STEPS + 1, dtype=np.int64)
        for step, count in state["steps"]:
            self.steps[step] = count
