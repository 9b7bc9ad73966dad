"""A policy run ahead by placing jobs one behind another, in its order."""

from collections.abc import Callable

import numpy as np

from shadowtime.services.scheduler.forecast import NEVER_VALID, RunAhead, State, Valid, forecast_ends
from shadowtime.services.scheduler.job_table import Queue
from shadowtime.services.scheduler.reservations import Reservations
from shadowtime.services.scheduler.run_ahead import TOO_FAR
from shadowtime.shared.arrays import Integers
from shadowtime.shared.scheduling.easy import BEYOND


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
