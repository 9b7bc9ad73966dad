"""The Python interface: reading logs, replays, and results as frames."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.replayer.api.api import make, read_log, replay, wait_bound
    from shadowtime.replayer.api.comparison import Compared, compare
    from shadowtime.replayer.api.result import Result
    from shadowtime.replayer.api.sweeps import sweep
    from shadowtime.replayer.logs import Workload
    from shadowtime.services.scheduler import delay_bound, delay_probability
    from shadowtime.shared.messages import JobSubmitted

__getattr__ = lazy_exports(__name__)
