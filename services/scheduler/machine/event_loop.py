"""The event loop of simulated machines: one machine for each configuration, over arrays of all jobs.

A machine never uses facts that are not known yet. In a portfolio, it stops if it needs the end of a job that has not
ended in the run itself. It continues once this end is known (docs/ordering.md#no-leak). In a replay of a log, all run
times are known. A machine has processors only: memory and GPUs do not limit jobs there.
"""

from typing import NamedTuple

import numpy as np

from shadowtime.services.scheduler.kernels import COLUMNS
from shadowtime.services.scheduler.machine.passes import (
    CONSERVATIVE,
    GUARDED,
    CarriedPlan,
    KnownTables,
    MemberArrays,
    PassColumns,
    start_places,
)
from shadowtime.services.scheduler.tables import NEVER
from shadowtime.shared.kernels import BEYOND, Flags, FloatTable, Integers, IntegerTable, kernel

CLOCK, ARRIVED, CHANGED, FREE, WAITS, RUNS = range(6)
"""Columns of the counters of each machine: its time, the numbers of arrived jobs and of past changes of capacity, idle
processors, the numbers of waiting and of running jobs."""


class Machines(NamedTuple):
    """State of the machines, shape (members, …): counters, waiting jobs, work that overtook them, running jobs.

    `waiting` and `running` have indices of jobs; the counters state how many are in use. `starts` and `ends` are the
    times of each job, shape (members, jobs), -1 until they are known.
    """

    counters: IntegerTable
    waiting: IntegerTable
    work: FloatTable
    running: IntegerTable
    starts: IntegerTable
    ends: IntegerTable


AS_REQUESTED, AS_PREDICTED = range(2)
"""Rows of planned times. Further rows, one for each tau, have the times that jobs outlast with probability tau."""


@kernel
def counted(planned_time: int) -> int:
    """Return the run time with which a running job counts as overtaking work, in seconds; 0 without a planned time.

    >>> counted(300), counted(NEVER)
    (300, 0)
    """
    return planned_time if planned_time < NEVER else 0


@kernel
def end_of(job: int, known: KnownTables, start: int) -> int:
    """Return the end of a job that started at `start`; -1 if it is not known yet.

    A job that was withdrawn in the run ends at its withdrawal or at its limit, whichever is earlier, but not before its
    start. Its run time will never be known.
    """
    if known.run_times[job] >= 0:
        return start + int(known.run_times[job])
    if known.withdrawn[job] < 0:
        return -1
    return max(start, min(int(known.withdrawn[job]), start + int(known.requested_times[job])))


@kernel
def next_time(now: int, known: KnownTables, running: Integers, starts: Integers, next_arrival: int) -> int:
    """Return the time of the next event on a machine; `BEYOND` if there is none, or it is not known at `now`.

    `next_arrival` is the time of the next arrival, change of capacity or withdrawal. O(running).
    """
    time, horizon = next_arrival, now
    for job in running:
        end = end_of(job, known, starts[job])
        if end >= 0:
            time = min(time, end)
        else:  # its run time exceeds its elapsed time in the run itself
            elapsed = now - known.started[job] if known.started[job] >= 0 else 0
            horizon = min(horizon, starts[job] + elapsed)

    return time if time <= horizon else BEYOND


@kernel
def advance_one(
    member: int,
    now: int,
    known: KnownTables,
    capacity: IntegerTable,
    members: MemberArrays,
    machines: Machines,
    reserved: CarriedPlan,
    withdrawals: bool,
    most: int,
) -> tuple[int, CarriedPlan]:
    """Run one machine up to `now`, or until its next event is not known. Return the steps taken and the reservations.

    O(waiting log waiting + running log running) for each instant.

    Parameters
    ----------
    capacity
        Times and processors, shape (2, changes). The first column is the capacity at the beginning.
    withdrawals, most
        Whether any job was withdrawn; and the steps after which the machine stops until the next call.
    """
    counters = machines.counters[member]
    waiting, work, running = machines.waiting[member], machines.work[member], machines.running[member]
    starts, ends = machines.starts[member], machines.ends[member]
    predicted = known.planned_times[AS_PREDICTED]
    kind = members.passes[member]
    reservations, freed, eldest, patience = reserved.table, reserved.freed, reserved.eldest, reserved.patience
    steps = 0
    while steps < most:
        # 1. Find the next instant: an arrival, a change of capacity, a withdrawal or an end.
        waits, runs = counters[WAITS], counters[RUNS]
        next_arrival = BEYOND
        if counters[ARRIVED] < known.jobs:
            next_arrival = known.submit_times[counters[ARRIVED]]
        if counters[CHANGED] + 1 < capacity.shape[1]:
            next_arrival = min(next_arrival, capacity[0, counters[CHANGED] + 1])
        steps += 4 + runs
        if withdrawals:
            steps += waits
            for place in range(waits):
                if known.withdrawn[waiting[place]] >= 0:
                    next_arrival = min(next_arrival, known.withdrawn[waiting[place]])

        time = next_time(now, known, running[:runs], starts, next_arrival)
        if time == BEYOND:
            break
        time = max(time, counters[CLOCK])
        counters[CLOCK] = time

        # 2. End jobs. Their overtaking work was counted with predicted run times; correct it.
        for place in range(runs - 1, -1, -1):
            job = running[place]
            end = end_of(job, known, starts[job])
            if 0 <= end <= time:
                ends[job] = time
                counters[FREE] += known.processors[job]
                counters[RUNS] -= 1
                running[place] = running[counters[RUNS]]
                freed = True
                if kind != GUARDED:
                    continue
                wrong = float(end - starts[job] - counted(predicted[job])) * known.processors[job]
                steps += waits
                for other in range(waits):
                    if waiting[other] < job:
                        work[other] += wrong

        # 3. Change the capacity, and take in jobs that arrive.
        while counters[CHANGED] + 1 < capacity.shape[1] and capacity[0, counters[CHANGED] + 1] <= time:
            counters[FREE] += capacity[1, counters[CHANGED] + 1] - capacity[1, counters[CHANGED]]
            counters[CHANGED] += 1
            freed = True
        while counters[ARRIVED] < known.jobs and known.submit_times[counters[ARRIVED]] <= time:
            waiting[waits], work[waits] = counters[ARRIVED], 0.0
            waits += 1
            counters[ARRIVED] += 1

        # 4. Drop withdrawn jobs.
        if withdrawals:
            left = 0
            for place in range(waits):
                job = waiting[place]
                if 0 <= known.withdrawn[job] <= time:
                    starts[job] = ends[job] = time
                else:
                    waiting[left], work[left] = job, work[place]
                    left += 1

            waits = left

        counters[WAITS] = waits

        # 5. Skip the pass unless the smallest waiting job fits. With reservations, a pass also plans jobs that wait.
        least = BEYOND
        for place in range(waits):
            least = min(least, known.processors[waiting[place]])
        steps += waits
        if waits == 0:
            freed, eldest = False, -1
        else:  # a promise holds while its job has waited longest, also under another configuration
            if waiting[0] != eldest:
                eldest, patience = waiting[0], np.inf
            patience = min(patience, members.patience[member])
        if waits == 0 or (least > counters[FREE] and kind != CONSERVATIVE):
            continue

        # 6. Decide by one pass of the policy.
        runs = counters[RUNS]
        state = PassColumns(
            time,
            counters[FREE],
            capacity[1, counters[CHANGED]],
            waiting[:waits],
            work[:waits],
            running[:runs],
            starts,
            patience,
        )
        carried = CarriedPlan(reservations, freed, eldest, patience)
        places, reservations = start_places(member, members, known, state, carried)
        freed = False
        steps += 20 * (waits + runs)
        if len(places) == 0:
            continue

        # 7. Start what was decided, and count the work by which earlier jobs were overtaken.
        over = np.zeros(waits)  # work of each job that starts, at its place; it overtakes the jobs before it
        stays: Flags = np.ones(waits, dtype=np.bool_)
        for place in places:
            job = waiting[place]
            stays[place] = False
            over[place] = float(counted(predicted[job])) * known.processors[job]
            starts[job] = time
            running[counters[RUNS]] = job
            counters[RUNS] += 1
            counters[FREE] -= known.processors[job]

        behind = 0.0
        for place in range(waits - 1, -1, -1):
            work[place] += behind
            behind += over[place]
        left = 0
        for place in range(waits):
            if stays[place]:
                waiting[left], work[left] = waiting[place], work[place]
                left += 1

        counters[WAITS] = left

    return steps, CarriedPlan(reservations, freed, eldest, patience)


@kernel
def advance(
    now: int, known: KnownTables, capacity: IntegerTable, members: MemberArrays, machines: Machines, most: int
) -> None:
    """Run every machine as far as facts are known; arguments as in `advance_one`, `most` for all machines together."""
    withdrawals = bool((known.withdrawn[: known.jobs] >= 0).any())
    for member in range(len(members.kinds)):
        if most > 0:
            none = CarriedPlan(np.empty((COLUMNS, 0), dtype=np.int64), False, -1, np.inf)
            steps, _ = advance_one(member, now, known, capacity, members, machines, none, withdrawals, most)
            most -= steps


@kernel
def follow(
    instants: Integers,
    started: IntegerTable,
    ended: IntegerTable,
    known: KnownTables,
    capacity: IntegerTable,
    members: MemberArrays,
    machines: Machines,
    most: int,
) -> None:
    """Run every machine as `advance` at each instant, as if facts became known as they did in the run.

    Parameters
    ----------
    started, ended
        Start times of jobs and their columns in `known`, shape (2, starts); ends, columns and run times, shape
        (3, ends). Both are in order of time. A start is known after its instant, an end at its instant.
    known
        All jobs. Those submitted later than an instant are not known yet. Facts are changed in place.
    """
    jobs = starts = ends = 0
    for now in instants:
        while jobs < known.jobs and known.submit_times[jobs] <= now:
            jobs += 1
        while starts < started.shape[1] and started[0, starts] < now:
            known.started[started[1, starts]] = started[0, starts]
            starts += 1
        while ends < ended.shape[1] and ended[0, ends] <= now:
            known.run_times[ended[1, ends]] = ended[2, ends]
            ends += 1
        so_far = KnownTables(
            jobs,
            known.submit_times,
            known.processors,
            known.requested_times,
            known.planned_times,
            known.bases,
            known.run_times,
            known.started,
            known.withdrawn,
        )
        advance(now, so_far, capacity, members, machines, most)
