"""A simulated machine that replays a whole log under one policy."""

from typing import NamedTuple

import numpy as np

from shadowtime.services.scheduler.kernels import COLUMNS
from shadowtime.services.scheduler.machine.event_loop import (
    AS_PREDICTED,
    AS_REQUESTED,
    CLOCK,
    FREE,
    Machines,
    advance_one,
)
from shadowtime.services.scheduler.machine.passes import (
    AS_QUEUE,
    AS_SUBMITTED,
    CONSERVATIVE,
    EASY,
    GUARDED,
    IN_TURN,
    REPLANNED,
    CarriedPlan,
    KnownTables,
    MemberArrays,
)
from shadowtime.services.scheduler.ordering import ORDERS, Key, OrderedSettings, Ordering, RunTimeMeasures, compiled
from shadowtime.services.scheduler.policies import (
    Conservative,
    ConservativeSettings,
    Easy,
    EasySjbf,
    Fcfs,
    Guarded,
    Lwf,
    Wfp,
)
from shadowtime.services.scheduler.policy import Policy
from shadowtime.services.scheduler.settings import ForecastSettings, PolicySettings
from shadowtime.services.scheduler.tables import CORRECTIONS, REQUESTED, SLOT, UNKNOWN, Queue, enqueue
from shadowtime.shared.kernels import Integers, IntegerTable, uninterrupted
from shadowtime.shared.messages import ClusterOpened, Decided, Envelope

OUTLASTED = 2
"""First row of the planned times that a job outlasts with a probability `tau`."""

WHOLE = 1 << 53
"""Sums of whole numbers below this are exact in floating point, in whatever order they are added."""


class MachinePolicy(NamedTuple):
    """The configuration of a machine for one policy: columns of one row, and the orders whose bases it needs."""

    members: MemberArrays
    orders: tuple[tuple[Ordering, Key], ...]
    settings: PolicySettings
    taus: tuple[float, ...] = ()
    """Probabilities with which a job outlasts its planned time. Each adds a row of planned times."""

    @property
    def counts_work(self) -> bool:
        """Whether decisions depend on sums of work, which are exact only up to `WHOLE` processor seconds."""
        return bool(np.isfinite(self.members.overtaken).any())


def machine_policy(policy: Policy, opened: ClusterOpened) -> MachinePolicy | None:
    """Return the configuration of a machine for a policy; None if only the policy itself can decide.

    A subclass of a known policy may decide otherwise, so the class must be exactly that of the policy.

    >>> opened = ClusterOpened(time=0, cluster="c", processors=4, policy="easy", mode="closed")
    >>> machine_policy(Lwf(Lwf.Settings()), opened).members.passes.tolist()
    [0]
    >>> machine_policy(Lwf(Lwf.Settings(forecast="yes")), opened) is None
    True
    """
    settings, kind = policy.settings, type(policy)
    if isinstance(settings, ForecastSettings) and settings.forecast:
        return None
    on_requests = getattr(settings, "plan", "predicted") == "requested"
    orders = settings if isinstance(settings, OrderedSettings) else OrderedSettings()
    weight = float(getattr(settings, "weight", 0.0))
    tau = float(getattr(settings, "tau", 0.0))
    taus = (tau,) if tau else ()
    if kind in (Easy, EasySjbf, Wfp):
        passes = EASY
    elif kind is Guarded:
        passes = GUARDED
    elif kind is Fcfs:
        passes = IN_TURN
    elif kind is Lwf:
        passes, orders = IN_TURN, OrderedSettings(queue="saf")  # work is area
    elif kind is Conservative and isinstance(settings, ConservativeSettings) and _plans_only(settings):
        passes = CONSERVATIVE if settings.guarantees else REPLANNED
    else:
        return None
    try:
        return _configured(passes, settings, orders, on_requests=on_requests, weight=weight, taus=taus, opened=opened)
    except ValueError:  # an order has no compiled form, or is that of a plug-in
        return None


def _plans_only(settings: ConservativeSettings) -> bool:
    return (
        settings.speculate == "no" and not settings.test_runs and settings.shape == "requested" and not settings.widen
    )


def _configured(
    passes: int,
    settings: PolicySettings,
    orders: OrderedSettings,
    *,
    on_requests: bool,
    weight: float,
    taus: tuple[float, ...],
    opened: ClusterOpened,
) -> MachinePolicy:
    """Return the configuration. Raise `ValueError` if an order has no compiled form, or is that of a plug-in."""
    ordering = Ordering(orders, on_requests=on_requests)
    ordering.open(opened)
    if not all(key.__module__.startswith("shadowtime.") for key in (ordering.key, ordering.candidate_key)):
        raise ValueError("the order of a plug-in may depend on all jobs of the queue")
    kind, key = compiled(ordering.key)
    candidate_kind, candidate_key = AS_QUEUE, key
    if not ordering.alike:
        candidate_kind, candidate_key = compiled(ordering.candidate_key)
    if ordering.as_submitted and passes != GUARDED:
        kind = AS_SUBMITTED

    unweighted = ORDERS["fcfs"]
    whole = passes, kind, 0, candidate_kind, 1, OUTLASTED if taus else AS_REQUESTED if on_requests else AS_PREDICTED
    guards = orders.threshold, getattr(settings, "overtaken", np.inf), getattr(settings, "patience", np.inf)
    weights = [0.0 if of is unweighted else weight for of in (ordering.key, ordering.candidate_key)]
    columns = [np.array([number], dtype=np.int64) for number in whole]
    columns += [np.array([number], dtype=np.float64) for number in (*guards, *weights)]
    members = MemberArrays._make([*columns, np.array(CORRECTIONS[settings.fallback], dtype=np.int64)])
    return MachinePolicy(members, ((ordering, key), (ordering, candidate_key)), settings, taus)


class MachineJobs(NamedTuple):
    """All jobs of a log in order of (submit time, job number), as arrays of shape (jobs,).

    `requested_times` is `NEVER` for a job without a limit. `run_times` are the run times that end jobs, in seconds: at
    most the request. `users` are numbers; jobs of an unknown user share one.
    """

    numbers: Integers
    submit_times: Integers
    processors: Integers
    requested_times: Integers
    run_times: Integers
    users: Integers


class LogMachine:
    """A machine that replays the jobs of a log. All run times are known to it, but not to the policy.

    Parameters
    ----------
    policy, jobs
        The policy, and the jobs.
    capacity
        Times and processors, shape (2, changes). The first column is the capacity at the beginning.

    >>> from shadowtime.services.scheduler.policies import Fcfs
    >>> opened = ClusterOpened(time=0, cluster="c", processors=4, policy="fcfs", mode="closed")
    >>> policy = machine_policy(Fcfs(ForecastSettings()), opened)
    >>> times = np.array([60, 60])
    >>> jobs = MachineJobs(np.array([1, 2]), np.array([0, 5]), np.array([4, 1]), times, times, np.ones(2))
    >>> machine = LogMachine(policy, jobs, np.array([[0], [4]]))
    >>> machine.plan_as_requested()
    >>> machine.run(1000)
    >>> machine.starts.tolist()
    [0, 60]
    """

    def __init__(self, policy: MachinePolicy, jobs: MachineJobs, capacity: IntegerTable) -> None:
        self.policy, self.jobs, self.capacity = policy, jobs, capacity
        count = len(jobs.numbers)
        self.measures = RunTimeMeasures(policy.taus)
        self.planned: IntegerTable = np.empty((OUTLASTED + len(policy.taus), count), dtype=np.int64)
        self.bases = np.empty((len(policy.orders), count))
        self.exact = True
        """Whether all decisions so far equal those of the pipeline."""
        self.known_to = 0
        """Number of jobs with planned times. Later jobs have not arrived yet."""
        self._none: Integers = np.full(count, -1, dtype=np.int64)
        self._machines = Machines(
            np.zeros((1, 6), dtype=np.int64),
            np.zeros((1, count), dtype=np.int64),
            np.zeros((1, count)),
            np.zeros((1, count), dtype=np.int64),
            np.full((1, count), -1, dtype=np.int64),
            np.full((1, count), -1, dtype=np.int64),
        )
        self._machines.counters[0, [CLOCK, FREE]] = capacity[:, 0]
        self._reserved = CarriedPlan(np.empty((COLUMNS, 0), dtype=np.int64), False, -1, np.inf)

    @property
    def starts(self) -> Integers:
        """The start of each job in seconds; -1 for a job that has not started."""
        starts: Integers = self._machines.starts[0]
        return starts

    @property
    def chosen(self) -> list[Decided]:
        """Decisions in which a portfolio chose its deciding member; empty for a policy with one configuration."""
        return []

    def plan_as_requested(self) -> None:
        """Plan all jobs with their requests."""
        jobs, count = self.jobs, len(self.jobs.numbers)
        queue = Queue(settings=self.policy.settings)
        times = [jobs.requested_times] * (SLOT - REQUESTED)
        queue.fill(np.stack((jobs.numbers, jobs.submit_times, jobs.processors, *times, np.full(count, UNKNOWN))))
        self._take_in(queue)

    def plan(self, arrived: list[Envelope]) -> None:
        """Plan the next jobs, which arrive at one instant, with their predictions.

        Each is the envelope of its submission, as it reaches the scheduler.
        """
        queue = Queue(settings=self.policy.settings)
        for envelope in arrived:
            enqueue(queue, envelope.event, envelope, self.policy.settings)  # type: ignore[arg-type]
        self._take_in(queue)

    def _take_in(self, queue: Queue) -> None:
        there = slice(self.known_to, self.known_to + len(queue))
        self.planned[AS_REQUESTED, there] = queue.requested_time
        self.planned[AS_PREDICTED, there] = queue.predicted_time
        if self.policy.taus:
            self.planned[OUTLASTED:, there] = self.measures.outlasted(queue)
        for row, (ordering, key) in enumerate(self.policy.orders):
            self.bases[row, there] = ordering.keys(key, 0, queue)
        self.known_to += len(queue)

    def run(self, until: int) -> None:
        """Run the machine up to and including the instant `until`, in seconds."""
        jobs = self.jobs
        known = KnownTables(
            self.known_to,
            jobs.submit_times,
            jobs.processors,
            jobs.requested_times,
            self.planned,
            self.bases,
            jobs.run_times,
            self._none,
            self._none,
        )
        with uninterrupted():
            _, self._reserved = advance_one(
                0, until, known, self.capacity, self.policy.members, self._machines, self._reserved, False, 1 << 62
            )
