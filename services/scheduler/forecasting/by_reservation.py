"""Forecasts by reservation: jobs get reservations one after another, in the order of the policy."""

from collections.abc import Callable

import numpy as np

from shadowtime.services.scheduler.forecasting.forecaster import (
    NEVER_VALID,
    RunAhead,
    SchedulerState,
    Valid,
    forecast_ends,
)
from shadowtime.services.scheduler.forecasting.kernels import TOO_FAR
from shadowtime.services.scheduler.kernels import EACH_STEP, FOREVER, begin, earliest, has_room_at, take
from shadowtime.services.scheduler.tables import Queue
from shadowtime.services.scheduler.work_limits import AHEAD
from shadowtime.shared.kernels import BEYOND, Integers, IntegerTable, kernel

# Reservations of waiting jobs if no other job arrives. A job is added behind the others without a new plan.


@kernel
def place(
    times: Integers, free: IntegerTable, steps: int, sizes: IntegerTable, run_times: Integers, in_turn: bool, most: int
) -> tuple[int, int, int]:
    """Reserve the earliest start for each job. Return the profile's steps, the last job's start, the earliest start.

    The start of the last job is `FOREVER` if the job never fits. It is `TOO_FAR` if planning takes more than `most`
    steps over the profile. O(jobs * steps).

    Parameters
    ----------
    times, free, steps
        The profile, with space for two more steps for each job. With `in_turn`, only the part after the last start is
        kept. Once a job can never start, no step is kept.
    sizes, run_times
        Size and run time in seconds of each job.
    in_turn
        Whether no job starts before its predecessor. If not, each job starts as soon as it fits.

    >>> times, free = np.array([0, 50, 100, 0, 0, 0, 0]), np.array([[0, 4, 10, 0, 0, 0, 0]])
    >>> place(times.copy(), free.copy(), 3, np.array([[5], [4]]), np.array([200, 30]), True, 1000)[1]
    100
    >>> place(times.copy(), free.copy(), 3, np.array([[5], [4]]), np.array([200, 30]), False, 1000)[1]
    50
    """
    start, soonest = FOREVER, FOREVER
    for job in range(len(sizes)):
        most -= EACH_STEP * steps
        if most < 0:
            return steps, TOO_FAR, soonest
        if not in_turn:
            start = earliest(times, free, steps, sizes[job], run_times[job], FOREVER)
        else:  # after the last start there are only ends, so free amounts never decrease
            first = 0
            while first < steps and not has_room_at(free, first, sizes[job]):
                first += 1
            if first == steps:
                return 0, FOREVER, soonest
            start = times[first]
            steps -= first
            if first > 0:
                for step in range(steps):
                    times[step] = times[step + first]
                    for resource in range(len(free)):
                        free[resource, step] = free[resource, step + first]

        if start < FOREVER:
            steps = take(times, free, steps, start, start + run_times[job], sizes[job])
            soonest = min(soonest, start)

    return steps, start, soonest


class Reservations:
    """A plan of waiting jobs that considers only processors. New jobs are placed behind all planned jobs.

    Parameters
    ----------
    now, idle, processors, ends
        The time in seconds, the idle processors, and the processors and expected end of each running job.
    in_turn
        Whether no job starts before its predecessor.

    >>> reservations = Reservations(0, 0, np.array([6, 4]), np.array([100, 50]), in_turn=True)
    >>> reservations.add(np.array([5]), np.array([200])), reservations.add(np.array([4]), np.array([30]))
    (100, 100)
    """

    def __init__(self, now: int, idle: int, processors: Integers, ends: Integers, *, in_turn: bool) -> None:
        self.in_turn = in_turn
        self.times = np.empty(len(ends) + 2, dtype=np.int64)
        self.free = np.empty((1, len(self.times)), dtype=np.int64)
        self.soonest = FOREVER
        """Earliest start of any planned job, in seconds."""
        self.steps = begin(self.times, self.free, now, np.array([idle]), processors.reshape(-1, 1), ends)

    def add(self, processors: Integers, run_times: Integers) -> int:
        """Add jobs behind all planned jobs. Return the last one's start in seconds; `FOREVER` if it never starts.

        If the result is `TOO_FAR`, the plan is incomplete and must not be used again.
        """
        need = self.steps + 2 * len(processors)
        if need > len(self.times):
            room = np.empty(need, dtype=np.int64)  # also for later jobs, which are added one by one
            self.times, self.free = np.concatenate((self.times, room)), np.hstack((self.free, room[np.newaxis]))
        self.steps, start, soonest = place(
            self.times, self.free, self.steps, processors.reshape(-1, 1), run_times, self.in_turn, AHEAD
        )
        self.soonest = min(self.soonest, soonest)
        return start

    def advance(self, now: int) -> None:
        """Move the beginning of the profile to `now`. No job may have started or ended in between."""
        if self.steps:
            self.times[0] = max(self.times[0], now)


class Placed(RunAhead):
    """Forecasts for a policy under which a job can only delay jobs behind it in the policy's order.

    Each job is placed behind its predecessors. The reservations are kept for the next submission, which then costs
    O(running + reservations) beside the order. Reservations are planned anew, in O(queue * reservations), in three
    cases: the new job is served before a job with a reservation, anything but a submission has happened, or the
    reservations are no longer `Valid`.

    Parameters
    ----------
    order
        Function that returns the rows of the queue in the order in which the policy serves them.
    in_turn
        Whether no job starts before its predecessor.
    """

    def __init__(self, order: Callable[[Queue], Integers], *, in_turn: bool) -> None:
        self.order = order
        self.in_turn = in_turn
        self.reservations: Reservations | None = None
        self.placed = 0
        """Number of jobs with reservations: the first ones in order."""
        self.valid = NEVER_VALID

    def start(self, state: SchedulerState, row: int) -> int:
        """Return the start of the job in this row of the queue, as `RunAhead.start`."""
        now, queue, running, free = state
        rows = self.order(queue)
        rank = int(np.flatnonzero(rows == row)[0])
        ends = forecast_ends(now, running.packed(on_requests=False))
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
        """Drop the reservations. The next forecast plans anew."""
        self.reservations = None
