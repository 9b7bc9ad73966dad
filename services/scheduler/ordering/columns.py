"""Columns of the waiting jobs of one pass, the input of an order."""

import math
from typing import NamedTuple

import numpy as np

from shadowtime.services.scheduler.ordering.distribution_measures import RunTimeMeasures, TimesBy
from shadowtime.services.scheduler.tables import Queue
from shadowtime.shared.chance import uniform
from shadowtime.shared.kernels import Floats, Integers


class WaitingColumns(NamedTuple):
    """The waiting jobs at `now`. Every column has the shape (jobs,), in order of (submit time, job number)."""

    now: int
    queue: Queue
    by: TimesBy
    """Run times by which jobs are ordered: requests, predicted points, means of distributions (`expected`), or those
    that policies plan with (`plan`): points in whole seconds, or the request of a job without a prediction."""
    measures: RunTimeMeasures
    chance: int = 0
    """Key of the seeded random numbers. Each number also depends on the job."""

    @property
    def submit_times(self) -> Integers:
        """Submit times in seconds since the log began."""
        return self.queue.submit_time

    @property
    def waits(self) -> Integers:
        """Seconds waited so far."""
        return self.now - self.queue.submit_time

    @property
    def processors(self) -> Integers:
        """Processors requested."""
        return self.queue.processors

    @property
    def priorities(self) -> Floats:
        """Priorities that the site gave the jobs, the largest first; negative infinity for a job without a priority."""
        priorities = self.queue.priorities
        return np.array([priorities.get(number, -math.inf) for number in self.queue.job_number.tolist()])

    @property
    def run_times(self) -> Integers | Floats:
        """Run times that order the jobs, in seconds, at least 1; `NEVER` if nothing is known about a job."""
        if self.by == "predicted":
            return self.queue.order_point
        if self.by == "expected":
            return self.means
        return self.queue.order_request if self.by == "request" else self.queue.order_time

    @property
    def slowdowns_a_second(self) -> Floats:
        """Expected bounded slowdown that a further second of waiting adds: see `distribution_measures.measures_of`."""
        return self.measures.of(self.queue).slowdowns_a_second

    @property
    def means(self) -> Floats:
        """Expected run times in seconds, for any value of `by`."""
        return self.measures.of(self.queue).means

    @property
    def end_rates(self) -> Floats:
        """Highest ratio of the probability of an end to the expected run time: see `measures_of`."""
        return self.measures.of(self.queue).end_rates

    def drawn(self, *, anew: bool) -> Floats:
        """Return a seeded random number in [0, 1) for each job: always the same, or with `anew` one for each second."""
        return uniform(self.chance, np.ascontiguousarray(self.queue.job_number), self.now if anew else 0)
