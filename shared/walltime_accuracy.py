"""How near a requested time came to the run time, as made or as adjusted."""

from typing import Literal

AdjustmentClass = Literal["none", "over", "under", "bad"]

BAD_GAP = 1800
"""Seconds; a job that runs this much longer than adjusted is badly under-estimated (Tang 2013, section 4.2.2)."""


def accuracy(run_time: int, estimate: int) -> float:
    """Return the smaller over the larger of run time and estimate, in 0 to 1 (Tang 2013, equation 3).

    >>> accuracy(1800, 3600), accuracy(3600, 2880)
    (0.5, 0.8)
    """
    return min(run_time, estimate) / max(run_time, estimate, 1)


def adjustment_class(run_time: int, requested_time: int, adjusted_time: int) -> AdjustmentClass:
    """Return what an adjustment turned out to be: none, an over-, under- or bad under-estimate.

    Times in seconds. A gap of exactly 30 minutes is bad (docs/algorithms.md#classes-of-adjustments).

    >>> [adjustment_class(3600, 7200, each) for each in (7200, 5000, 3000)], adjustment_class(6900, 7200, 3600)
    (['none', 'over', 'under'], 'bad')
    """
    if adjusted_time == requested_time:
        return "none"
    gap = run_time - adjusted_time
    if gap <= 0:
        return "over"
    return "under" if gap < BAD_GAP else "bad"
