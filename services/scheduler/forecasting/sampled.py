"""When a job starts, from running the policy ahead through futures that differ in how long jobs run."""

from typing import NamedTuple

import numpy as np

from shadowtime.services.scheduler.forecasting.calibrated import CalibratedStarts
from shadowtime.services.scheduler.forecasting.forecaster import Forecaster, RunAhead, SchedulerState, forecast_ends
from shadowtime.services.scheduler.forecasting.kernels import END, ROW, RUN_TIME, run_until_start
from shadowtime.services.scheduler.forecasting.pass_by_pass import PassByPass, easy_ahead, in_turn
from shadowtime.services.scheduler.limits import FUTURES
from shadowtime.services.scheduler.ordering import BY_PRIORITY
from shadowtime.services.scheduler.settings import Forecast
from shadowtime.services.scheduler.tables import UNKNOWN, JobTable, Queue
from shadowtime.shared.chance import uniform_table
from shadowtime.shared.distributions import sampled_times
from shadowtime.shared.kernels import Floats, FloatTable, Integers, IntegerTable, kernel

SAMPLES = 200
"""Futures of each forecast."""


@kernel
def starts_in_futures(
    now: int,
    free: int,
    target: int,
    waiting: IntegerTable,
    run_times: IntegerTable,
    running: IntegerTable,
    ends: IntegerTable,
    corrections: Integers,
    reserve: bool,
    most: int,
) -> Integers:
    """Return when the waiting job `target` starts in each future, in seconds, or what `run_until_start` says instead.

    A future that takes more than `most` steps ends the work: those from it on are all `TOO_FAR`. O(futures * cost of
    running ahead once).

    Parameters
    ----------
    waiting, running
        As `run_until_start` takes them.
    run_times, ends
        Of each future the run times of the waiting jobs and the ends of the running ones, shape (futures, jobs).
    """
    futures, waits, runs = len(run_times), waiting.shape[1], running.shape[1]
    starts = np.empty(futures, dtype=np.int64)
    queue, held = np.empty_like(waiting), np.empty((len(running), runs + waits), dtype=np.int64)
    for future in range(futures):
        queue[:] = waiting
        queue[RUN_TIME] = run_times[future]
        held[:, :runs] = running
        held[END, :runs] = ends[future]
        start, _, _, _, _ = run_until_start(now, free, target, queue, waits, held, runs, corrections, reserve, most)
        starts[future] = start
        if start < now:
            starts[future:] = start
            break

    return starts


class Drawn(NamedTuple):
    """Run times of the waiting jobs and ends of the running ones, shape (futures, jobs)."""

    run_times: IntegerTable
    ends: IntegerTable


class SampledFutures:
    """Futures of one policy: in each, every running and waiting job runs for a time drawn from its own distribution.

    A job's draw in a future is always the same, whatever is asked and whenever: answers differ by what they are about
    and not by chance. The policy decides by what it plans with, as in `PassByPass`; jobs run as drawn, at most for
    their requests, a running one for longer than it has. Nothing else arrives.

    Parameters
    ----------
    ahead
        What runs the policy ahead once.
    key
        Of the draws of chance.

    References
    ----------
    docs/algorithms.md#sampled-futures.
    """

    def __init__(self, ahead: PassByPass, key: int) -> None:
        self.ahead = ahead
        self.key = key

    def starts(self, state: SchedulerState, row: int) -> Integers:
        """Return when the job in this row of the queue starts in each future, in seconds, shape (SAMPLES,).

        It is `BEYOND` or later where never, and `TOO_FAR` where telling would take too many steps.
        """
        now, queue, running, free = state
        drawn = self.drawn(state)
        waiting, served = self.ahead.waiting(now, queue, running), self.ahead.policy.rows(now, queue)
        run_times = drawn.run_times
        if served is not None:
            waiting, row = in_turn(waiting, served), int(np.flatnonzero(served == row)[0])
            run_times = np.ascontiguousarray(run_times[:, served])
        target = int(waiting[ROW, row])
        runs, steps = self.ahead.running(now, running), FUTURES // SAMPLES
        return starts_in_futures(
            now, free, target, waiting, run_times, runs, drawn.ends, running.corrections, self.ahead.reserve, steps
        )

    def drawn(self, state: SchedulerState) -> Drawn:
        """Return how long each job runs in each future."""
        now, queue, running, _ = state
        nothing = np.zeros(len(queue))
        elapsed = now - running.start_time
        ends = forecast_ends(now, running) - running.start_time
        run_times = self._times(queue, queue, nothing, queue.predicted_time)
        return Drawn(run_times, running.start_time + self._times(queue, running, elapsed.astype(np.float64), ends))

    def _times(self, queue: Queue, jobs: JobTable, elapsed: Floats, otherwise: Integers) -> IntegerTable:
        """Return a run time of each job in each future."""
        masses: FloatTable = queue.histograms.masses[jobs.slot]
        masses[jobs.slot == UNKNOWN] = 0.0
        draws = uniform_table(self.key, jobs.job_number, SAMPLES)
        limits = jobs.requested_time.astype(np.float64)
        return sampled_times(masses, elapsed, limits, otherwise.astype(np.float64), draws)


def easy_futures(queue: str, key: int) -> SampledFutures | None:
    """Return what runs EASY ahead in an order of the queue through sampled futures; None in one that changes."""
    return SampledFutures(easy_ahead(queue), key) if queue in BY_PRIORITY else None


def forecaster_of(asked: Forecast, ahead: RunAhead, futures: SampledFutures | None) -> Forecaster | None:
    """Return what forecasts waits as the key `forecast` asks for it; None where it does not."""
    if not asked:
        return None
    calibrated = CalibratedStarts() if asked == "calibrated" else None
    return Forecaster(ahead, None if asked is True else futures, calibrated)
