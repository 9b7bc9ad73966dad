"""Replays of a whole log under `tuned`: on a compiled machine, with a simulated machine for each portfolio member."""

import numpy as np

from shadowtime.services.scheduler.machine import (
    ARRIVED,
    CHANGED,
    CLOCK,
    RUNS,
    WHOLE,
    LogMachine,
    MachineJobs,
    MachinePolicy,
    MemberArrays,
    machine_policy,
)
from shadowtime.services.scheduler.policy import Policy
from shadowtime.services.scheduler.tuned.policy import Tuned
from shadowtime.services.scheduler.work_limits import MAX_OPEN
from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.kernels import BEYOND, Integers, IntegerTable
from shadowtime.shared.messages import Chosen, ClusterOpened, Decided


def log_machine(policy: Policy, opened: ClusterOpened, jobs: MachineJobs, capacity: IntegerTable) -> LogMachine | None:
    """Return a machine that replays a log under a policy; None if only the policy itself can decide.

    `capacity` is as for `LogMachine`.
    """
    machine: LogMachine
    if type(policy) is Tuned:
        policy.open(opened)
        machine = TunedMachine(policy, jobs, capacity)
    elif (configured := machine_policy(policy, opened)) is not None:
        machine = LogMachine(configured, jobs, capacity)
    else:
        return None
    work = jobs.processors.astype(np.float64) * np.minimum(jobs.requested_times, MAX_DURATION)
    return None if machine.policy.counts_work and work.sum() >= WHOLE else machine


class TunedMachine(LogMachine):
    """A machine that replays the jobs of a log under `tuned`.

    Between two choices the machine runs alone. At a choice, the simulated machines catch up, through the same instants
    and with the same knowledge as in the pipeline.

    `tuned` is the policy, opened.
    """

    def __init__(self, tuned: Tuned, jobs: MachineJobs, capacity: IntegerTable) -> None:
        shadows = tuned.shadows
        orders = tuple(shadows.jobs.bases)
        super().__init__(MachinePolicy(shadows.members, orders, tuned.settings, shadows.taus), jobs, capacity)
        self.tuned = tuned
        self.arrived = 0
        """Number of jobs that the simulated machines know."""
        self.changes = 1
        """Number of capacities that the simulated machines know."""
        self.open: Integers = np.empty(0, dtype=np.int64)
        """Jobs that had not ended at the last choice, in order of submission."""
        self.choices: list[Decided] = []
        self.last_choice = 0
        self._decide_by(tuned.member)

    @property
    def chosen(self) -> list[Decided]:
        """The first decision, which names its member, and the choices."""
        first, name = int(self.starts.min()), self.tuned.portfolio[self.tuned.first_member].name
        if self.choices and self.choices[0].time <= first:
            return self.choices
        return [Decided(time=first, chosen=Chosen(member=name)), *self.choices]

    def run(self, until: int) -> None:
        """Run the machine up to and including the instant `until`, in seconds."""
        while self.exact and self.tuned.next_choice <= until:
            super().run(self.tuned.next_choice - 1)
            now = self._next_instant()
            if now > until:
                break
            self._catch_up(now)
            self.choices += [Decided(time=now, chosen=choice) for choice in self.tuned.choose(now)]
            self._decide_by(self.tuned.member)
        super().run(until)

    def _decide_by(self, member: int) -> None:
        *columns, corrections = self.tuned.shadows.members
        row = MemberArrays._make([*(column[member : member + 1] for column in columns), corrections])
        self.policy = self.policy._replace(members=row)

    def _next_instant(self) -> int:
        """Return the time of the next event in seconds; `BEYOND` if there is none."""
        machines, jobs = self._machines, self.jobs
        counters = machines.counters[0]
        running = machines.running[0, : counters[RUNS]]
        times: list[int] = [BEYOND, *(self.starts[running] + jobs.run_times[running]).tolist()]
        if counters[ARRIVED] < self.known_to:
            times.append(int(jobs.submit_times[counters[ARRIVED]]))
        if counters[CHANGED] + 1 < self.capacity.shape[1]:
            times.append(int(self.capacity[0, counters[CHANGED] + 1]))
        return max(min(times), int(counters[CLOCK]))

    def _catch_up(self, now: int) -> None:
        """Run the simulated machines up to `now`. O(jobs since the last choice), plus the work of the machines."""
        jobs, shadows = self.jobs, self.tuned.shadows
        new = slice(self.arrived, int(np.searchsorted(jobs.submit_times, now, "right")))
        changes = slice(self.changes, int(np.searchsorted(self.capacity[0], now, "right")))
        self.arrived, self.changes = new.stop, max(changes.stop, self.changes)
        submits = jobs.submit_times[new]
        users = [shadows.jobs.user(user) for user in jobs.users[new].tolist()]
        facts = np.stack((submits, jobs.processors[new], jobs.requested_times[new]))
        shadows.jobs.extend(jobs.numbers[new].tolist(), facts, users, self.planned[:, new], self.bases[:, new])
        shadows.capacity = np.concatenate((shadows.capacity, self.capacity[:, changes]), axis=1)

        self.open = np.append(self.open, np.arange(new.start, new.stop))
        starts = self.starts[self.open]
        ends = starts + jobs.run_times[self.open]
        begun = (starts >= self.last_choice) & (starts < now)
        over = (starts >= 0) & (ends <= now)
        started, ended = (self._known(self.open[rows], times[rows]) for rows, times in ((begun, starts), (over, ends)))
        self.exact = shadows.jobs.size + started.shape[1] + ended.shape[1] <= MAX_OPEN
        instants = np.unique(np.concatenate((submits, ends[over], self.capacity[0, changes], [now])))
        shadows.follow(instants, started[:2], ended)
        for number in jobs.numbers[self.open[over]].tolist():
            shadows.jobs.index.pop(number, None)
        self.open, self.last_choice = self.open[~over], now

    def _known(self, jobs: Integers, times: Integers) -> IntegerTable:
        """Return times, columns and run times of the jobs that the simulated machines know, in order of time."""
        index = self.tuned.shadows.jobs.index
        columns = np.array([index.get(number, -1) for number in self.jobs.numbers[jobs].tolist()], dtype=np.int64)
        table = np.stack((times, columns, self.jobs.run_times[jobs]))[:, columns >= 0]
        return np.ascontiguousarray(table[:, np.argsort(table[0], kind="stable")])
