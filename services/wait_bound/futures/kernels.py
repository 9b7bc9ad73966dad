"""Starts of the last job of a queue in simulated futures, which differ in run times and arrivals."""

import numpy as np

from shadowtime.shared.kernels import Integers, IntegerTable, kernel

SIZE, LIMIT, RUN_TIME, LATEST, END = 0, 1, 2, 1, 2
"""Rows of a table of waiting jobs: processors, requested time, run time. Rows of a table of running jobs: processors,
latest end, actual end."""

TIME, ARRIVING = 0, 1
"""Columns of the table of arrivals: time, and from `ARRIVING` on the rows of a waiting job."""

NEVER = 1 << 60
"""Start of a job that does not start, or not within the steps of a future."""


@kernel
def easy_once(
    now: int, free: int, target: int, queue: IntegerTable, waits: int, held: IntegerTable, runs: int
) -> tuple[int, int, int, int]:
    """Run one pass of EASY on requests, first come first served. Return free processors, target, waits and runs.

    `target` is the position in the queue of the job to follow; it is -1 once the job has started. `waits` and `runs`
    are the numbers of jobs in `queue` and `held`. Started jobs move from `queue` to `held`; both are changed in place.
    O(waits + runs * log runs).

    The pass of `shared.kernels.easy_backfill` makes arrays of resources, and takes four times as long here. Using only
    its function for the shadow time would make this pass a tenth to a third slower.
    """
    heads = 0
    while heads < waits and queue[SIZE, heads] <= free:
        free -= queue[SIZE, heads]
        heads += 1
    for job in range(heads):
        held[SIZE, runs] = queue[SIZE, job]
        held[LATEST, runs], held[END, runs] = now + queue[LIMIT, job], now + queue[RUN_TIME, job]
        runs += 1

    started = target < heads
    fits = False
    for job in range(heads + 1, waits):
        if queue[SIZE, job] <= free:
            fits = True
            break

    shadow, extra = now, 0
    if fits and not started:
        latest = np.argsort(held[LATEST, :runs], kind="mergesort")
        extra = free - queue[SIZE, heads]
        for job in latest:
            if extra >= 0 and held[LATEST, job] > shadow:
                break
            extra += held[SIZE, job]
            shadow = max(held[LATEST, job], now)

    left, place = 0, target
    for job in range(heads, waits):
        size = queue[SIZE, job]
        ends = now + queue[LIMIT, job]
        if fits and job > heads and size <= free and (ends <= shadow or size <= extra):
            if ends > shadow:
                extra -= size
            free -= size
            held[SIZE, runs], held[LATEST, runs], held[END, runs] = size, ends, now + queue[RUN_TIME, job]
            runs += 1
            started |= job == target
        else:
            if job == target:
                place = left
            for row in range(3):
                queue[row, left] = queue[row, job]
            left += 1

    return free, -1 if started else place, left, runs


@kernel
def starts_ahead(
    now: int,
    processors: int,
    free: int,
    waiting: IntegerTable,
    run_times: IntegerTable,
    running: IntegerTable,
    ends: IntegerTable,
    arrivals: IntegerTable,
    firsts: Integers,
    shifts: Integers,
    most: int,
) -> Integers:
    """Return the start of the last waiting job in each future, in seconds, or `NEVER`. O(futures * passes * a pass).

    Parameters
    ----------
    processors, free
        Processors of the machine, and free processors now.
    waiting, running
        Processors and requested times of the waiting jobs, in the order of the queue; processors and latest ends of the
        running jobs; shape (2, jobs).
    run_times, ends
        Run times of the waiting jobs and ends of the running jobs in each future, shape (futures, jobs).
    arrivals, firsts, shifts
        Past arrivals by time, shape (arrivals, 4). In each future, the arrivals from its index in `firsts` on are
        repeated, `shifts` seconds later. Jobs larger than the machine are left out.
    most
        Maximum number of steps of a future. A pass counts one step for each waiting and running job.

    >>> waiting, running = np.array([[4, 2], [60, 60]]), np.array([[3], [100]])
    >>> none = np.empty((0, 4), dtype=np.int64)
    >>> times, ends, zero = np.array([[50, 9], [50, 9]]), np.array([[30], [80]]), np.zeros(2, dtype=np.int64)
    >>> starts_ahead(0, 4, 1, waiting, times, running, ends, none, zero, zero, 1000).tolist()
    [80, 130]
    """
    futures, waits, runs, come = len(run_times), waiting.shape[1], running.shape[1], len(arrivals)
    room = waits + runs + come
    queue, held = np.empty((3, waits + come), dtype=np.int64), np.empty((3, room), dtype=np.int64)
    starts = np.full(futures, NEVER)
    for future in range(futures):
        time, idle, target, queued, holding = now, free, waits - 1, waits, runs
        queue[:2, :waits], held[:2, :runs] = waiting, running
        queue[RUN_TIME, :waits], held[END, :runs] = run_times[future], ends[future]
        arrival, work = firsts[future], 0
        while work <= most:
            work += queued + holding
            idle, target, queued, holding = easy_once(time, idle, target, queue, queued, held, holding)
            if target < 0:
                starts[future] = time
                break
            next_arrival = arrivals[arrival, TIME] + shifts[future] if arrival < come else NEVER
            time = min(next_arrival, held[END, :holding].min()) if holding > 0 else next_arrival
            if time == NEVER:
                break
            while arrival < come and arrivals[arrival, TIME] + shifts[future] <= time:
                if arrivals[arrival, ARRIVING] <= processors:
                    queue[:, queued] = arrivals[arrival, ARRIVING:]
                    queued += 1
                arrival += 1

            for job in range(holding - 1, -1, -1):
                if held[END, job] <= time:
                    idle += held[SIZE, job]
                    holding -= 1
                    held[:, job] = held[:, holding]

    return starts
