"""Waits, responses and slowdowns of the jobs that ended, as running sums."""

from math import exp, log
from typing import Any

from shadowtime.shared.bounds import restored, storable
from shadowtime.shared.slowdown import bounded_slowdown, unclamped_slowdown

WAIT_FLOOR = 10
"""Seconds; shorter waits count as this in the geometric mean (Nissimov 2007, section 5)."""


def geometric_term(wait: int) -> float:
    """Return the logarithm that a wait in seconds adds to the geometric mean.

    >>> round(exp(sum(map(geometric_term, [0, 5, 10, 60, 3600])) / 5), 8)
    46.43984379
    """
    return log(max(wait, WAIT_FLOOR))


def wfp_priority(wait: int, requested_time: int, processors: int) -> float:
    """Return the WFP score (wait / requested time)³ · processors (Tang 2013, section 6.1).

    >>> wfp_priority(7200, 3600, 512)
    4096.0
    """
    return (wait / requested_time) ** 3 * processors


class WaitScores:
    """Running sums over ended jobs; memory is constant. Whole numbers are summed exactly."""

    def __init__(self) -> None:
        self.jobs = 0
        self.wait = 0
        self.log_wait = 0.0
        self.max_wait = 0
        self.zero_waits = 0
        self.response = 0
        self.slowdown = 0.0
        self.slowdown_unclamped = 0.0
        self.priority = 0.0
        self.prioritised_wait = 0.0
        self.processor_seconds = 0
        self.first_submit: int | None = None
        self.last_end = 0

    def add(
        self,
        submit_time: int,
        start_time: int,
        end_time: int,
        processors: int,
        requested_time: int,
        own_run_time: int,
        suspended: int = 0,
    ) -> None:
        """Take in a job that has ended for good; times in seconds.

        Slowdown is over the job's own run time, on the processors that it requested
        (docs/algorithms.md#own-run-time); the machine was held from start to end, but while it was `suspended`.
        """
        wait, run_time = start_time - submit_time, end_time - start_time
        self.jobs += 1
        self.wait += wait
        self.log_wait += geometric_term(wait)
        self.max_wait = max(self.max_wait, wait)
        self.zero_waits += wait == 0
        self.response += wait + run_time
        own_wait = end_time - submit_time - own_run_time
        self.slowdown += bounded_slowdown(own_wait, own_run_time)
        self.slowdown_unclamped += unclamped_slowdown(own_wait, own_run_time)
        priority = wfp_priority(wait, requested_time, processors)
        self.priority += priority
        self.prioritised_wait += priority * wait
        self.processor_seconds += processors * (run_time - suspended)
        if self.first_submit is None:
            self.first_submit, self.last_end = submit_time, end_time
        self.first_submit = min(self.first_submit, submit_time)
        self.last_end = max(self.last_end, end_time)

    def summary(self, capacity: int) -> dict[str, Any]:
        """Return the figures of `PolicyScores` that these sums give.

        Parameters
        ----------
        capacity
            Processor-seconds that the machine had from the first submission to the last end.
        """
        makespan = 0 if self.first_submit is None else self.last_end - self.first_submit
        jobs = self.jobs
        return {
            "jobs": jobs,
            "mean_wait": self.wait / jobs if jobs else None,
            "geometric_mean_wait": exp(self.log_wait / jobs) if jobs else None,
            "max_wait": self.max_wait if jobs else None,
            "zero_wait_share": self.zero_waits / jobs if jobs else None,
            "mean_bounded_slowdown": self.slowdown / jobs if jobs else None,
            "mean_bounded_slowdown_unclamped": self.slowdown_unclamped / jobs if jobs else None,
            "mean_response": self.response / jobs if jobs else None,
            "weighted_mean_wait": self.prioritised_wait / self.priority if self.priority else None,
            "utilization": self.processor_seconds / capacity if capacity else None,
            "makespan": makespan,
        }

    def snapshot(self) -> dict[str, Any]:
        """Return the sums."""
        return storable(vars(self))

    def restore(self, state: dict[str, Any]) -> None:
        """Take on what `snapshot` returned."""
        vars(self).update(restored(state))
