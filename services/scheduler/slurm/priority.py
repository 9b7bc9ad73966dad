"""Priorities of Slurm's multifactor plugin: the known jobs, their owners, and the factors of their priorities.

References: docs/algorithms.md#slurm (Slurm 22.05, `src/plugins/priority/multifactor`).
"""

from collections.abc import Iterator
from dataclasses import astuple, dataclass
from typing import Any, NamedTuple

from shadowtime.services.scheduler.slurm.fairshare import NOBODY, Owner, Shares
from shadowtime.services.scheduler.slurm.settings import SlurmSettings
from shadowtime.services.scheduler.tables import NEVER
from shadowtime.services.scheduler.work_limits import PERIODS
from shadowtime.shared.messages import (
    Event,
    JobChanged,
    JobEnded,
    JobResumed,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    JobWithdrawn,
    moment,
)

WAITING, RUNNING, STANDING = range(3)
"""States of a job; a standing job is suspended."""


@dataclass(slots=True)
class KnownJob:
    """A job in the system, of any pool. It waits from `since` on, and its request is `limit`; both in seconds."""

    user: int
    account: int
    partition: int
    qos: int
    processors: int
    nodes: int
    limit: int
    since: int
    state: int = WAITING
    priority: int = 0
    charged: int = 0
    """Time up to which its usage has been charged, in seconds."""

    @property
    def owner(self) -> Owner:
        """Owner of the usage."""
        return self.user, self.account


class Factors(NamedTuple):
    """Contributions of the factors to a priority, as in `sprio`, which prints them without fractions."""

    age: float
    fairshare: float
    size: float
    partition: float
    qos: float


class Priorities:
    """All jobs in the system with their priorities.

    A priority is set when its job is queued or changes. After that, it is calculated anew every `calc_period`, as in
    Slurm.

    Parameters
    ----------
    settings
        Settings of the site.
    processors
        Processors of the first pool; `grow` adds those of other pools. If the settings state the processors of the
        site, these count instead.
    unix_start
        Unix time of second 0.
    """

    def __init__(self, settings: SlurmSettings, processors: int, unix_start: int) -> None:
        self._settings = settings
        self._processors = settings.processors or processors
        self._nodes = settings.nodes or self._processors
        self._partitions = {row.number: row for row in settings.table("partitions")}
        self._qos = {row.number: row for row in settings.table("qos")}
        self._top_partition = max((partition.factor for partition in self._partitions.values()), default=0)
        self._top_qos = max((qos.priority for qos in self._qos.values()), default=0)
        self._phase = (settings.calc_at - unix_start) % settings.calc_period
        self._shares = Shares(
            settings.table("accounts"),
            settings.table("users"),
            settings.half_life,
            classic=settings.fairshare == "classic",
            damping=settings.damping,
        )
        self.fair = self._shares.factors()
        """The fair-share factor of each user and account."""
        self.calculated: int | None = None
        """Time of the last calculation of priorities, in seconds."""
        self.calculations = 0
        """The number of calculations of priorities that were due at a pass."""
        self.jobs: dict[int, KnownJob] = {}
        self._places: dict[int, int] | None = None

    def grow(self, processors: int) -> None:
        """Count the processors of a further pool, unless the settings state those of the site."""
        if not self._settings.processors:
            self._processors += processors
        if not self._settings.nodes:
            self._nodes = self._processors

    def places(self, strangers: dict[int, KnownJob]) -> dict[int, int]:
        """Return the position of each waiting job in the queue of all pools: highest tier and priority first.

        O(waiting log waiting) after a change of the known jobs or with strangers, else O(1).

        `strangers` are further jobs that wait, by number.
        """
        if self._places is None or strangers:
            waiting = {number: job for number, job in self.jobs.items() if job.state == WAITING} | strangers
            order = sorted(waiting, key=lambda number: (-self.tier(waiting[number]), -waiting[number].priority, number))
            places = {number: place for place, number in enumerate(order)}
            if strangers:
                return places
            self._places = places
        return self._places

    def tier(self, job: KnownJob) -> int:
        """Return the tier of a job's partition. Jobs of higher tiers go first, whatever their priorities."""
        partition = self._partitions.get(job.partition)
        return partition.tier if partition else 1

    def factors(self, job: KnownJob, now: int) -> Factors:
        """Return the weighted factors of a job's priority at `now`, in seconds."""
        settings = self._settings
        partition, qos = self._partitions.get(job.partition), self._qos.get(job.qos)
        return Factors(
            settings.weight_age * min(max(now - job.since, 0) / settings.max_age, 1.0),
            settings.weight_fairshare * self.fair.get(job.owner, 1.0),
            settings.weight_size * self._size(job),
            settings.weight_partition * partition.factor / self._top_partition
            if partition and partition.factor
            else 0.0,
            settings.weight_qos * qos.priority / self._top_qos if qos and qos.priority else 0.0,
        )

    def _size(self, job: KnownJob) -> float:
        processors, nodes = job.processors / self._processors, job.nodes / self._nodes
        if self._settings.size_relative:
            part = max(nodes, processors) / max(min(job.limit, NEVER) // 60, 1)
        else:
            part = (nodes + processors) / 2
        return min(max(1.0 - part if self._settings.favor_small else part, 0.0), 1.0)

    def next_calculation(self, now: int) -> int:
        """Return the time of the next calculation of priorities after `now`, in seconds."""
        period = self._settings.calc_period
        return now + period - (now - self._phase) % period

    def advance_pass(self, now: int) -> None:
        """Do all calculations that are due at a pass. If there were any, increase `calculations` by 1."""
        self.calculations += self.advance(now)

    def advance(self, now: int) -> bool:
        """Do all calculations that are due, and return whether there were any. O(periods * running + n).

        Usage is calculated for each period. After `PERIODS` periods or `CHARGES` additions, the rest counts as one
        period. Priorities are calculated once.
        """
        last = now - (now - self._phase) % self._settings.calc_period
        if self.calculated is None or self.next_calculation(self.calculated) > now:
            self.calculated = last if self.calculated is None else self.calculated
            return False
        self.calculated = self._calculate_usage(self.calculated, self.next_calculation(self.calculated))
        period, running = self._settings.calc_period, list(self._running())
        if self.jobs:
            left = min((last - self.calculated) // period, PERIODS - 1)
            charges = [(job.owner, self._weight(job)) for job in running]
            self.calculated += period * self._shares.charge_periods(left, period, charges)
            for job in running:
                job.charged = self.calculated
        if self.calculated < last:
            self.calculated = self._calculate_usage(self.calculated, last)

        self.fair, self._places = self._shares.factors(), None
        for job in self.jobs.values():
            if job.state == WAITING:
                job.priority = self._priority(job, self.calculated)
        return True

    def _calculate_usage(self, before: int, due: int) -> int:
        """Decay all usage from `before` to `due`, in seconds, charge the running jobs, and return `due`."""
        self._shares.decay(due - before)
        for job in self._running():
            self._charge(job, due)
        return due

    def _running(self) -> Iterator[KnownJob]:
        return (job for job in self.jobs.values() if job.state == RUNNING)

    def _charge(self, job: KnownJob, until: int) -> None:
        """Charge the usage of a job since it was last charged."""
        span = max(until - job.charged, 0)
        self._shares.charge(job.owner, span * self._shares.used(span) * self._weight(job))
        job.charged = until

    def _weight(self, job: KnownJob) -> float:
        """Return the usage of a job in each second."""
        qos = self._qos.get(job.qos)
        return job.processors * (qos.usage / 1000 if qos else 1.0)

    def _priority(self, job: KnownJob, now: int) -> int:
        return int(sum(self.factors(job, now)))

    def notice(self, event: Event) -> None:
        """Apply an event of a job in any pool."""
        self._places = None
        if isinstance(event, JobSubmitted):
            self._submit(event)
        elif isinstance(event, JobWithdrawn):
            self.jobs.pop(event.job_number, None)
        elif isinstance(event, JobStarted | JobEnded | JobSuspended | JobResumed | JobChanged):
            job = self.jobs.get(event.job_number)
            if job is None:
                return
            self.advance(event.time)
            if job.state == RUNNING:
                self._charge(job, moment(event))
            if isinstance(event, JobStarted):
                job.state, job.charged, job.processors = RUNNING, moment(event), event.processors
            elif isinstance(event, JobSuspended):
                job.state = STANDING
            elif isinstance(event, JobResumed):
                job.state, job.charged = RUNNING, moment(event)
            elif isinstance(event, JobChanged):
                self._change(job, event)
            elif event.requeued:
                job.state, job.priority = WAITING, self._priority(job, event.time)
            else:
                del self.jobs[event.job_number]

    def _submit(self, event: JobSubmitted) -> None:
        self.advance(event.time)
        job = KnownJob(
            user=_number_or_unknown(event.user_id),
            account=_number_or_unknown(event.group_id),
            partition=_number_or_unknown(event.queue_number),
            qos=_number_or_unknown(event.qos_number),
            processors=event.requested_processors,
            nodes=event.nodes or 1,
            limit=NEVER if event.requested_time is None else event.requested_time,
            since=event.since,
        )
        if job.owner not in self.fair:
            self._shares.join(job.owner)
            self.fair = self._shares.factors()
        job.priority = self._priority(job, event.time)
        self.jobs[event.job_number] = job

    def _change(self, job: KnownJob, event: JobChanged) -> None:
        changes = {
            "user": event.user_id,
            "account": event.group_id,
            "partition": event.queue_number,
            "qos": event.qos_number,
            "processors": event.requested_processors,
            "nodes": event.nodes,
            "limit": NEVER if event.unlimited else event.requested_time,
        }
        for name, value in changes.items():
            if value is not None:
                setattr(job, name, value)
        if job.owner not in self.fair:
            self._shares.join(job.owner)
            self.fair = self._shares.factors()
        if job.state == WAITING:
            job.priority = self._priority(job, event.time)

    def snapshot(self) -> Any:
        """Return the whole state as plain values."""
        return {
            "calculated": self.calculated,
            "calculations": self.calculations,
            "size": [self._processors, self._nodes],
            "shares": self._shares.snapshot(),
            "fair": [[*owner, factor] for owner, factor in self.fair.items()],
            "jobs": [[number, *astuple(job)] for number, job in self.jobs.items()],
        }

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self.calculated, self.calculations, self._places = state["calculated"], state["calculations"], None
        self._processors, self._nodes = state["size"]
        self._shares.restore(state["shares"])
        self.fair = {(user, account): factor for user, account, factor in state["fair"]}
        self.jobs = {number: KnownJob(*rest) for number, *rest in state["jobs"]}


def _number_or_unknown(number: int | None) -> int:
    return NOBODY if number is None else number
