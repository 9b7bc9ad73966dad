"""How long will it run, how long will it wait, may it start now: answers for a batch machine, live."""

from typing import TYPE_CHECKING, Any

from shadowtime._version import __version__ as __version__

if TYPE_CHECKING:
    from shadowtime.replayer.api import (
        JobSubmitted,
        Result,
        Workload,
        delay_bound,
        delay_probability,
        make,
        read_log,
        replay,
        wait_bound,
    )

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


def __getattr__(name: str) -> Any:
    """Return a part of the Python interface, imported when it is first asked for: it takes a second."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from shadowtime.replayer import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
