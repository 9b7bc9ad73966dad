"""Accuracy of requested times, as made and as adjusted."""

from collections import Counter
from typing import Any

from shared.scores import AdjustmentScores

BAD_GAP = 1800
"""Seconds; a job that runs this much longer than its adjusted request is badly under-estimated (P4, section 5)."""

STEPS = 10_000
"""Resolution of the median: accuracies are counted in steps of 1/10,000, so memory does not grow with the jobs."""


def accuracy(run_time: int, estimate: int) -> float:
    """Return the smaller over the larger of run time and estimate, in 0 to 1 (P4, section 3.1).

    >>> accuracy(1800, 3600), accuracy(3600, 2880)
    (0.5, 0.8)
    """
    return min(run_time, estimate) / max(run_time, estimate, 1)


def adjustment_class(run_time: int, requested_time: int, adjusted_time: int) -> str:
    """Return `none`, `over`, `under` or `bad`: what an adjustment turned out to be (P4, section 5; times in seconds).

    A gap of exactly 30 minutes is bad (spec 5.3).

    >>> [adjustment_class(3600, 7200, each) for each in (7200, 5000, 3000)], adjustment_class(6900, 7200, 3600)
    (['none', 'over', 'under'], 'bad')
    """
    if adjusted_time == requested_time:
        return "none"
    gap = run_time - adjusted_time
    if gap <= 0:
        return "over"
    return "under" if gap < BAD_GAP else "bad"


class WalltimeAccuracy:
    """Running sums over ended jobs that had a request."""

    def __init__(self) -> None:
        self.jobs = 0
        self.accuracy = 0.0
        self.accuracy_requested = 0.0
        self.classes: Counter[str] = Counter()
        self.steps: Counter[int] = Counter()

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
        below = 0
        for step in sorted(self.steps):
            below += self.steps[step]
            if 2 * below >= self.jobs:
                return step / STEPS
        raise AssertionError("no job has been added")

    def snapshot(self) -> dict[str, Any]:
        """Return the sums."""
        return vars(self) | {"classes": sorted(self.classes.items()), "steps": sorted(self.steps.items())}

    def restore(self, state: dict[str, Any]) -> None:
        """Take on what `snapshot` returned."""
        vars(self).update(state)
        self.classes = Counter(dict(state["classes"]))
        self.steps = Counter(dict(state["steps"]))
