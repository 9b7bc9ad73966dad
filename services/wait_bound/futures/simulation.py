"""The current state of the machine, and the starts of one more job in its simulated futures."""

from typing import Any

import numpy as np

from shadowtime.services.wait_bound.futures.arrivals import Arrivals
from shadowtime.services.wait_bound.futures.jobs_in_system import NUMBER, JobsThere
from shadowtime.services.wait_bound.futures.kernels import NEVER, starts_ahead
from shadowtime.services.wait_bound.futures.queue_features import described
from shadowtime.shared.chance import key_of, uniform_table
from shadowtime.shared.kernels import Floats, Integers
from shadowtime.shared.messages import (
    CapacityChanged,
    ClusterOpened,
    Event,
    JobChanged,
    JobEnded,
    JobResumed,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    JobWithdrawn,
)

STEPS = 400_000
"""Maximum number of steps of one future. In a longer future, the job counts as never started."""


MOST_JOBS = 5_000
"""Maximum number of waiting and running jobs with which futures are simulated."""


class MachineFutures:
    """Waiting and running jobs, and arrivals of earlier weeks, from which futures of the machine are simulated.

    In each future, EASY schedules by requests, first come first served, on the processors of all pools together. Run
    times are drawn from the predicted distributions, given the time that each job has run. The random number of a job
    in a future is always the same. Arrivals are those of an earlier week, from about the same hour on.

    O(futures * passes * jobs) for each question, in compiled code; memory O(jobs), and with `arrivals` the
    arrivals of four weeks.

    Parameters
    ----------
    futures
        Number of futures.
    arrivals
        Whether jobs arrive in the futures.

    References: docs/algorithms.md#bounds-from-futures (Smith 1999, section 3).
    """

    def __init__(self, futures: int, *, arrivals: bool) -> None:
        self._futures, self._arriving = futures, arrivals
        self._key, self._pools = 0, dict[int, int]()
        self.jobs = JobsThere()
        """Waiting and running jobs."""
        self.arrivals = Arrivals(0)
        """Arrivals of earlier weeks."""

    def submit(self, job: JobSubmitted, histogram: tuple[float, ...]) -> None:
        """Add a job with the probability of each bin of its run time, from bin 0 on; if empty, it runs to its limit."""
        self.jobs.submit(job, histogram)
        if self._arriving:
            self.arrivals.add(job)

    def observe(self, event: Event) -> None:
        """Apply an event that is not a submission."""
        if isinstance(event, JobStarted):
            self.jobs.start(event)
        elif isinstance(event, JobEnded):
            self.jobs.end(event)
            if not event.requeued:
                self.arrivals.end(event.job_number, event.own_run_time)
        elif isinstance(event, JobWithdrawn):
            self.jobs.withdraw(event.job_number)
            self.arrivals.forget(event.job_number)
        elif isinstance(event, JobSuspended):
            self.jobs.suspend(event.job_number)
        elif isinstance(event, JobResumed):
            self.jobs.resume(event.job_number)
        elif isinstance(event, JobChanged):
            self.jobs.change(event)
        elif isinstance(event, CapacityChanged):
            self._pools[event.pool or 0] = event.processors
        elif isinstance(event, ClusterOpened):
            self._key = key_of(event.seed, event.cluster)
            self._pools = dict(enumerate([pool.processors for pool in event.pools or (event,)]))
            self.arrivals = Arrivals(self._key)

    def starts(self, job: JobSubmitted, histogram: tuple[float, ...], now: int) -> Integers:
        """Return, for each future, the start of a job that is submitted now, in seconds, or `NEVER`; shape (futures,).

        A blocked job is simulated as if it were not blocked. A job that is larger than the machine never starts. If
        more than `MOST_JOBS` jobs are in the system, no job starts.
        """
        futures, jobs, processors = self._futures, self.jobs, self._processors
        if job.requested_processors > processors or len(jobs) > MOST_JOBS:
            return np.full(futures, NEVER)
        last = _alone(job, histogram)
        waiting, running = (row[:, NUMBER] for row in jobs.rows())
        draws = uniform_table(self._key, np.concatenate((waiting, [job.job_number], running)), futures)
        before, own, held = (np.ascontiguousarray(part) for part in _parted(draws, len(waiting)))
        table, firsts, shifts = self.arrivals.draw(now, futures)
        return starts_ahead(
            now,
            processors,
            processors - jobs.held,
            np.concatenate((jobs.waiting(), last.waiting()), axis=1),
            np.concatenate((jobs.run_times(before), last.run_times(own)), axis=1),
            jobs.running(now),
            jobs.ends(now, held),
            table,
            firsts,
            shifts,
            STEPS,
        )

    def features(self, job: JobSubmitted, histogram: tuple[float, ...], now: int) -> Floats:
        """Return the features of a job that is submitted now, and of the jobs before it, shape (OF_QUEUE,).

        O(jobs log jobs).
        """
        waiting, running = self.jobs.rows()
        (own,), _ = _alone(job, histogram).rows()
        return described(now, self._processors, self.jobs.held, waiting, running, own)

    @property
    def _processors(self) -> int:
        return sum(self._pools.values())

    def snapshot(self) -> Any:
        """Return the whole state as plain values."""
        return [self._key, list(self._pools.items()), self.jobs.snapshot(), self.arrivals.snapshot()]

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self._key, pools, jobs, arrivals = state
        self._pools = dict(pools)
        self.jobs, self.arrivals = JobsThere(), Arrivals(self._key)
        self.jobs.restore(jobs)
        self.arrivals.restore(arrivals)


def _alone(job: JobSubmitted, histogram: tuple[float, ...]) -> JobsThere:
    """Return a queue with this job alone, not blocked."""
    jobs = JobsThere()
    jobs.submit(job.model_copy(update={"blocked": None}) if job.blocked else job, histogram)
    return jobs


def _parted(draws: Any, waiting: int) -> tuple[Any, Any, Any]:
    return draws[:, :waiting], draws[:, waiting : waiting + 1], draws[:, waiting + 1 :]
