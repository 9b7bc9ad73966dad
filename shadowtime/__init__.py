"""Live answers for a batch machine: the run time of a job, its wait, and whether it may start now."""

from typing import TYPE_CHECKING, Any

from shadowtime._version import __version__ as __version__

if TYPE_CHECKING:
    from shadowtime.replayer.api import (
        Compared,
        JobSubmitted,
        Result,
        Workload,
        compare,
        delay_bound,
        delay_probability,
        make,
        read_log,
        replay,
        sweep,
        wait_bound,
    )

__all__ = [
    "Compared",
    "JobSubmitted",
    "Result",
    "Workload",
    "compare",
    "delay_bound",
    "delay_probability",
    "make",
    "read_log",
    "replay",
    "sweep",
    "wait_bound",
]


def __getattr__(name: str) -> Any:
    """Return an object of the Python interface. The interface is imported at its first use, which takes a second."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from shadowtime.replayer import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
