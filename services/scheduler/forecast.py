"""The scheduler's own forecast: how long a job will wait, from running the policy ahead with predicted run times.

It is made when the submission is told: after the ends of that instant and before its scheduling point
(docs/algorithms.md#order-of-events-at-an-instant), so that jobs which the same instant brings later are not known yet.

References
----------
docs/algorithms.md#wait-forecasts (Smith 1999, section 3).
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from shadowtime.services.scheduler.easy_pass import BEYOND
from shadowtime.services.scheduler.expected_end import RunningJobs, expected_ends
from shadowtime.services.scheduler.job_table import Queue, Running
from shadowtime.services.scheduler.reservations import Reservations
from shadowtime.services.scheduler.run_ahead import (
    ADJUSTED,
    END,
    ORDER,
    PLANNED,
    PREDICTED,
    REQUESTED,
    ROW,
    SIZE,
    START,
    TOO_FAR,
    Ahead,
)
from shadowtime.shared.arrays import Integers, IntegerTable
from shadowtime.shared.events import Event, JobSubmitted, SchedulingPoint
from shadowtime.shared.message import MAX_DURATION
from shadowtime.shared.predictions import WaitForecast

NONE: Integers = np.array([], dtype=np.int64)


class State(NamedTuple):
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

    def start(self, state: State, row: int) -> int:
        """Return when the job in this row of the queue starts, in seconds.

        It is `BEYOND` or later if never, `TOO_FAR` if telling would take more than `limits.AHEAD` steps.
        """
        ...

    def forget(self) -> None:
        """Let go of what was worked out: a job has started or ended, or the machine has changed."""
        return  # not abstract


class Placed(RunAhead):
    """A policy under which jobs are in the way only of those that come later in its order.

    Each is put behind those before it. The reservations serve the next submission too, unless it goes before one of
    them or anything but a submission has happened: then it costs O(running + reservations) beside the order, else
    O(queue * reservations).

    Parameters
    ----------
    order
        The rows of the queue as the policy serves them.
    in_turn
        Whether no job starts before the one before it.
    """

    def __init__(self, order: Callable[[Queue], Integers], *, in_turn: bool) -> None:
        self.order = order
        self.in_turn = in_turn
        self.reservations: Reservations | None = None
        self.placed = 0
        """Jobs that have their reservations: the first in order."""
        self.valid = NEVER_VALID

    def start(self, state: State, row: int) -> int:
        """Return the start of a job, beside or behind those before it."""
        now, queue, running, free = state
        rows = self.order(queue)
        rank = int(np.flatnonzero(rows == row)[0])
        ends = forecast_ends(now, running)
        if self.reservations is None or rank < self.placed or not self.valid.at(now, ends):
            self.reservations = Reservations(now, free, running.processors, ends, in_turn=self.in_turn)
            self.placed, self.valid = 0, Valid(now, ends.min(initial=BEYOND), ends)
        self.reservations.advance(now)
        added = rows[self.placed : rank + 1]
        start = self.reservations.add(queue.processors[added], queue.predicted_time[added])
        self.placed, self.valid = rank + 1, Valid(now, min(self.valid.until, self.reservations.soonest), ends)
        if start == TOO_FAR:
            self.reservations = None
        return start

    def forget(self) -> None:
        """Plan anew next time."""
        self.reservations = None


class Backfilling(Protocol):
    """What running a policy ahead pass by pass takes of it."""

    on_requests: bool
    """Whether it plans by requests in the place of predictions."""

    def order(self, now: int, queue: Queue) -> Integers:
        """Return the rank of each waiting job as a candidate."""
        ...


class PassByPass(RunAhead):
    """A policy that backfills, run ahead one pass after another: O(passes * cost of a pass).

    A job that is tried after all others, and is no smaller and no shorter than the one submitted before it, cannot
    start before that one: it is run ahead from there on, unless anything but a submission has happened.

    Parameters
    ----------
    reserve
        Whether every job reserves its place, not the first blocked one alone.
    steady
        Whether candidates never change places as time passes.
    """

    def __init__(self, policy: Backfilling, *, reserve: bool = False, steady: bool = True) -> None:
        self.policy = policy
        self.reserve = reserve
        self.steady = steady
        self.ahead: Ahead | None = None
        self.last: Integers = NONE
        """The job submitted before, as a column of the table of waiting jobs."""
        self.valid = NEVER_VALID

    def start(self, state: State, row: int) -> int:
        """Return the start of a job."""
        now, queue, running, free = state
        waiting = self.waiting(now, queue, running)
        job = waiting[:, row].copy()
        runs, corrections = self.running(now, running), running.corrections
        jobs = RunningJobs(runs[SIZE], runs[START], runs[PREDICTED], runs[ADJUSTED], runs[REQUESTED], corrections)
        ends = np.stack((runs[END], expected_ends(now, jobs)))
        if self.ahead is None or not self.valid.at(now, ends) or not self.behind_last(job, waiting):
            self.valid = Valid(now, runs[END].min(initial=BEYOND), ends)
            self.ahead = Ahead(now, free, waiting, runs, corrections, reserve=self.reserve)
        else:
            self.ahead.add(job)
        start = self.ahead.start_of(row)
        self.last, self.valid = job, Valid(now, min(self.valid.until, self.ahead.first), ends)
        if start in (BEYOND, TOO_FAR):
            self.ahead = None
        return start

    def behind_last(self, job: Integers, waiting: IntegerTable) -> bool:
        """Return whether a job cannot start before the one submitted before it."""
        if not self.steady:
            return False
        follows = job[ROW] == self.last[ROW] + 1 == waiting.shape[1] - 1 and job[ORDER] == waiting[ORDER].max()
        return bool(follows and job[SIZE] >= self.last[SIZE] and job[PLANNED] >= self.last[PLANNED])

    def waiting(self, now: int, queue: Queue, running: Running) -> IntegerTable:
        """Return the waiting jobs as `run_until_start` takes them."""
        predicted, adjusted, requested = running.once_started(queue)
        on_requests, rows = self.policy.on_requests, np.arange(len(queue))
        return np.stack(
            (
                queue.processors,
                requested if on_requests else predicted,
                adjusted,
                requested,
                queue.predicted_time,
                requested if on_requests else queue.predicted_time,
                self.policy.order(now, queue),
                rows,
            )
        )

    def running(self, now: int, running: Running) -> IntegerTable:
        """Return the running jobs as `run_until_start` takes them."""
        predicted = running.requested_time if self.policy.on_requests else running.predicted_time
        times = predicted, running.adjusted_time, running.requested_time
        return np.stack((running.processors, *times, running.start_time, forecast_ends(now, running)))

    def forget(self) -> None:
        """Run ahead from the beginning next time."""
        self.ahead = None


class Reserving(RunAhead):
    """A policy under which every job has a reservation, which comes true where jobs are forecast to run as planned."""

    def __init__(self, placed: Placed, pass_by_pass: PassByPass) -> None:
        self.on_requests = pass_by_pass.policy.on_requests
        self.placed = placed
        self.pass_by_pass = pass_by_pass

    def start(self, state: State, row: int) -> int:
        """Return the start of a job."""
        now, queue, running, _ = state
        as_planned = (
            not self.on_requests
            and np.array_equal(running.once_started(queue)[0], queue.predicted_time)
            and bool((running.predicted_time > now - running.start_time).all())  # none has outlived its prediction
        )
        return (self.placed if as_planned else self.pass_by_pass).start(state, row)

    def forget(self) -> None:
        """Start anew next time."""
        self.placed.forget()
        self.pass_by_pass.forget()


class Forecaster:
    """Forecasts of the waits of one policy. They follow from the state alone; what is kept only saves work."""

    def __init__(self, ahead: RunAhead) -> None:
        self.ahead = ahead

    def forecast(self, now: int, queue: Queue, running: Running, free: int, job_number: int) -> WaitForecast:
        """Return how long a job will wait that has just been put in the queue, as if none came after it."""
        row = int(np.flatnonzero(queue.job_number == job_number)[-1])
        start = self.ahead.start(State(now, queue, running, free), row)
        if start == TOO_FAR:
            return WaitForecast(reason="too many jobs run and wait ahead of it")
        if start >= BEYOND:
            return WaitForecast(reason="the machine is too small just now, for it or for a job ahead")
        if start - now > MAX_DURATION:
            return WaitForecast(reason="it waits for a job without a request")
        return WaitForecast(wait=start - now)

    def observe(self, event: Event) -> None:
        """Let go of what was worked out, unless time alone has passed or a job has come."""
        if not isinstance(event, JobSubmitted | SchedulingPoint):
            self.ahead.forget()
