"""Backfilling in which every job that cannot start reserves its place, anew at each pass."""

import numpy as np

from shadowtime.services.scheduler.expected_end import Column, expected_ends
from shadowtime.services.scheduler.forecast_keys import PlanKeys
from shadowtime.services.scheduler.job_table import Queue, Running
from shadowtime.services.scheduler.limits import MAX_STARTS, PLANNED
from shadowtime.services.scheduler.policy import FITS_NOW, Policy, start
from shadowtime.services.scheduler.profile import FOREVER, begin, earliest, take
from shadowtime.shared.events import CutShort, Start
from shadowtime.shared.kernel import kernel
from shadowtime.shared.reasons import Reserved

RESERVED = Reserved()

STEPS = 3
"""What one reservation costs for each step of the profile: looking for its place, cutting there and taking it."""


@kernel(
    "Tuple((int64[::1], int64, int64))"
    "(int64, int64, int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1],"
    " int64)"
)
def reserve_pass(
    now: int,
    free: int,
    processors: Column,
    run_times: Column,
    running_processors: Column,
    start_times: Column,
    predicted_times: Column,
    adjusted_times: Column,
    requested_times: Column,
    corrections: Column,
    most: int,
) -> tuple[Column, int, int]:
    """Return the rows of the queue that start, in order of arrival; how many got their turn, and the steps it took.

    O(queue * (queue + running)), but no more is planned once it has taken `most` steps over the profile.

    Each job in turn gets the earliest time at which it fits beside those before it; those whose time has come start.
    Once none that is left is small enough for what is free, no further place is reserved: it would outlast nothing.

    Parameters
    ----------
    processors, run_times
        Of each waiting job, in order of the queue: size, and expected run time in seconds.
    running_processors, start_times, predicted_times, adjusted_times, requested_times, corrections
        Of each running job: size, and what `expected_ends` takes.
    """
    waiting = len(processors)
    smallest = np.empty(waiting + 1, dtype=np.int64)
    smallest[waiting] = FOREVER
    for job in range(waiting - 1, -1, -1):
        smallest[job] = min(processors[job], smallest[job + 1])
    rows = np.empty(waiting, dtype=np.int64)
    if smallest[0] > free:
        return rows[:0], waiting, waiting
    ends = expected_ends(now, start_times, predicted_times, adjusted_times, requested_times, corrections)
    work = waiting + len(ends)
    times = np.empty(2 * waiting + len(ends) + 2, dtype=np.int64)
    idle = np.empty_like(times)
    steps = begin(times, idle, now, free, running_processors, ends)
    starting, planned = 0, waiting
    for job in range(waiting):
        if smallest[job] > free:
            break
        if work > most:
            planned = job
            break
        work += STEPS * steps
        at = earliest(times, idle, steps, processors[job], run_times[job], FOREVER)
        if at < FOREVER:
            steps = take(times, idle, steps, at, at + run_times[job], processors[job])
        if at == now:
            rows[starting] = job
            starting += 1
            free -= processors[job]
    return rows[:starting], planned, work


class AllReserve(Policy):
    """Start whatever does not delay the reservation of any job that arrived before it.

    The whole queue is planned anew at each pass, in order of arrival: a reservation only keeps later jobs from being
    in the way, its job may start sooner. O(queue * (queue + running)) per pass, but for at most `limits.PLANNED` steps:
    jobs that come after have no turn at this pass.

    References
    ----------
    Smith, Taylor, Foster: Using run-time predictions to estimate queue wait times and improve scheduler performance,
    JSSPP 1999 (P3), section 2.1.4.
    """

    name = "all-reserve"
    Keys = PlanKeys

    def __init__(self, keys: PlanKeys) -> None:
        self.keys = keys
        self.on_requests = keys.plan == "requested"

    def schedule(self, now: int, queue: Queue, running: Running, free: int) -> list[Start | CutShort]:
        """Return the starts of one pass, in order of arrival."""
        if free <= 0 or not len(queue):
            return []
        rows, planned, _ = reserve_pass(
            now,
            free,
            queue.processors,
            queue.requested_time if self.on_requests else queue.predicted_time,
            running.processors,
            running.start_time,
            running.requested_time if self.on_requests else running.predicted_time,
            running.adjusted_time,
            running.requested_time,
            running.corrections,
            PLANNED,
        )
        starts: list[Start | CutShort] = [
            start(queue, row, FITS_NOW if row == at else RESERVED) for at, row in enumerate(rows[:MAX_STARTS].tolist())
        ]
        if len(rows) > MAX_STARTS:
            starts.append(CutShort(by="starts", left=len(rows) - MAX_STARTS))
        if planned < len(queue):
            starts.append(CutShort(by="depth", left=len(queue) - planned))
        return starts
