"""A policy that moves between configurations, by the results that each would have had on the jobs so far."""

import math
from typing import Any, NamedTuple

import numpy as np

from shadowtime.services.scheduler.ordering import BypassedWork
from shadowtime.services.scheduler.policies import GuardedPass
from shadowtime.services.scheduler.policy import GOOD_PREDICTOR, Output, Policy
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
from shadowtime.shared.kernels import Flags, Floats, FloatTable
from shadowtime.shared.messages import DIGITS, CapacityChanged, Chosen, ClusterOpened, Event, Standing

# Choice of the deciding member of a portfolio: the one with the best results so far, longest waits included.

FEW = 20
"""Minimum number of jobs of a user; the mean wait of a user with fewer jobs is not guarded."""

FLOOR = 600.0
"""Minimum seconds that are added to a user's mean waits before comparison, since a ratio of tiny waits means
nothing."""

LEAST = 1e-6
"""Replaces a share of 0, which has no logarithm."""


class Aims(NamedTuple):
    """Aims of a choice, see `TunedSettings`.

    `slowdown` is the weight of the slowdown, 1 - `slowdown` the weight of the wait.
    """

    slowdown: float
    tail: float
    longest: float
    user: float


class MemberComparison(NamedTuple):
    """Results of each member, as ratios to the first member's results; shape (members,).

    Only jobs that have ended on all machines count.
    """

    slowdowns: Floats
    waits: Floats
    longest: Floats
    worst_users: Floats
    losses: Floats
    """Losses that a choice minimises: see `compare`."""


def compare(totals: FloatTable, waits: FloatTable, counts: Floats, aims: Aims) -> MemberComparison:
    """Return the results and the losses of the members. O(members * users).

    All results are ratios to those of the first member. The loss is the logarithm of the objective, plus `tail` times
    the logarithm of the sixteenth-power mean of the waits. If the longest wait exceeds its guard, the logarithm of
    their ratio is added. The same holds for the worst user.

    For the parameters, see `add_results`.
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
    """Return the member of least loss, after adding the random perturbations. These are drawn once for the run.

    References: docs/ordering.md#the-choice (Kalai 2005, section 2: follow the lazy leader).

    >>> leader(np.array([0.0, -0.5, -0.51]), np.array([0.0, 0.0, 0.02]))
    1
    """
    return int(np.argmin(losses + perturbations))


TRIED = 3
"""A threshold is chosen only after the run has lasted this many times as long. Before, its effect is not known yet."""

SLOWDOWN_SHARES = {"slowdown": 1.0, "wait": 0.0, "weighted": 0.5}


class Tuned(Policy):
    """Decide as the member of a portfolio with the best results on the jobs so far, chosen anew once a day by default.

    Each member runs the jobs of the run on a simulated machine, as far as the needed facts are known. This machine has
    processors only; real decisions consider all resources. Members are compared on the jobs that have ended on all
    machines. A member is chosen only after the run has lasted for `TRIED` times its threshold. When the member changes,
    waiting jobs keep their counts of overtaking work, and the job that has waited longest keeps its promise. O(queue
    log queue + running log running) per pass, and as much for each instant of each simulated machine.

    References: docs/ordering.md#a-policy-that-tunes-itself (ours; the choice: Kalai 2005).
    """

    name = "tuned"
    predictor = GOOD_PREDICTOR
    Settings = TunedSettings

    def __init__(self, settings: TunedSettings) -> None:
        self.settings = settings
        self.portfolio = settings.portfolio()
        self.passes = [GuardedPass(member.settings, predicted=member.predicted) for member in self.portfolio]
        self.shadows = SimulatedMachines(self.portfolio, settings)
        self.overtaken = BypassedWork()
        self.processors = 0
        self.begin = 0
        """Beginning of the run, in seconds."""
        self.thresholds: Floats = np.array([0.0, *(member.settings.threshold for member in self.portfolio[1:])])
        """The threshold of each member, in seconds. EASY, the first, has none."""
        self.first_member = min(1, len(self.portfolio) - 1)
        """Index of the member with the first order and the first threshold, which decides until the first choice."""
        self.member = self.first_member
        """Index of the deciding member."""
        self.next_choice = 0
        self.promise: tuple[int, float] | None = None
        """The job that has waited longest, and the least patience that a member has promised it, in seconds."""
        share = SLOWDOWN_SHARES[settings.objective]
        self.aims = Aims(share, settings.tail, settings.longest, settings.user)
        self.perturbations: Floats = np.zeros(len(self.portfolio))

    def open(self, opened: ClusterOpened) -> None:
        """Record the beginning of the run and the size of the machine, and draw the random perturbations."""
        for entry in self.passes:
            entry.ordering.open(opened)
        self.shadows.open(opened)
        self.processors, self.begin = opened.processors, opened.time
        self.next_choice = opened.time + self.settings.every
        draws = uniform(key_of(opened.seed, opened.cluster), np.arange(len(self.portfolio)), 0)
        self.perturbations = -np.log(1.0 - draws) * self.settings.perturbation

    def observe(self, event: Event) -> None:
        """Apply an event to the simulated machines, the overtaking work and the size of the machine."""
        if isinstance(event, CapacityChanged):
            self.processors = event.processors
        self.overtaken.observe(event)
        self.shadows.observe(event)

    def schedule(self, now: int, queue: Queue, running: Running, free: int) -> list[Output]:
        """Return the starts of one pass by the deciding member. If a choice is due, the member is chosen first."""
        self.shadows.advance(now, queue, running)
        outputs: list[Output] = []
        if now >= self.next_choice:
            outputs.extend(self.choose(now))

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
        """Restore the state that `snapshot` returned."""
        self.shadows.restore(state["shadows"])
        self.overtaken.restore(state["overtaken"])
        self.processors, self.member, self.next_choice = state["processors"], state["member"], state["next_choice"]
        self.promise = None if state["promise"] is None else (state["promise"][0], state["promise"][1])

    def _promised(self, queue: Queue, patience: float) -> float:
        """Return the least patience promised to the job that has waited longest, now or by an earlier member."""
        if not len(queue):
            self.promise = None
            return patience
        eldest = int(queue.job_number[0])
        if self.promise is not None and self.promise[0] == eldest:
            patience = min(patience, self.promise[1])
        self.promise = eldest, patience
        return patience

    def choose(self, now: int) -> list[Chosen]:
        """Choose the deciding member, and return the standings of all members. The machines must be advanced to `now`.

        While too few jobs have ended on all machines, keep the member and return nothing.
        """
        shadows, every = self.shadows, self.settings.every
        self.next_choice += every * ((now - self.next_choice) // every + 1)
        shadows.add_results(now)
        jobs = int(shadows.counts.sum())
        if jobs < self.settings.least:
            return []
        comparison = compare(shadows.totals, shadows.waits, shadows.counts, self.aims)
        tried: Flags = self.thresholds * TRIED <= now - self.begin
        self.member = leader(np.where(tried, comparison.losses, math.inf), self.perturbations)
        standings = self._standings(comparison, tried)
        return [Chosen(member=self.portfolio[self.member].name, jobs=jobs, standings=standings)]

    def _standings(self, comparison: MemberComparison, tried: Flags) -> tuple[Standing, ...]:
        least = comparison.losses[tried].min()
        weights = np.exp(np.minimum(least - comparison.losses, 0.0) / self.settings.perturbation) * tried
        columns = (*comparison, weights / weights.sum())
        names = "slowdown", "wait", "longest_wait", "worst_user", "loss", "weight"
        rows = np.stack(columns).T.round(DIGITS).tolist()
        return tuple(
            Standing(member=member.name, **dict(zip(names, row, strict=True)))
            for member, row in zip(self.portfolio, rows, strict=True)
        )
