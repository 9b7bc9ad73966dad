"""Columns of the waiting jobs of one pass, the input of an order."""

import math
from typing import NamedTuple

import numpy as np

from shadowtime.services.scheduler.ordering.distribution_measures import RunTimeMeasures, TimesBy
from shadowtime.services.scheduler.tables import Queue
from shadowtime.shared.chance import uniform
from shadowtime.shared.kernels import Floats, Integers


class WaitingColumns(NamedTuple):
    """The waiting jobs at `now`; every column has the shape (jobs,), in order of (submit time, job number).

    Parameters
    ----------
    by
        Which run times put jobs in order: requests, predicted points, means of predicted distributions, or `plan`,
        what policies plan with: points in whole seconds, requests where nothing is predicted.
    chance
        What draws are keyed by, beside the job.
    """

    now: int
    queue: Queue
    by: TimesBy
    measures: RunTimeMeasures
    chance: int = 0

    @property
    def submit_times(self) -> Integers:
        """Seconds since the log began."""
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
        """Priorities that the site gave the jobs, the largest first; negative infinity where it gave none."""
        priorities = self.queue.priorities
        return np.array([priorities.get(number, -math.inf) for number in self.queue.job_number.tolist()])

    @property
    def run_times(self) -> Integers | Floats:
        """Seconds, at least 1; `NEVER` where nothing is known of a job."""
        if self.by == "predicted":
            return self.queue.order_point
        if self.by == "expected":
            return self.means
        return self.queue.order_request if self.by == "request" else self.queue.order_time

    @property
    def slowdowns_a_second(self) -> Floats:
        """Expected bounded slowdown that each further second of waiting costs; `run_time_measures.Measures`."""
        return self.measures.of(self.queue).slowdowns_a_second

    @property
    def means(self) -> Floats:
        """Expected run times in seconds, whatever `run_times` are."""
        return self.measures.of(self.queue).means

    @property
    def end_rates(self) -> Floats:
        """Best probability of an end for each second of expected work; `run_time_measures.Measures`."""
        return self.measures.of(self.queue).end_rates

    def drawn(self, *, anew: bool) -> Floats:
        """Return a random number in [0, 1) for each job, always the same or one for each second."""
        return uniform(self.chance, np.ascontiguousarray(self.queue.job_number), self.now if anew else 0)
