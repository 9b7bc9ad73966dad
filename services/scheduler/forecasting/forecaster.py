"""The scheduler's own forecast: how long a job will wait, from running the policy ahead with predicted run times.

It is made when the submission is told: after the ends of that instant and before its scheduling point
(docs/algorithms.md#order-of-events-at-an-instant), so that jobs which the same instant brings later are not known yet;
on processors alone.

References
----------
docs/algorithms.md#wait-forecasts (Smith 1999, section 3).
"""

from typing import Any, NamedTuple, Protocol

import numpy as np

from shadowtime.services.scheduler.forecasting.calibrated import LEVELS, CalibratedStarts, Within
from shadowtime.services.scheduler.forecasting.kernels import TOO_FAR
from shadowtime.services.scheduler.tables import Queue, Running, expected_ends
from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.kernels import BEYOND, Integers, IntegerTable
from shadowtime.shared.messages import (
    Event,
    JobStarted,
    JobSubmitted,
    JobWithdrawn,
    SchedulingPoint,
    WaitForecast,
    moment,
)

NONE: Integers = np.array([], dtype=np.int64)


class SchedulerState(NamedTuple):
    """Everything that the scheduler knows when a job is submitted."""

    now: int
    queue: Queue
    running: Running
    free: int


class Valid(NamedTuple):
    """For how long what was worked out at `now` is true, if nothing but submissions happens.

    At that instant; and until the first job is forecast to start or to end, as long as every running job is still
    expected to end when it was: time alone moves the ends of those that have outlived what was predicted.
    """

    now: int
    until: int
    ends: Integers | IntegerTable

    def at(self, now: int, ends: Integers | IntegerTable) -> bool:
        """Return whether it is true at a later time, at which running jobs are expected to end at `ends`."""
        return now == self.now or (self.now < now < self.until and np.array_equal(ends, self.ends))


NEVER_VALID = Valid(0, 0, NONE)


def as_submitted(queue: Queue) -> Integers:
    """Return the rows of the queue."""
    return np.arange(len(queue))


def forecast_ends(now: int, running: Running) -> Integers:
    """Return when each running job is forecast to end, in seconds.

    A job runs as predicted; if it has outlived that, for twice the time; then to its request
    (docs/algorithms.md#wait-forecasts).

    >>> running = Running()
    >>> for number in (1, 2, 3):
    ...     running.add((number, 0, 1, 500, 500, 100, 100, -1, [60, 0, -200][number - 1]))
    >>> forecast_ends(120, running).tolist()
    [160, 200, 300]
    """
    predicted = running.predicted_time
    predicted = np.where(predicted > now - running.start_time, predicted, 2 * predicted)
    jobs = running.jobs(on_requests=False)
    return expected_ends(now, jobs._replace(predicted_times=predicted, corrections=NONE))


class RunAhead(Protocol):
    """How one policy is run ahead."""

    def start(self, state: SchedulerState, row: int) -> int:
        """Return when the job in this row of the queue starts, in seconds.

        It is `BEYOND` or later if never, `TOO_FAR` if telling would take more than `limits.AHEAD` steps.
        """
        ...

    def forget(self) -> None:
        """Let go of what was worked out: a job has started or ended, or the machine has changed."""
        return  # not abstract


class Futures(Protocol):
    """How one policy is run ahead through many futures."""

    def starts(self, state: SchedulerState, row: int) -> Integers:
        """Return when the job in this row of the queue starts in each future; as `RunAhead.start`."""
        ...


class Forecaster:
    """Forecasts of the waits of one policy. They follow from the state alone, unless they are calibrated.

    Parameters
    ----------
    ahead
        What runs the policy ahead once, on what was predicted.
    futures
        What runs it ahead through many futures; None where quantiles are not asked for.
    calibrated
        What moves these by what came of earlier ones; None where they are told as they are.
    """

    def __init__(
        self, ahead: RunAhead, futures: Futures | None = None, calibrated: CalibratedStarts | None = None
    ) -> None:
        self.ahead = ahead
        self.futures = futures
        self.calibrated = calibrated

    def forecast(self, now: int, queue: Queue, running: Running, free: int, job_number: int) -> WaitForecast:
        """Return how long a job will wait that has just been put in the queue, as if none came after it."""
        row = int(np.flatnonzero(queue.job_number == job_number)[-1])
        state = SchedulerState(now, queue, running, free)
        start = self.ahead.start(state, row)
        if (reason := why_none(now, start)) is not None:
            return WaitForecast(reason=reason)
        within = None if self.futures is None else starts_within(now, self.futures.starts(state, row))
        if within is not None and self.calibrated is not None:
            within = self.calibrated.tell(job_number, now, within)
        return WaitForecast(wait=start - now, starts_within=within)

    def observe(self, event: Event) -> None:
        """Let go of what was worked out, unless time alone has passed or a job has come; learn from a start."""
        if not isinstance(event, JobSubmitted | SchedulingPoint):
            self.ahead.forget()
        if self.calibrated is not None:
            if isinstance(event, JobStarted):
                self.calibrated.start(event.job_number, moment(event))
            elif isinstance(event, JobWithdrawn):
                self.calibrated.withdraw(event.job_number)

    def snapshot(self) -> dict[str, Any] | None:
        """Return what was learned as plain values; None where nothing is."""
        return None if self.calibrated is None else self.calibrated.snapshot()

    def restore(self, state: dict[str, Any] | None) -> None:
        """Take on what `snapshot` returned."""
        if self.calibrated is not None and state is not None:
            self.calibrated.restore(state)


def why_none(now: int, start: int) -> str | None:
    """Return why there is no telling when a job starts that would start then; None where there is.

    >>> why_none(0, TOO_FAR), why_none(0, 60)
    ('too many jobs run and wait ahead of it', None)
    """
    if start == TOO_FAR:
        return "too many jobs run and wait ahead of it"
    if start >= BEYOND:
        return "the machine is too small just now, for it or for a job ahead"
    return "it waits for a job without a request" if start - now > MAX_DURATION else None


def starts_within(now: int, starts: Integers) -> Within:
    """Return for each of `LEVELS` the seconds within which a job has started in such a share of its futures.

    It is empty where there is no telling of some future.

    >>> starts_within(100, np.arange(101, 301))[7]
    (0.5, 100)
    """
    if any(why_none(now, instant) for instant in (int(starts.min()), int(starts.max()))):
        return ()
    rising = np.sort(starts) - now
    return tuple((level, int(rising[int(np.ceil(round(level * len(rising), 6))) - 1])) for level in LEVELS)
