"""Slowdown, bounded and plain."""

RUN_TIME_FLOOR = 10
"""Smallest run time in seconds. A shorter job counts as if it had run this long."""


def bounded_slowdown(wait: int, run_time: int) -> float:
    """Return the bounded slowdown: response time over run time, clamped at 1. Times are in seconds.

    The run time counts as at least `RUN_TIME_FLOOR`. Source: docs/algorithms.md#bounded-slowdown.

    >>> bounded_slowdown(wait=0, run_time=3)
    1.0
    """
    return max(unclamped_slowdown(wait, run_time), 1.0)


def unclamped_slowdown(wait: int, run_time: int) -> float:
    """Return the bounded slowdown without the clamp at 1. It is below 1 for a short job that hardly waits.

    >>> unclamped_slowdown(wait=0, run_time=3)
    0.3
    """
    return (wait + run_time) / max(run_time, RUN_TIME_FLOOR)


def slowdown(wait: int, run_time: int) -> float:
    """Return the response time over the run time, without a bound (Tang 2013, section 6.1). Times are in seconds.

    A job that ran for less than a second counts as if it had run for 1 s.

    >>> slowdown(wait=27, run_time=3)
    10.0
    """
    return (wait + run_time) / max(run_time, 1)
