"""A policy run ahead by placing jobs one behind another, in its order."""

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
from shadowtime.services.scheduler.kernels import FOREVER, begin, earliest, has_room_at, take
from shadowtime.services.scheduler.limits import AHEAD
from shadowtime.services.scheduler.tables import Queue
from shadowtime.shared.kernels import BEYOND, Integers, IntegerTable, kernel

# Where waiting jobs come to lie if nothing else arrives, one put behind another without planning anew.

EACH_STEP = 3
"""Cost of a place for each step of the profile: search, cut and use."""


@kernel
def place(
    times: Integers, free: IntegerTable, steps: int, sizes: IntegerTable, run_times: Integers, in_turn: bool, most: int
) -> tuple[int, int, int]:
    """Put jobs into the profile; return its steps, the start of the last job, and the first start of any.

    The start is `TOO_FAR` where that would take more than `most` steps over the profile.

    O(jobs * steps).

    Parameters
    ----------
    times, free, steps
        The profile, with room for two more steps for each job. `in_turn` leaves only what is after the last start, no
        steps at all once a job can never start.
    sizes, run_times
        Of each job.
    in_turn
        Whether no job starts before the one before it; if not, each starts as soon as it fits.

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
        else:  # after the last start there are only ends: what is free does not become less again
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
    """A plan of waiting jobs that grows at its end, on processors alone.

    Parameters
    ----------
    now, idle, processors, ends
        The machine as it is: free processors, and when those of each running job come free.
    in_turn
        Whether no job starts before the one before it.

    >>> reservations = Reservations(0, 0, np.array([6, 4]), np.array([100, 50]), in_turn=True)
    >>> reservations.add(np.array([5]), np.array([200])), reservations.add(np.array([4]), np.array([30]))
    (100, 100)
    """

    def __init__(self, now: int, idle: int, processors: Integers, ends: Integers, *, in_turn: bool) -> None:
        self.in_turn = in_turn
        self.times = np.empty(len(ends) + 2, dtype=np.int64)
        self.free = np.empty((1, len(self.times)), dtype=np.int64)
        self.soonest = FOREVER
        """When the first of the jobs starts."""
        self.steps = begin(self.times, self.free, now, np.array([idle]), processors.reshape(-1, 1), ends)

    def add(self, processors: Integers, run_times: Integers) -> int:
        """Put jobs behind the others; return the start of the last in seconds, `FOREVER` if there is none.

        If it is `TOO_FAR`, this plan is not to be used any more.
        """
        need = self.steps + 2 * len(processors)
        if need > len(self.times):
            room = np.empty(need, dtype=np.int64)  # also for later ones, which come one by one
            self.times, self.free = np.concatenate((self.times, room)), np.hstack((self.free, room[np.newaxis]))
        self.steps, start, soonest = place(
            self.times, self.free, self.steps, processors.reshape(-1, 1), run_times, self.in_turn, AHEAD
        )
        self.soonest = min(self.soonest, soonest)
        return start

    def advance(self, now: int) -> None:
        """Let time pass; nothing of the plan has begun or ended."""
        if self.steps:
            self.times[0] = max(self.times[0], now)


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

    def start(self, state: SchedulerState, row: int) -> int:
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
