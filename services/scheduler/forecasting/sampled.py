"""Forecasts by sampled futures: the policy is run ahead many times with run times drawn at random."""

from typing import NamedTuple

import numpy as np

from shadowtime.services.scheduler.forecasting.calibrated import CalibratedStarts
from shadowtime.services.scheduler.forecasting.forecaster import Forecaster, RunAhead, SchedulerState, forecast_ends
from shadowtime.services.scheduler.forecasting.kernels import END, ROW, RUN_TIME, run_until_start
from shadowtime.services.scheduler.forecasting.pass_by_pass import PassByPass, easy_ahead, in_turn
from shadowtime.services.scheduler.ordering import BY_PRIORITY
from shadowtime.services.scheduler.settings import Forecast
from shadowtime.services.scheduler.tables import UNKNOWN, JobTable, Queue
from shadowtime.services.scheduler.work_limits import FUTURES
from shadowtime.shared.chance import uniform_table
from shadowtime.shared.distributions import sampled_times
from shadowtime.shared.kernels import Floats, FloatTable, Integers, IntegerTable, kernel

SAMPLES = 200
"""Number of futures of each forecast."""


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
    """Return the start of the waiting job `target` in each future, in seconds, as `run_until_start`.

    The first future that takes more than `most` steps ends the work. It and all later futures are `TOO_FAR`.
    O(futures * cost of running ahead once).

    Parameters
    ----------
    now, free, target, waiting, running, corrections, reserve
        As for `run_until_start`.
    run_times, ends
        Run times of the waiting jobs and ends of the running jobs in each future, shape (futures, jobs).
    most
        Maximum number of steps of one future.
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
    """Run times of the waiting jobs, and ends of the running jobs, shape (futures, jobs)."""

    run_times: IntegerTable
    ends: IntegerTable


class SampledFutures:
    """Futures of one policy: in each, every running and waiting job runs for a time drawn from its own distribution.

    The random number of a job in a future depends only on the key, the job and the future. So two forecasts differ only
    if their jobs or states differ. The policy plans as in `PassByPass`. Jobs run for their drawn times, at most for
    their requests. The drawn time of a running job exceeds its elapsed time. No other job arrives.

    Parameters
    ----------
    ahead
        Method to run the policy ahead once.
    key
        Key of the seeded random numbers.

    References: docs/algorithms.md#sampled-futures.
    """

    def __init__(self, ahead: PassByPass, key: int) -> None:
        self.ahead = ahead
        self.key = key

    def starts(self, state: SchedulerState, row: int) -> Integers:
        """Return the start of the job in this row in each future, shape (SAMPLES,), each as in `RunAhead.start`."""
        now, queue, running, free = state
        drawn, tables, served = self.drawn(state), self.ahead.tables(state), self.ahead.policy.rows(now, queue)
        waiting = tables.waiting
        run_times = drawn.run_times
        if served is not None:
            waiting, row = in_turn(waiting, served), int(np.flatnonzero(served == row)[0])
            run_times = np.ascontiguousarray(run_times[:, served])
        target = int(waiting[ROW, row])
        runs, steps = np.ascontiguousarray(tables.running[:, : len(running)]), FUTURES // SAMPLES
        return starts_in_futures(
            now, free, target, waiting, run_times, runs, drawn.ends, running.corrections, self.ahead.reserve, steps
        )

    def drawn(self, state: SchedulerState) -> Drawn:
        """Return the run times of waiting jobs and the ends of running jobs in each future."""
        now, queue, running, _ = state
        nothing = np.zeros(len(queue))
        elapsed = now - running.start_time
        ends = forecast_ends(now, running.packed(on_requests=False)) - running.start_time
        run_times = self._times(queue, queue, nothing, queue.predicted_time)
        return Drawn(run_times, running.start_time + self._times(queue, running, elapsed.astype(np.float64), ends))

    def _times(self, queue: Queue, jobs: JobTable, elapsed: Floats, otherwise: Integers) -> IntegerTable:
        """Return a run time of each job in each future.

        The run time is `otherwise` if the job has no distribution or has outlived it.
        """
        masses: FloatTable = queue.histograms.masses[jobs.slot]
        masses[jobs.slot == UNKNOWN] = 0.0
        draws = uniform_table(self.key, jobs.job_number, SAMPLES)
        limits = jobs.requested_time.astype(np.float64)
        return sampled_times(masses, elapsed, limits, otherwise.astype(np.float64), draws)


def easy_futures(queue: str, key: int) -> SampledFutures | None:
    """Return the sampled futures of EASY with this order of the queue; None unless it is one of `BY_PRIORITY`."""
    return SampledFutures(easy_ahead(queue), key) if queue in BY_PRIORITY else None


def forecaster_of(asked: Forecast, ahead: RunAhead, futures: SampledFutures | None) -> Forecaster | None:
    """Return the forecaster that the key `forecast` asks for; None if it asks for none."""
    if not asked:
        return None
    calibrated = CalibratedStarts() if asked == "calibrated" else None
    return Forecaster(ahead, None if asked is True else futures, calibrated)
