"""The shadow machines of a run: one for each configuration of a portfolio."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from shadowtime.services.scheduler.compiled_orders import compiled
from shadowtime.services.scheduler.job_table import Queue, Running
from shadowtime.services.scheduler.known_jobs import GROWTH, MAX_USERS, KnownJobs, grown
from shadowtime.services.scheduler.ordering import Ordering
from shadowtime.services.scheduler.orders import ORDERS, Key
from shadowtime.services.scheduler.policy_settings import PolicySettings
from shadowtime.services.scheduler.portfolio import Member
from shadowtime.services.scheduler.settled import settle
from shadowtime.services.scheduler.shadow_machine import (
    ARRIVED,
    AS_PREDICTED,
    AS_REQUESTED,
    CHANGED,
    CLOCK,
    FREE,
    RUNS,
    WAITS,
    Machines,
    Members,
    advance,
)
from shadowtime.shared.arrays import Floats, FloatTable, Integers, IntegerTable
from shadowtime.shared.events import CapacityChanged, ClusterOpened, Event
from shadowtime.shared.packed_table import packed_numbers, unpacked_numbers

MAX_OPEN = 20_000
"""Jobs that have not ended on all machines; beyond these, new ones are left out on all of them."""

STEPS = 20_000_000
"""Steps that all machines may take at one scheduling point; the next goes on. A step takes some nanoseconds."""


def _filled(table: Any, counts: Integers) -> Any:
    """Return a table without what lies behind the first so many numbers of each row."""
    most = int(counts.max())
    return np.where(np.arange(most) < counts[:, np.newaxis], table[:, :most], 0)


class Shadows:
    """Machines that run what is known of a run by other configurations, each as far as it is known.

    O(members * (waiting log waiting + running log running)) for each instant of a machine, at most `STEPS` a scheduling
    point; O(members * jobs) memory for jobs that have not ended on all machines, at most `MAX_OPEN`.

    Parameters
    ----------
    members
        The configurations; the first is what users' waits are compared with.
    settings
        What the policy makes of adjusted requests.
    """

    def __init__(self, members: Sequence[Member], settings: PolicySettings) -> None:
        self.count = len(members)
        bases: list[tuple[Ordering, Key]] = []
        rows: dict[tuple[str, str], int] = {}
        taus = sorted({each.settings.tau for each in members} - {0.0})
        columns, guards = [], []
        for _, each, predicted in members:
            kind, key = compiled(ORDERS[each.queue])
            row = rows.setdefault((each.queue, each.by), len(bases))
            if row == len(bases):
                bases.append((Ordering(each), key))
            plan = 2 + taus.index(each.tau) if each.tau else AS_PREDICTED if predicted else AS_REQUESTED
            columns.append((kind, row, plan))
            guards.append((each.threshold, each.overtaken, each.patience))
        whole, parts = np.array(columns, dtype=np.int64).T, np.array(guards, dtype=np.float64).T
        self.members = Members(*np.ascontiguousarray(whole), *np.ascontiguousarray(parts))
        self.jobs = KnownJobs(bases, tuple(taus), settings, MAX_OPEN)
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
        """Take note of the run: when it begins, and how large the machine is."""
        for ordering, _ in self.jobs.bases:
            ordering.open(opened)
        self.capacity[:, 0] = opened.time, opened.processors
        self.counters[:, FREE] = opened.processors
        self.counters[:, CLOCK] = opened.time

    def observe(self, event: Event) -> None:
        """Note an event."""
        self.jobs.observe(event)
        if isinstance(event, CapacityChanged):
            self.capacity = np.append(self.capacity, [[event.time], [event.processors]], axis=1)

    def advance(self, now: int, queue: Queue, running: Running) -> None:
        """Take in what has happened, and run every machine on as far as that tells."""
        jobs = self.jobs
        if jobs.size + len(jobs.news) > MAX_OPEN:
            self.settle(now)
        jobs.take_in(now, queue, running)
        self.waiting, self.running = grown(self.waiting, jobs.size), grown(self.running, jobs.size)
        self.work = grown(self.work, jobs.size)
        self.starts, self.ends = grown(self.starts, jobs.size, -1), grown(self.ends, jobs.size, -1)
        advance(now, jobs.known, self.capacity, self.members, self._machines, STEPS)
        if over := int(self.counters[:, CHANGED].min()):  # no machine comes back to these sizes
            self.capacity = np.ascontiguousarray(self.capacity[:, over:])
            self.counters[:, CHANGED] -= over

    def settle(self, now: int) -> None:
        """Count the jobs that have ended on all machines, and forget them, as nothing refers to them any more."""
        jobs = self.jobs
        jobs.give_up(now)
        self.waits = grown(self.waits, min(len(jobs.users), MAX_USERS) + 1)
        self.counts = np.append(self.counts, np.zeros(self.waits.shape[1] - len(self.counts)))
        done = settle(jobs.known, jobs.user_rows, self._machines, self.totals, self.waits, self.counts)
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
        """Take on what `snapshot` returned."""
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
