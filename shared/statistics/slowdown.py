"""Bounded slowdown."""

RUN_TIME_FLOOR = 10
"""Seconds; a shorter job counts as if it had run this long."""


def bounded_slowdown(wait: int, run_time: int) -> float:
    """Return response time over run time, both in seconds, the run time at least `RUN_TIME_FLOOR`, and 1 at least.

    Source: docs/algorithms.md#bounded-slowdown.

    >>> bounded_slowdown(wait=0, run_time=3)
    1.0
    """
    return max(unclamped_slowdown(wait, run_time), 1.0)


def unclamped_slowdown(wait: int, run_time: int) -> float:
    """Return the same without the clamp: below 1 for a short job that hardly waits. Results give both.

    >>> unclamped_slowdown(wait=0, run_time=3)
    0.3
    """
    return (wait + run_time) / max(run_time, RUN_TIME_FLOOR)
