"""The two passes of Slurm over its queue: the main scheduler's, and that of `sched/backfill`.

References: docs/algorithms.md#slurm (Slurm 22.05, `src/slurmctld/job_scheduler.c`,
`src/plugins/sched/backfill/backfill.c`).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from shadowtime.services.scheduler.kernels.profile import begin, earliest, fits, take
from shadowtime.shared.kernels import Floats, Integers, IntegerTable, kernel


class BackfillCandidate(NamedTuple):
    """A waiting job: row in the queue, position in the queue of all pools, size, limit in seconds, user, partition."""

    row: int
    place: int
    size: Integers
    limit: int
    user: int
    partition: int


class Outlook:
    """The free amount of each resource over time, by the limits of running jobs and by reservations.

    Parameters
    ----------
    now, idle
        The time in seconds, and the free amount of each resource.
    sizes, ends
        Sizes and ends of running jobs, and of processors of ended jobs that are not available yet.
    held
        Beginning, end and processors of each reservation.
    room
        Maximum number of jobs for which `take` may be called.
    """

    def __init__(
        self,
        now: int,
        idle: Integers,
        sizes: IntegerTable,
        ends: Integers,
        held: Sequence[tuple[int, int, int]],
        room: int,
    ) -> None:
        self.now = now
        steps = len(ends) + 2 * (room + len(held)) + 4
        self._times = np.zeros(steps, dtype=np.int64)
        self._free = np.zeros((len(idle), steps), dtype=np.int64)
        self._steps = begin(self._times, self._free, now, idle, sizes, ends)
        for begins, until, processors in held:
            if until > now:
                size = np.zeros(len(idle), dtype=np.int64)
                size[0] = processors
                self.take(size, max(begins, now), until)

    def take(self, size: Integers, start: int, end: int) -> None:
        """Take `size` out of the free amounts between two times."""
        self._steps = take(self._times, self._free, self._steps, start, end, size)

    def fits_now(self, size: Integers, limit: int) -> bool:
        """Return whether a job fits from now until its limit."""
        return bool(fits(self._times, self._free, self._steps, size, self.now, self.now + limit))

    def earliest(self, size: Integers, limit: int, before: int) -> int:
        """Return the earliest start of a job; `before` if there is none before it.

        A reservation that begins exactly at the job's end blocks it, too.
        """
        return int(earliest(self._times, self._free, self._steps, size, limit + 1, before))


def main_pass(outlook: Outlook, queue: Sequence[BackfillCandidate], depth: int) -> list[BackfillCandidate]:
    """Return the jobs to start, in order of priority. Stop at the first job that does not fit.

    Only the first `depth` jobs of the whole queue are tried; jobs of all pools count.
    """
    started = []
    for job in queue:
        if job.place >= depth or not outlook.fits_now(job.size, job.limit):
            break
        outlook.take(job.size, outlook.now, outlook.now + job.limit)
        started.append(job)

    return started


class Bounds(NamedTuple):
    """Limits of a backfill pass: window and resolution in seconds, and numbers of jobs.

    The first `tests` jobs of the queue of all pools are tested, at most `of_user` of each user and `of_partition` of
    each partition. At most `starts` jobs start. The value 0 means no limit for these three. Steps of the resolution are
    aligned to Unix time, in which second 0 is `unix_start`.
    """

    window: int
    resolution: int
    unix_start: int
    tests: int
    of_user: int
    of_partition: int
    starts: int


def backfill_pass(outlook: Outlook, queue: Sequence[BackfillCandidate], bounds: Bounds) -> list[BackfillCandidate]:
    """Return the jobs to start. In order of priority, each job gets the earliest start that delays no job before it.

    A start in the future is reserved until the end of the pass. The beginning and the end of the reservation are
    rounded down to steps of the resolution. O(queue * (queue + running)).
    """
    now, started = outlook.now, []
    tested: dict[tuple[str, int], int] = {}
    for job in queue:
        if job.place >= bounds.tests:
            break
        groups = ("user", job.user), ("partition", job.partition)
        for group in groups:
            tested[group] = tested.get(group, 0) + 1
        limits = zip(groups, (bounds.of_user, bounds.of_partition), strict=True)
        if any(most and tested[group] > most for group, most in limits):
            continue
        start = outlook.earliest(job.size, job.limit, now + bounds.window + 1)
        if start == now:
            outlook.take(job.size, now, now + job.limit)
            started.append(job)
            if bounds.starts and len(started) == bounds.starts:
                break
        elif start <= now + bounds.window:
            first, last = (time - (time + bounds.unix_start) % bounds.resolution for time in (start, start + job.limit))
            if last > max(first, now):
                outlook.take(job.size, max(first, now), last)

    return started


@kernel
def charge_periods(
    periods: int,
    factor: float,
    accounts: Floats,
    parents: Integers,
    users: Floats,
    owners: Integers,
    homes: Integers,
    amounts: Floats,
) -> None:
    """Decay and charge usage over some periods, in place. O(periods * (jobs * depth + accounts + users)).

    Parameters
    ----------
    factor
        The decay of usage over one period.
    accounts, parents
        The usage of each account, in processor seconds, and the place of the account above it. The root is at 0.
    users
        The usage of each user, in processor seconds.
    owners, homes, amounts
        For each running job: the places of its user and its account, and the processor seconds charged in each period.
    """
    for _ in range(periods):
        for place in range(accounts.size):
            accounts[place] *= factor
        for place in range(users.size):
            users[place] *= factor
        for job in range(amounts.size):
            users[owners[job]] += amounts[job]
            account = homes[job]
            accounts[account] += amounts[job]
            while account != 0:
                account = parents[account]
                accounts[account] += amounts[job]
