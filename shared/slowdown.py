"""Bounded slowdown."""

RUN_TIME_FLOOR = 10
"""Seconds; a shorter job counts as if it had run this long."""


def bounded_slowdown(wait: int, run_time: int) -> float:
    """Return response time over run time, both in seconds, with the run time at least `RUN_TIME_FLOOR`.

    Below 1 for a short job that hardly waits; the literature clamps that to 1, and results give both
    (docs/algorithms.md#bounded-slowdown).

    >>> bounded_slowdown(wait=0, run_time=3)
    0.3
    """
    return (wait + run_time) / max(run_time, RUN_TIME_FLOOR)
