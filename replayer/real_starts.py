"""When the jobs of a log really started."""

from shadowtime.replayer.workload import Workload
from shadowtime.shared.arrays import Integers
from shadowtime.shared.errors import TraceError


def real_starts(workload: Workload) -> Integers:
    """Return when each job really started, in seconds.

    Raises
    ------
    TraceError
        If the log does not say so of every job.
    """
    waits = workload.columns["wait_time"]
    if (waits < 0).any():
        raise TraceError(f"{workload.name} does not say how long {int((waits < 0).sum()):,} of its jobs waited")
    starts: Integers = workload.columns["submit_time"] + waits
    return starts
