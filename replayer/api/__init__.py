"""The Python interface: read a log, replay it, get results as frames."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.replayer.api.api import (
        JobSubmitted,
        delay_bound,
        delay_probability,
        make,
        read_log,
        replay,
        wait_bound,
    )
    from shadowtime.replayer.api.result import Result
    from shadowtime.replayer.logs import Workload

__all__ = [
    "JobSubmitted",
    "Result",
    "Workload",
    "delay_bound",
    "delay_probability",
    "make",
    "read_log",
    "replay",
    "wait_bound",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "api": (
            "JobSubmitted",
            "Workload",
            "delay_bound",
            "delay_probability",
            "make",
            "read_log",
            "replay",
            "wait_bound",
        ),
        "result": ("Result",),
    },
)
