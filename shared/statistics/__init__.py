"""Figures of samples: bootstrap intervals, a quantile sketch, the bounded slowdown."""

from shadowtime.shared.statistics.bootstrap import Interval, mean_over_time, ratio_over_time
from shadowtime.shared.statistics.quantile_sketch import WaitQuantiles
from shadowtime.shared.statistics.slowdown import RUN_TIME_FLOOR, bounded_slowdown

__all__ = [
    "RUN_TIME_FLOOR",
    "Interval",
    "WaitQuantiles",
    "bounded_slowdown",
    "mean_over_time",
    "ratio_over_time",
]
