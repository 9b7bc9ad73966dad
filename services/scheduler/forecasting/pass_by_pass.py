"""Forecasts pass by pass: a backfilling policy is run ahead in time."""

from typing import Protocol

import numpy as np

from shadowtime.services.scheduler.forecasting.by_reservation import Placed
from shadowtime.services.scheduler.forecasting.forecaster import (
    NEVER_VALID,
    NONE,
    ProjectedTables,
    RunAhead,
    SchedulerState,
    Valid,
    projected,
)
from shadowtime.services.scheduler.forecasting.kernels import (
    ORDER,
    PLANNED,
    PREDICTED,
    ROW,
    SIZE,
    TOO_FAR,
    ProjectedQueue,
)
from shadowtime.services.scheduler.ordering import OrderedSettings, Ordering
from shadowtime.services.scheduler.tables import Queue
from shadowtime.shared.kernels import BEYOND, Integers, IntegerTable


class Backfilling(Protocol):
    """Interface of a policy that is run ahead pass by pass."""

    on_requests: bool
    """Whether the policy plans with requests instead of predictions."""

    def order(self, now: int, queue: Queue) -> Integers:
        """Return the rank of each waiting job as a candidate; the smallest is tried first."""
        ...

    def rows(self, now: int, queue: Queue) -> Integers | None:
        """Return the rows of the queue in the order in which they are served; None stands for order of submission."""
        ...


class PassByPass(RunAhead):
    """Forecasts for a backfilling policy, run ahead one pass after another. O(passes * cost of a pass).

    Suppose that a job is tried after all others, and is no smaller and no shorter than the previously submitted job.
    The job then cannot start before the previous one. If only submissions have happened since, its forecast continues
    from the start of the previous job.

    Parameters
    ----------
    reserve
        Whether every job gets a reservation, instead of only the first blocked job.
    steady
        Whether the order of candidates stays the same as time passes.
    """

    def __init__(self, policy: Backfilling, *, reserve: bool = False, steady: bool = True) -> None:
        self.policy = policy
        self.reserve = reserve
        self.steady = steady
        self.ahead: ProjectedQueue | None = None
        self.last: Integers = NONE
        """The previously submitted job, as a column of the table of waiting jobs."""
        self.valid = NEVER_VALID

    def start(self, state: SchedulerState, row: int) -> int:
        """Return the start of the job in this row of the queue, as `RunAhead.start`."""
        now, queue, running, free = state
        if len(queue) == 1 and queue.least <= free:  # the pass of this instant starts it
            self.ahead = None
            return now
        waiting, runs, ends, soonest = self.tables(state)
        served = self.policy.rows(now, queue)
        if served is not None:
            waiting, row = in_turn(waiting, served), int(np.flatnonzero(served == row)[0])
        job = waiting[:, row].copy()
        if self.ahead is None or not self.valid.at(now, ends) or not self.behind_last(job, waiting):
            self.valid = Valid(now, soonest, ends)
            self.ahead = ProjectedQueue(now, free, waiting, runs, running.corrections, reserve=self.reserve)
        else:
            self.ahead.add(job)

        start = self.ahead.start_of(row)
        self.last, self.valid = job, Valid(now, min(self.valid.until, self.ahead.first), ends)
        if start in (BEYOND, TOO_FAR):
            self.ahead = None
        return start

    def behind_last(self, job: Integers, waiting: IntegerTable) -> bool:
        """Return whether the simulation may continue from the start of the previously submitted job.

        The new job must not be able to start before the previous one. Jobs must also keep their planned times once they
        run. Otherwise, the result would differ from a simulation that has the new job from the beginning.
        """
        if not self.steady or (waiting[PREDICTED] != waiting[PLANNED]).any():
            return False
        follows = job[ROW] == self.last[ROW] + 1 == waiting.shape[1] - 1 and job[ORDER] == waiting[ORDER].max()
        return bool(follows and job[SIZE] >= self.last[SIZE] and job[PLANNED] >= self.last[PLANNED])

    def tables(self, state: SchedulerState) -> ProjectedTables:
        """Return the tables of waiting and running jobs for `run_until_start`."""
        now, queue, running, _ = state
        order = self.policy.order(now, queue)
        tables = queue.packed(on_requests=False), running.packed(on_requests=False)
        return ProjectedTables._make(projected(now, *tables, order, self.policy.on_requests))

    def forget(self) -> None:
        """Drop the projected queue. The next forecast starts from the current state."""
        self.ahead = None


class EasyInOrder:
    """EASY with predicted run times. Candidates are tried in the order of the queue."""

    on_requests = False

    def __init__(self, ordering: Ordering) -> None:
        self.ordering = ordering

    def order(self, now: int, queue: Queue) -> Integers:
        """Return the rank of each waiting job as a candidate."""
        return np.arange(len(queue)) if self.ordering.as_submitted else self.ordering.ranks(now, queue)

    def rows(self, now: int, queue: Queue) -> Integers | None:
        """Return the rows of the queue in the order in which they are served; None stands for order of submission."""
        return None if self.ordering.as_submitted else self.ordering.rows(now, queue)


def easy_ahead(queue: str) -> PassByPass:
    """Return the method to run EASY ahead with this order of the queue."""
    return PassByPass(EasyInOrder(Ordering(OrderedSettings(queue=queue))))


def in_turn(waiting: IntegerTable, served: Integers) -> IntegerTable:
    """Return the table of waiting jobs in the order of service, as if the jobs had been submitted in this order."""
    ordered = np.ascontiguousarray(waiting[:, served])
    ordered[ROW] = np.arange(len(served))
    return ordered


class Reserving(RunAhead):
    """Forecasts for a policy under which every job has a reservation.

    If all jobs are forecast to run as planned, they start at their reservations, which `placed` finds. Otherwise,
    `pass_by_pass` finds the start.
    """

    def __init__(self, placed: Placed, pass_by_pass: PassByPass) -> None:
        self.on_requests = pass_by_pass.policy.on_requests
        self.placed = placed
        self.pass_by_pass = pass_by_pass

    def start(self, state: SchedulerState, row: int) -> int:
        """Return the start of the job in this row of the queue, as `RunAhead.start`."""
        now, queue, running, _ = state
        as_planned = (
            not self.on_requests
            and np.array_equal(running.once_started(queue)[0], queue.predicted_time)
            and bool((running.predicted_time > now - running.start_time).all())  # none has outlived its prediction
        )
        return (self.placed if as_planned else self.pass_by_pass).start(state, row)

    def forget(self) -> None:
        """Drop the cached results of both methods."""
        self.placed.forget()
        self.pass_by_pass.forget()
