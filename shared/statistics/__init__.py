"""Statistics: bootstrap and Student's intervals, a quantile sketch, the bounded slowdown."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.shared.statistics.bootstrap import Interval, mean_over_time, ratio_over_time
    from shadowtime.shared.statistics.log_waits import NEAR, seconds_of
    from shadowtime.shared.statistics.quantile_sketch import WaitQuantiles
    from shadowtime.shared.statistics.slowdown import RUN_TIME_FLOOR, bounded_slowdown
    from shadowtime.shared.statistics.student import half_width

__getattr__ = lazy_exports(__name__)
