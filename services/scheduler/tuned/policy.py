"""A policy that moves between configurations, by what each would have made of the jobs so far."""

import math
from typing import Any, NamedTuple

import numpy as np

from shadowtime.services.scheduler.ordering import BypassedWork
from shadowtime.services.scheduler.policies import GuardedPass
from shadowtime.services.scheduler.policy import Output, Policy
from shadowtime.services.scheduler.tables import Queue, Running
from shadowtime.services.scheduler.tuned.settings import TunedSettings
from shadowtime.services.scheduler.tuned.simulated_machines import (
    LONGEST,
    POWER,
    SLOWDOWN,
    TAIL,
    WAIT,
    SimulatedMachines,
    worst_user,
)
from shadowtime.shared.chance import key_of, uniform
from shadowtime.shared.kernels import Floats, FloatTable
from shadowtime.shared.messages import DIGITS, CapacityChanged, Chosen, ClusterOpened, Event, Standing

# Which member of a portfolio decides: the one that would have done best so far, longest waits included.

FEW = 20
"""Jobs that a user has at least whose mean wait is guarded."""

FLOOR = 600.0
"""Seconds that are added at the least to either mean wait of a user: a ratio of next to nothing says nothing."""

LEAST = 1e-6
"""In the place of a share of nothing."""


class Aims(NamedTuple):
    """Aims of a choice; see `TunedSettings`. `slowdown` is its share in the objective, that of the wait the rest."""

    slowdown: float
    tail: float
    longest: float
    user: float


class MemberComparison(NamedTuple):
    """Results of each member for the settled jobs, as shares of the first member's results; shape (members,)."""

    slowdowns: Floats
    waits: Floats
    longest: Floats
    worst_users: Floats
    losses: Floats
    """Losses that a choice minimises: weighed logarithms of these shares; 0 for the first member."""


def compare(totals: FloatTable, waits: FloatTable, counts: Floats, aims: Aims) -> MemberComparison:
    """Return where the members stand. O(members * users).

    The loss is the logarithm of the objective, plus `tail` times that of the sixteenth-power mean of the waits, plus
    those of longest wait and worst user as far as they are beyond their guards.

    Parameters
    ----------
    totals, waits, counts
        As of `settle`.
    """
    first = totals[0]
    shares = np.where(first > 0, totals / np.where(first > 0, first, 1.0), 1.0)
    logs = np.log(np.maximum(shares, LEAST))
    logs[:, TAIL] = np.log(np.maximum(shares[:, TAIL], LEAST**POWER))
    users = worst_user(waits, counts, FEW, max(FLOOR, first[WAIT] / counts.sum()))
    losses = aims.slowdown * logs[:, SLOWDOWN] + (1.0 - aims.slowdown) * logs[:, WAIT]
    losses += aims.tail * logs[:, TAIL] / POWER
    losses += np.maximum(logs[:, LONGEST] - np.log(aims.longest), 0.0)
    losses += np.log(np.maximum(users / aims.user, 1.0))
    return MemberComparison(shares[:, SLOWDOWN], shares[:, WAIT], shares[:, LONGEST], users, losses)


def leader(losses: Floats, perturbations: Floats) -> int:
    """Return the member that has lost least, after what chance has added once for all.

    References
    ----------
    docs/ordering.md#the-choice (Kalai 2005, section 2: follow the lazy leader).

    >>> leader(np.array([0.0, -0.5, -0.51]), np.array([0.0, 0.0, 0.02]))
    1
    """
    return int(np.argmin(losses + perturbations))


SLOWDOWN_SHARES = {"slowdown": 1.0, "wait": 0.0, "weighted": 0.5}


class Tuned(Policy):
    """Decide as that member of a portfolio that would have done best on the jobs so far, chosen anew once a day.

    Each member runs the jobs of the run on a shadow machine, which has processors alone, as far as what it needs is
    known; all are compared on the jobs that have ended on all of them. What is decided keeps all limits. When the
    member changes, waiting jobs keep what they have been overtaken by, and the one that has waited longest the place
    that it was promised. O(queue log queue + running log running) per pass, and as much for each instant of each shadow
    machine.

    References
    ----------
    docs/ordering.md#a-policy-that-tunes-itself (ours; the choice: Kalai 2005).
    """

    name = "tuned"
    Settings = TunedSettings

    def __init__(self, settings: TunedSettings) -> None:
        self.settings = settings
        self.portfolio = settings.portfolio()
        self.passes = [GuardedPass(member.settings, predicted=member.predicted) for member in self.portfolio]
        self.shadows = SimulatedMachines(self.portfolio, settings)
        self.overtaken = BypassedWork()
        self.processors = 0
        self.member = min(1, len(self.portfolio) - 1)
        """The deciding member; at first the first order with the first threshold."""
        self.next_choice = 0
        self.promise: tuple[int, float] | None = None
        """The job that has waited longest, and the least patience that a member has promised it, in seconds."""
        share = SLOWDOWN_SHARES[settings.objective]
        self.aims = Aims(share, settings.tail, settings.longest, settings.user)
        self.perturbations: Floats = np.zeros(len(self.portfolio))

    def open(self, opened: ClusterOpened) -> None:
        """Take note of the run: its draws of chance, when it begins, and how large the machine is."""
        for entry in self.passes:
            entry.ordering.open(opened)
        self.shadows.open(opened)
        self.processors = opened.processors
        self.next_choice = opened.time + self.settings.every
        draws = uniform(key_of(opened.seed, opened.cluster), np.arange(len(self.portfolio)), 0)
        self.perturbations = -np.log(1.0 - draws) * self.settings.perturbation

    def observe(self, event: Event) -> None:
        """Notice what happens to the jobs, and how large the machine is."""
        if isinstance(event, CapacityChanged):
            self.processors = event.processors
        self.overtaken.observe(event)
        self.shadows.observe(event)

    def schedule(self, now: int, queue: Queue, running: Running, free: int) -> list[Output]:
        """Return the starts of one pass of the member that decides, which is chosen first where it is time to."""
        self.shadows.advance(now, queue, running)
        outputs: list[Output] = []
        if now >= self.next_choice:
            every = self.settings.every
            self.next_choice += every * ((now - self.next_choice) // every + 1)
            outputs.extend(self._choose(now))

        work = self.overtaken.of(queue, running)
        decides = self.passes[self.member]
        promised = self._promised(queue, decides.guards.patience)
        starts = decides.starts(now, queue, running, free, self.processors, work, promised)
        if starts and not outputs:
            outputs.append(Chosen(member=self.portfolio[self.member].name))
        return [*starts, *outputs]

    def snapshot(self) -> Any:
        """Return the whole state as plain values."""
        return {
            "shadows": self.shadows.snapshot(),
            "overtaken": self.overtaken.snapshot(),
            "processors": self.processors,
            "member": self.member,
            "next_choice": self.next_choice,
            "promise": None if self.promise is None or math.isinf(self.promise[1]) else list(self.promise),
        }

    def restore(self, state: Any) -> None:
        """Take on what `snapshot` returned."""
        self.shadows.restore(state["shadows"])
        self.overtaken.restore(state["overtaken"])
        self.processors, self.member, self.next_choice = state["processors"], state["member"], state["next_choice"]
        self.promise = None if state["promise"] is None else (state["promise"][0], state["promise"][1])

    def _promised(self, queue: Queue, patience: float) -> float:
        """Return the patience that the job that has waited longest is promised, now or under an earlier member."""
        if not len(queue):
            self.promise = None
            return patience
        eldest = int(queue.job_number[0])
        if self.promise is not None and self.promise[0] == eldest:
            patience = min(patience, self.promise[1])
        self.promise = eldest, patience
        return patience

    def _choose(self, now: int) -> list[Chosen]:
        """Choose who decides from now on, and tell where all stand; nothing while too little is known."""
        shadows = self.shadows
        shadows.settle(now)
        jobs = int(shadows.counts.sum())
        if jobs < self.settings.least:
            return []
        comparison = compare(shadows.totals, shadows.waits, shadows.counts, self.aims)
        self.member = leader(comparison.losses, self.perturbations)
        return [Chosen(member=self.portfolio[self.member].name, jobs=jobs, standings=self._standings(comparison))]

    def _standings(self, comparison: MemberComparison) -> tuple[Standing, ...]:
        weights = np.exp((comparison.losses.min() - comparison.losses) / self.settings.perturbation)
        columns = (*comparison, weights / weights.sum())
        names = "slowdown", "wait", "longest_wait", "worst_user", "loss", "weight"
        rows = np.stack(columns).T.round(DIGITS).tolist()
        return tuple(
            Standing(member=member.name, **dict(zip(names, row, strict=True)))
            for member, row in zip(self.portfolio, rows, strict=True)
        )
