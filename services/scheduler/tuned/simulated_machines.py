"""The simulated machines of a run: one for each configuration of a portfolio."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from shadowtime.services.scheduler.machine import (
    ARRIVED,
    AS_PREDICTED,
    AS_QUEUE,
    AS_REQUESTED,
    CHANGED,
    CLOCK,
    FREE,
    GUARDED,
    OUTLASTED,
    RUNS,
    WAITS,
    KnownTables,
    Machines,
    MemberArrays,
    advance,
    follow,
)
from shadowtime.services.scheduler.ordering import ORDERS, Key, Ordering, compiled
from shadowtime.services.scheduler.settings import PolicySettings
from shadowtime.services.scheduler.tables import Queue, Running
from shadowtime.services.scheduler.tuned.job_log import GROWTH, MAX_USERS, JobLog, grown
from shadowtime.services.scheduler.tuned.settings import PortfolioMember
from shadowtime.services.scheduler.work_limits import MACHINE_STEPS, MAX_OPEN
from shadowtime.shared.distributions import packed_numbers, unpacked_numbers
from shadowtime.shared.kernels import Flags, Floats, FloatTable, Integers, IntegerTable, kernel
from shadowtime.shared.messages import CapacityChanged, ClusterOpened, Event
from shadowtime.shared.statistics import RUN_TIME_FLOOR

# Results of the simulated machines on the jobs that count: those that have ended on all machines.

SLOWDOWN, WAIT, TAIL, LONGEST = range(4)
"""Columns of the results of each machine on the jobs that count: sums of bounded slowdowns, of waits and of a power of
the waits; longest wait."""

POWER = 16.0
"""Exponent of the waits in `TAIL`. The power mean is near the longest waits, yet depends on all long waits."""

UNIT = 86_400.0
"""Unit of the waits in `TAIL`, in seconds: a wait is divided by it, then raised to `POWER`."""

FLOOR = int(RUN_TIME_FLOOR)


@kernel
def add_results(
    known: KnownTables, users: Integers, machines: Machines, totals: FloatTable, waits: FloatTable, counts: Floats
) -> Flags:
    """Add the results of the jobs that have ended on all machines; return a flag for each job.

    The flag is True if the job has ended on all machines. This includes withdrawn jobs, which add nothing. O(members *
    jobs).

    Parameters
    ----------
    users
        Index of the user of each job.
    totals, waits, counts
        Results of each machine, in columns `SLOWDOWN` to `LONGEST`; sum of waits of each machine and user; jobs
        of each user. All are changed in place.
    """
    done: Flags = np.ones(known.jobs, dtype=np.bool_)
    for member in range(len(totals)):
        for job in range(known.jobs):
            done[job] = done[job] and machines.ends[member, job] >= 0
    for job in range(known.jobs):
        if done[job] and known.withdrawn[job] < 0:
            counts[users[job]] += 1.0
    for member in range(len(totals)):
        for job in range(known.jobs):
            if done[job] and known.withdrawn[job] < 0:
                wait = machines.starts[member, job] - known.submit_times[job]
                slowdown = (wait + known.run_times[job]) / max(known.run_times[job], FLOOR)
                totals[member, SLOWDOWN] += max(slowdown, 1.0)
                totals[member, WAIT] += wait
                totals[member, TAIL] += (wait / UNIT) ** POWER
                totals[member, LONGEST] = max(totals[member, LONGEST], float(wait))
                waits[member, users[job]] += wait

    return done


@kernel
def worst_user(waits: FloatTable, counts: Floats, least: float, floor: float) -> Floats:
    """Return for each machine the largest ratio of a user's mean wait to that on machine 0. O(members * users).

    Only users with at least `least` jobs count. `floor` seconds are added to both means, so that tiny waits give no
    large ratio.
    """
    worst = np.zeros(len(waits))
    for member in range(len(waits)):
        for user in range(len(counts)):
            if counts[user] >= least:
                ratio = (waits[member, user] / counts[user] + floor) / (waits[0, user] / counts[user] + floor)
                worst[member] = max(worst[member], ratio)

    return worst


def _filled(table: Any, counts: Integers) -> Any:
    """Return a table that keeps the first `counts[row]` numbers of each row; the others are 0."""
    most = int(counts.max())
    return np.where(np.arange(most) < counts[:, np.newaxis], table[:, :most], 0)


class SimulatedMachines:
    """Machines that simulate a run under the configurations of a portfolio, as far as its facts are known.

    O(members * (waiting log waiting + running log running)) for each instant of a machine, at most `MACHINE_STEPS` a
    scheduling point; O(members * jobs) memory for jobs that have not ended on all machines, at most `MAX_OPEN`.

    Parameters
    ----------
    members
        The configurations. Users' waits are compared with those under the first.
    settings
        Settings of the policy; they say how adjusted requests are used.
    """

    def __init__(self, members: Sequence[PortfolioMember], settings: PolicySettings) -> None:
        self.count = len(members)
        self.taus = tuple(sorted({member.settings.tau for member in members} - {0.0}))
        bases: list[tuple[Ordering, Key]] = []
        rows: dict[tuple[str, str], int] = {}
        columns, guards = [], []
        for _, member, predicted in members:
            kind, key = compiled(ORDERS[member.queue])
            row = rows.setdefault((member.queue, member.by), len(bases))
            if row == len(bases):
                bases.append((Ordering(member), key))
            plan = AS_PREDICTED if predicted else AS_REQUESTED
            if member.tau:
                plan = OUTLASTED + self.taus.index(member.tau)
            columns.append((GUARDED, kind, row, AS_QUEUE, row, plan))
            guards.append((member.threshold, member.overtaken, member.patience, 0.0, 0.0))

        whole, parts = np.array(columns, dtype=np.int64).T, np.array(guards, dtype=np.float64).T
        corrections = np.empty(0, dtype=np.int64)
        self.members = MemberArrays._make([*np.ascontiguousarray(whole), *np.ascontiguousarray(parts), corrections])
        self.jobs = JobLog(bases, self.taus, settings, MAX_OPEN)
        self.counters: IntegerTable = np.zeros((self.count, 6), dtype=np.int64)
        self.waiting: IntegerTable = np.zeros((self.count, GROWTH), dtype=np.int64)
        self.running: IntegerTable = np.zeros((self.count, GROWTH), dtype=np.int64)
        self.work: FloatTable = np.zeros((self.count, GROWTH))
        self.starts: IntegerTable = np.full((self.count, GROWTH), -1, dtype=np.int64)
        self.ends: IntegerTable = np.full((self.count, GROWTH), -1, dtype=np.int64)
        self.capacity: IntegerTable = np.zeros((2, 1), dtype=np.int64)
        self.totals: FloatTable = np.zeros((self.count, 4))
        self.waits: FloatTable = np.zeros((self.count, 1))
        self.counts: Floats = np.zeros(1)

    def open(self, opened: ClusterOpened) -> None:
        """Record the beginning of the run and the size of the machine, and seed the random numbers of the orders."""
        for ordering, _ in self.jobs.bases:
            ordering.open(opened)
        self.capacity[:, 0] = opened.time, opened.processors
        self.counters[:, FREE] = opened.processors
        self.counters[:, CLOCK] = opened.time

    def observe(self, event: Event) -> None:
        """Record an event until the next scheduling point."""
        self.jobs.observe(event)
        if isinstance(event, CapacityChanged):
            self.capacity = np.append(self.capacity, [[event.time], [event.processors]], axis=1)

    def advance(self, now: int, queue: Queue, running: Running) -> None:
        """Apply the recorded events, and run every machine as far as facts are known."""
        jobs = self.jobs
        if jobs.size + len(jobs.news) > MAX_OPEN:
            self.add_results(now)
        jobs.take_in(now, queue, running)
        self._grow()
        advance(now, jobs.known, self.capacity, self.members, self._machines, MACHINE_STEPS)
        self._forget_changes()

    def follow(self, instants: Integers, started: IntegerTable, ended: IntegerTable) -> None:
        """Run every machine as `advance` at each of these instants; `started` and `ended` as in the kernel `follow`.

        All jobs and changes of capacity up to the last instant must be in the tables.
        """
        self._grow()
        arrays = self.capacity, self.members, self._machines
        follow(instants, started, ended, self.jobs.known, *arrays, MACHINE_STEPS)
        self._forget_changes()

    def _grow(self) -> None:
        """Make room in the tables for all jobs."""
        size = self.jobs.size
        self.waiting, self.running, self.work = (
            grown(table, size) for table in (self.waiting, self.running, self.work)
        )
        self.starts, self.ends = grown(self.starts, size, -1), grown(self.ends, size, -1)

    def _forget_changes(self) -> None:
        """Drop the changes of capacity that all machines are past."""
        if over := int(self.counters[:, CHANGED].min()):
            self.capacity = np.ascontiguousarray(self.capacity[:, over:])
            self.counters[:, CHANGED] -= over

    def add_results(self, now: int) -> None:
        """Add the results of jobs that have ended on all machines, and drop these jobs."""
        jobs = self.jobs
        jobs.give_up(now)
        self.waits = grown(self.waits, min(len(jobs.users), MAX_USERS) + 1)
        self.counts = np.append(self.counts, np.zeros(self.waits.shape[1] - len(self.counts)))
        done = add_results(jobs.known, jobs.user_rows, self._machines, self.totals, self.waits, self.counts)
        places = np.cumsum(~done) - 1
        for table, count in ((self.waiting, WAITS), (self.running, RUNS)):
            for row, held in zip(table, self.counters[:, count], strict=True):
                row[:held] = places[row[:held]]
        came = np.append(0, places + 1)
        self.counters[:, ARRIVED] = came[self.counters[:, ARRIVED]]
        for table in (self.starts, self.ends):
            left = table[:, : len(done)][:, ~done]
            table[:, : left.shape[1]] = left
            table[:, left.shape[1] :] = -1

        jobs.drop(done)

    @property
    def _machines(self) -> Machines:
        return Machines(self.counters, self.waiting, self.work, self.running, self.starts, self.ends)

    def snapshot(self) -> Any:
        """Return the whole state as plain values, its tables packed."""
        size, waits, runs = self.jobs.size, self.counters[:, WAITS], self.counters[:, RUNS]
        return {
            "jobs": self.jobs.snapshot(),
            "counters": self.counters.tolist(),
            "waiting": packed_numbers(_filled(self.waiting, waits)),
            "work": packed_numbers(_filled(self.work, waits)),
            "running": packed_numbers(_filled(self.running, runs)),
            "starts": packed_numbers(self.starts[:, :size]),
            "ends": packed_numbers(self.ends[:, :size]),
            "capacity": self.capacity.tolist(),
            "totals": self.totals.tolist(),
            "waits": packed_numbers(self.waits),
            "counts": self.counts.tolist(),
        }

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self.jobs.restore(state["jobs"])
        size = max(self.jobs.size, GROWTH)
        self.counters = np.array(state["counters"], dtype=np.int64)
        self.waiting, self.work, self.running = (
            grown(unpacked_numbers(state[name]), size) for name in ("waiting", "work", "running")
        )
        self.starts, self.ends = (grown(unpacked_numbers(state[name]), size, -1) for name in ("starts", "ends"))
        self.capacity = np.array(state["capacity"], dtype=np.int64)
        self.totals, self.waits = np.array(state["totals"]), unpacked_numbers(state["waits"])
        self.counts = np.array(state["counts"])
