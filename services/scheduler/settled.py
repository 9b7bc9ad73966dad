"""What shadow machines made of the jobs that have ended on all of them: the same jobs for each."""

import numpy as np

from shadowtime.services.scheduler.shadow_machine import Known, Machines
from shadowtime.shared.arrays import Flags, Floats, FloatTable, Integers
from shadowtime.shared.kernel import kernel
from shadowtime.shared.slowdown import RUN_TIME_FLOOR

SLOWDOWN, WAIT, TAIL, LONGEST = range(4)
"""Columns of what each machine made of the jobs that are settled: sums of bounded slowdowns, of waits and of a power of
the waits; longest wait."""

POWER = 16.0
"""Of waits in the sum of `TAIL`: its root mean lies near the longest waits, and yet depends on all that are long."""

UNIT = 86_400.0
"""Seconds in which waits are raised to that power."""

FLOOR = int(RUN_TIME_FLOOR)


@kernel
def settle(
    known: Known, users: Integers, machines: Machines, totals: FloatTable, waits: FloatTable, counts: Floats
) -> Flags:
    """Add the jobs that have ended on all machines; return of each job whether it has. O(members * jobs).

    Jobs that were withdrawn are over, and count for nothing.

    Parameters
    ----------
    users
        Of each job, a row number.
    totals, waits, counts
        Of each machine, see above; of each machine and user, the sum of waits; of each user, jobs. Are written to.
    """
    settled: Flags = np.ones(known.jobs, dtype=np.bool_)
    for member in range(len(totals)):
        for job in range(known.jobs):
            settled[job] = settled[job] and machines.ends[member, job] >= 0
    for job in range(known.jobs):
        if settled[job] and known.withdrawn[job] < 0:
            counts[users[job]] += 1.0
    for member in range(len(totals)):
        for job in range(known.jobs):
            if settled[job] and known.withdrawn[job] < 0:
                wait = machines.starts[member, job] - known.submit_times[job]
                slowdown = (wait + known.run_times[job]) / max(known.run_times[job], FLOOR)
                totals[member, SLOWDOWN] += max(slowdown, 1.0)
                totals[member, WAIT] += wait
                totals[member, TAIL] += (wait / UNIT) ** POWER
                totals[member, LONGEST] = max(totals[member, LONGEST], float(wait))
                waits[member, users[job]] += wait
    return settled


@kernel
def worst_user(waits: FloatTable, counts: Floats, least: float, floor: float) -> Floats:
    """Return, of each machine, the largest ratio of a user's mean wait to that on machine 0. O(members * users).

    Parameters
    ----------
    least, floor
        Jobs that a user has at least; seconds that are added to either mean, so that next to nothing is no ratio.
    """
    worst = np.zeros(len(waits))
    for member in range(len(waits)):
        for user in range(len(counts)):
            if counts[user] >= least:
                ratio = (waits[member, user] / counts[user] + floor) / (waits[0, user] / counts[user] + floor)
                worst[member] = max(worst[member], ratio)
    return worst
