"""The scheduler's own forecast of a job's wait: the policy is run ahead with predicted run times.

The forecast is made at the submission: after the ends of that instant and before its scheduling point
(docs/algorithms.md#order-of-events-at-an-instant). Jobs that are submitted later at the same instant are not known yet.
Forecasts consider only processors.

References: docs/algorithms.md#wait-forecasts (Smith 1999, section 3).
"""

from typing import Any, NamedTuple, Protocol

import numpy as np

from shadowtime.services.scheduler.forecasting.calibrated import LEVELS, CalibratedStarts, Within
from shadowtime.services.scheduler.forecasting.kernels import END, ORDER, ROW, TOO_FAR
from shadowtime.services.scheduler.tables import (
    REQUESTED,
    SIZE,
    START,
    Queue,
    Running,
    RunningJobs,
    RunningTable,
    WaitingTable,
    columns_of,
    expected_ends,
)
from shadowtime.services.scheduler.work_limits import MAX_AHEAD
from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.kernels import BEYOND, Integers, IntegerTable, kernel
from shadowtime.shared.messages import (
    Event,
    JobStarted,
    JobSubmitted,
    JobWithdrawn,
    SchedulingPoint,
    WaitForecast,
    construct_unchecked,
    moment,
)

NONE: Integers = np.array([], dtype=np.int64)


class SchedulerState(NamedTuple):
    """Everything that the scheduler knows when a job is submitted. `now` is in seconds."""

    now: int
    queue: Queue
    running: Running
    free: int
    """Number of free processors."""


class Valid(NamedTuple):
    """Validity of a result that was computed at `now`, as long as only submissions happen.

    The result holds at `now`. After `now`, it holds before `until`, the first forecast start or end, if no expected end
    has moved. The expected end of a job that has outlived its prediction moves as time passes.
    """

    now: int
    until: int
    ends: Integers | IntegerTable

    def at(self, now: int, ends: Integers | IntegerTable) -> bool:
        """Return whether the result still holds at time `now`, with these expected ends of the running jobs."""
        return now == self.now or (self.now < now < self.until and np.array_equal(ends, self.ends))


NEVER_VALID = Valid(0, 0, NONE)


def as_submitted(queue: Queue) -> Integers:
    """Return the rows of the queue, in order of submission."""
    return np.arange(len(queue))


@kernel
def forecast_ends(now: int, running: RunningTable) -> Integers:
    """Return the forecast end of each running job, in seconds. The planned times of the table are predictions.

    A job runs as predicted. A job that has outlived its prediction runs for twice its prediction. A job that has
    outlived this, too, runs to its request (docs/algorithms.md#wait-forecasts). O(jobs).

    >>> running = Running()
    >>> for number in (1, 2, 3):
    ...     running.add((number, 0, 1, 500, 500, 100, 100, -1, [60, 0, -200][number - 1]))
    >>> forecast_ends(120, running.packed(on_requests=False)).tolist()
    [160, 200, 300]
    """
    jobs = columns_of(running)
    predicted = jobs.predicted_times.copy()
    for job in range(running.jobs):
        if predicted[job] <= now - jobs.start_times[job]:
            predicted[job] *= 2

    adjusted, requested, uncorrected = jobs.adjusted_times, jobs.requested_times, jobs.corrections[:0]
    return expected_ends(now, RunningJobs(jobs.sizes, jobs.start_times, predicted, adjusted, requested, uncorrected))


class ProjectedTables(NamedTuple):
    """Tables of the jobs in the system, as `run_until_start` takes them.

    `waiting` has shape (8, waiting jobs). `running` has shape (6, running jobs + waiting jobs): there is space for jobs
    that start. `ends` has the forecast and the expected ends of the running jobs, shape (2, running jobs). `soonest` is
    the first forecast end, or `BEYOND`. Times are in seconds.
    """

    waiting: IntegerTable
    running: IntegerTable
    ends: IntegerTable
    soonest: int


@kernel
def projected(
    now: int, queue: WaitingTable, held: RunningTable, order: Integers, on_requests: bool
) -> tuple[IntegerTable, IntegerTable, IntegerTable, int]:
    """Return the fields of `ProjectedTables`. O(jobs).

    Parameters
    ----------
    now
        The time in seconds.
    queue, held
        Tables of waiting and running jobs, whose planned times are predictions.
    order
        Rank of each waiting job as a candidate.
    on_requests
        Whether the policy plans with requests instead of predictions.
    """
    waits, runs = queue.jobs, held.jobs
    candidate = REQUESTED if on_requests else queue.planned
    running_as = REQUESTED if on_requests else held.planned

    waiting = np.empty((ROW + 1, waits), dtype=np.int64)
    for row, column in enumerate((SIZE, running_as, held.adjusted, REQUESTED, queue.planned, candidate)):
        waiting[row] = queue.table[column, :waits]
    for job in range(waits):
        waiting[ORDER, job], waiting[ROW, job] = order[job], job

    planned = columns_of(RunningTable(held.table, runs, running_as, held.adjusted, held.corrections))
    ends = np.empty((2, runs), dtype=np.int64)
    ends[0], ends[1] = forecast_ends(now, held), expected_ends(now, planned)
    running = np.zeros((END + 1, runs + waits), dtype=np.int64)
    for row, column in enumerate((SIZE, running_as, held.adjusted, REQUESTED, START)):
        running[row, :runs] = held.table[column, :runs]
    running[END, :runs] = ends[0]

    soonest = BEYOND
    for end in ends[0]:
        soonest = min(soonest, end)
    return waiting, running, ends, soonest


class RunAhead(Protocol):
    """Method to run one policy ahead."""

    def start(self, state: SchedulerState, row: int) -> int:
        """Return the start of the job in this row of the queue, in seconds.

        The result is `BEYOND` or later if the job never starts. It is `TOO_FAR` if the forecast takes more than
        `work_limits.AHEAD` steps.
        """
        ...

    def forget(self) -> None:
        """Drop cached results: a job has started or ended, or the machine has changed."""
        return  # not abstract


class Futures(Protocol):
    """Method to run one policy ahead through many futures."""

    def starts(self, state: SchedulerState, row: int) -> Integers:
        """Return the start of the job in this row of the queue in each future, shape (futures,). See `RunAhead`."""
        ...


class Forecaster:
    """Forecaster of waits under one policy. A forecast depends on the state alone, unless quantiles are calibrated.

    Parameters
    ----------
    ahead
        Method to run the policy ahead once, with predicted run times.
    futures
        Method to run the policy ahead through many futures; None if no quantiles are wanted.
    calibrated
        Correction of the quantiles by earlier outcomes; None to report them uncorrected.
    """

    def __init__(
        self, ahead: RunAhead, futures: Futures | None = None, calibrated: CalibratedStarts | None = None
    ) -> None:
        self.ahead = ahead
        self.futures = futures
        self.calibrated = calibrated

    def forecast(self, now: int, queue: Queue, running: Running, free: int, job_number: int) -> WaitForecast:
        """Return the forecast wait of a job that has just been queued, as if no other job were submitted later.

        There is no forecast, but a reason, while more than `MAX_AHEAD` jobs wait, or if `why_none` has a reason.
        """
        if len(queue) > MAX_AHEAD:
            return WaitForecast(reason=why_none(now, TOO_FAR))
        row = len(queue) - 1
        if queue.job_number[row] != job_number:  # a job with an earlier submission that has just become eligible
            row = int(np.flatnonzero(queue.job_number == job_number)[0])
        state = SchedulerState(now, queue, running, free)
        start = self.ahead.start(state, row)
        if (reason := why_none(now, start)) is not None:
            return WaitForecast(reason=reason)
        within = None if self.futures is None else starts_within(now, self.futures.starts(state, row))
        if within is not None and self.calibrated is not None:
            within = self.calibrated.tell(job_number, now, within)
        return construct_unchecked(WaitForecast, wait=start - now, starts_within=within)

    def forget(self) -> None:
        """Drop cached results: run times are predicted anew."""
        self.ahead.forget()

    def observe(self, event: Event) -> None:
        """Drop cached results, unless the event is a submission or a scheduling point. Learn from a start."""
        kind = type(event)
        if kind is not JobSubmitted and kind is not SchedulingPoint:
            self.ahead.forget()
        if self.calibrated is not None:
            if isinstance(event, JobStarted):
                self.calibrated.start(event.job_number, moment(event))
            elif isinstance(event, JobWithdrawn):
                self.calibrated.withdraw(event.job_number)

    def snapshot(self) -> dict[str, Any] | None:
        """Return the state of the calibration as plain values; None without calibration."""
        return None if self.calibrated is None else self.calibrated.snapshot()

    def restore(self, state: dict[str, Any] | None) -> None:
        """Restore the state that `snapshot` returned."""
        if self.calibrated is not None and state is not None:
            self.calibrated.restore(state)


def why_none(now: int, start: int) -> str | None:
    """Return the reason why a computed start is no valid forecast; None if it is valid.

    >>> why_none(0, TOO_FAR), why_none(0, 60)
    ('too many jobs run and wait ahead of it', None)
    """
    if start == TOO_FAR:
        return "too many jobs run and wait ahead of it"
    if start >= BEYOND:
        return "the machine is now too small for it or for a job ahead of it"
    return "it waits for a job without a request" if start - now > MAX_DURATION else None


def starts_within(now: int, starts: Integers) -> Within:
    """Return each of `LEVELS` with the seconds within which the job has started in that share of its futures.

    The result is empty if the start in any future is no valid forecast (`why_none`).

    >>> starts_within(100, np.arange(101, 301))[7]
    (0.5, 100)
    """
    if any(why_none(now, instant) for instant in (int(starts.min()), int(starts.max()))):
        return ()
    rising = np.sort(starts) - now
    return tuple((level, int(rising[int(np.ceil(round(level * len(rising), 6))) - 1])) for level in LEVELS)
