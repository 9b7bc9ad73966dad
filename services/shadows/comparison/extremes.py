"""Median and longest waits of the jobs of each shape, in the cluster and in the shadow. Memory is bounded."""

from collections.abc import Sequence
from typing import Any

from shadowtime.services.shadows.comparison.day_sums import NOTICED
from shadowtime.services.shadows.comparison.open_days import ComparedJob
from shadowtime.shared.distributions import SHAPES
from shadowtime.shared.statistics import WaitQuantiles

ALL = len(SHAPES)
"""Index of the result of all shapes together."""

MOVED = (0.25, 0.5, 0.75, 0.95)
"""Probabilities of the reported quantiles of the difference between the start times of a job."""


class ShapeExtremes:
    """Binned waits and the longest waits, by shape; O(1) for a job.

    >>> example = ShapeExtremes()
    >>> example.add(ComparedJob(0, 1, 60, (1_000, 0), None))
    >>> example.longest[ALL], round(example.sooner.quantiles(MOVED)[0])
    ([1000, 0], 993)
    """

    def __init__(self) -> None:
        self.waits = [(WaitQuantiles(), WaitQuantiles()) for _ in range(ALL + 1)]
        self.longest = [[0, 0] for _ in range(ALL + 1)]
        self.sooner, self.later = WaitQuantiles(), WaitQuantiles()

    def add(self, job: ComparedJob) -> None:
        """Add a job."""
        for place in (job.shape, ALL):
            for which, wait in enumerate(job.waits):
                self.waits[place][which].add(wait)
                self.longest[place][which] = max(self.longest[place][which], wait)

        later = job.waits[1] - job.waits[0]
        if abs(later) >= NOTICED:
            (self.later if later > 0 else self.sooner).add(abs(later))

    def medians(self, place: int) -> Sequence[float]:
        """Return the median waits of a shape in seconds, cluster and shadow. A median is at most the longest wait.

        >>> example = ShapeExtremes()
        >>> example.add(ComparedJob(0, 1, 60, (1_200, 0), None))
        >>> round(example.waits[ALL][0].quantiles((0.5,))[0]), example.medians(ALL)
        (1211, [1200, 0.0])
        """
        both = zip(self.waits[place], self.longest[place], strict=True)
        return [min(wait.quantiles((0.5,))[0], longest) for wait, longest in both]

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state."""
        return {
            "waits": [[histogram.snapshot() for histogram in both] for both in self.waits],
            "longest": [list(row) for row in self.longest],
            "sooner": self.sooner.snapshot(),
            "later": self.later.snapshot(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        for both, saved in zip(self.waits, state["waits"], strict=True):
            for histogram, counts in zip(both, saved, strict=True):
                histogram.restore(counts)
        self.longest = [list(row) for row in state["longest"]]
        self.sooner.restore(state["sooner"])
        self.later.restore(state["later"])
