"""The scheduler's state of one pool: its waiting and running jobs, and its policy."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shadowtime.services.scheduler.policies import shape_of
from shadowtime.services.scheduler.policy import Output, Policy
from shadowtime.services.scheduler.probabilistic import PassState
from shadowtime.services.scheduler.registry import POLICIES
from shadowtime.services.scheduler.tables import (
    ADJUSTED,
    CORRECTIONS,
    NEVER,
    REQUESTED,
    SHORTENED,
    SIZE,
    SLOT,
    START,
    Histograms,
    Queue,
    Running,
    enqueue,
    forget,
    revised,
)
from shadowtime.shared.kernels import Integers
from shadowtime.shared.messages import (
    CapacityChanged,
    ClusterOpened,
    Envelope,
    Event,
    FrozenModel,
    JobChanged,
    JobEnded,
    JobResumed,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    JobWithdrawn,
    Kill,
    PoolCapacity,
    RunTimeRevision,
    SchedulingPoint,
    Start,
    WaitForecast,
    after_change,
    allotted,
    by_type,
    moment,
    needed,
    units_of,
)
from shadowtime.shared.quoting import quote
from shadowtime.shared.spec import parse
from shadowtime.shared.stages import RunningJob

TOO_FEW = "memory or GPUs do not suffice for it, even after all running jobs have ended"
"""Reason of a missing forecast, for a job that waits for memory or GPUs."""

# Decisions must fit. A policy may be a plug-in, and nothing else checks its decisions before they are emitted.


def require_decisions(policy: str, returned: Any) -> None:
    """Raise `TypeError` if a policy returned anything but a list or a tuple of decisions.

    >>> require_decisions("mine", [3])
    Traceback (most recent call last):
    TypeError: mine.schedule: expected a list of decisions, as start(queue, row, FITS_NOW); found '[3]'
    """
    if not isinstance(returned, list | tuple) or not all(isinstance(decision, FrozenModel) for decision in returned):
        raise TypeError(
            f"{policy}.schedule: expected a list of decisions, as start(queue, row, FITS_NOW); "
            f"found {quote(repr(returned))}"
        )


def require_fit(
    policy: str,
    decisions: Sequence[Output],
    queue: Queue,
    running: Running,
    free: int,
    where: str,
    units: Sequence[str],
) -> None:
    """Check that all started jobs wait, and that they fit together.

    The resources of killed jobs count as free.

    Parameters
    ----------
    policy, where
        Names of the policy and its pool in error messages.
    free
        Idle processors.
    units
        Name of each resource in error messages.

    Raise `ValueError` if a started job does not wait or does not fit. The message names the policy, the job and the
    numbers.
    """
    left = running.free(free).tolist()
    for decision in decisions:
        if isinstance(decision, Kill) and (row := running.row(decision.job_number)) is not None:
            held = row[SIZE], *row[START + 1 :]
            left = [free + size for free, size in zip(left, held, strict=True)]
        elif isinstance(decision, Start):
            if (row := queue.row(decision.job_number)) is None:
                raise ValueError(f"policy {policy!r} starts job {decision.job_number}, which does not wait in {where}")
            asked = decision.processors, *row[START:]
            for size, free, unit in zip(asked, left, units, strict=True):
                if size > max(free, 0):
                    raise ValueError(
                        f"policy {policy!r} starts job {decision.job_number} on {size} {unit}; {where} has {free} free"
                    )

            left = [free - size for free, size in zip(left, asked, strict=True)]


def open_policy(opened: ClusterOpened, at: int) -> Policy:
    """Return the policy of a run, opened for the pool with index `at` in the machine."""
    policy = POLICIES.build(parse(opened.policy))
    policy.pool = at
    policy.open(opened)
    return policy


class PoolScheduler:
    """Scheduler of one pool of a machine, independent of the other pools.

    Only events change the state: a decided start counts once the machine has reported it. A suspended job holds its
    memory and GPUs, but no processors.

    Parameters
    ----------
    opened
        The settings of the run, as if the pool were the machine.
    capacity
        Initial capacity of the pool. A resource whose amount is None limits nothing.
    name
        Name of the pool in error messages.
    at
        Index of the pool in the machine, counted from 0.
    types
        Types of GPUs, if the pool has several. Each type is a separate resource, after the GPUs of all types.
    """

    def __init__(
        self, opened: ClusterOpened, capacity: PoolCapacity, name: str, at: int = 0, types: Sequence[str] = ()
    ) -> None:
        self.name = name
        self.capacity = capacity
        self.types = types
        self.units = tuple(
            unit for unit, amount in zip(units_of(types), capacity.amounts, strict=True) if amount is not None
        )
        """Units of the resources that limit jobs in this pool, in the order of `Running.free`."""
        self.further = tuple(unit for unit in ("memory", "gpus") if getattr(capacity, unit) is not None)
        """Resources other than processors that limit jobs in this pool. Types of GPUs follow them."""
        self._of_types = START + 1 + len(self.further)
        self.policy = open_policy(opened, at)
        self.forecaster = self.policy.forecaster()
        self.observe: Callable[[Event], None] = self._observe if self.forecaster else self.policy.observe
        """Pass an event of this pool to the policy and the forecaster, if any, after the pool has handled it."""
        self.histograms = Histograms()
        settings, count = self.policy.settings, len(self.units) - 1
        self.queue = Queue(self.histograms, settings, count)
        self.running = Running(CORRECTIONS[settings.fallback], self.histograms, settings, count)
        self.reshaped: dict[int, tuple[int, ...]] = {}
        """Queue rows, by job number, of running jobs with another size or limit than in the queue."""
        self.suspended: dict[int, tuple[int, ...]] = {}
        """Rows of the suspended jobs, by job number. They are taken out of the table of running jobs."""
        self.used = 0
        """Processors that running jobs hold; those of suspended jobs are free."""

    @property
    def free(self) -> int:
        """Idle processors; below zero when the pool has shrunk or a recorded log overlaps."""
        return self.capacity.processors - self.used

    @property
    def amounts(self) -> list[int]:
        """Capacity of each resource that limits jobs here, in the order of `Running.free`."""
        return [getattr(self.capacity, unit) for unit in ("processors", *self.further)] + [*self.capacity.of_types]

    @property
    def idle(self) -> Integers:
        """Free amount of each resource, in the order of `Running.free`. O(running jobs)."""
        has = np.array(self.amounts, dtype=np.int64)
        for row in self.suspended.values():
            has[1:] -= np.array(row[START + 1 :], dtype=np.int64)
        idle: Integers = has - self.running.sizes.sum(axis=0)
        return idle

    def _observe(self, event: Event) -> None:
        self.policy.observe(event)
        if self.forecaster:
            self.forecaster.observe(event)

    def submit(self, envelope: Envelope, job: JobSubmitted) -> Envelope:
        """Queue the job with its prediction and adjusted request. Forecast its wait if there is a forecaster."""
        enqueue(self.queue, job, envelope, self.policy.settings, self.asked(job))
        if self.forecaster is not None:
            forecast = self.forecaster.forecast(job.time, self.queue, self.running, self.free, job.job_number)
            envelope = envelope.replaced(forecast=self._with_gpus(forecast, job))
        self.observe(job)
        return envelope

    def _with_gpus(self, forecast: WaitForecast, job: JobSubmitted) -> WaitForecast:
        """Return a forecast that is no earlier than the time at which all resources of the job are expected to be free.

        Forecasts count processors alone. They change only for jobs with GPUs, in a pool with several types.
        O(running log running).
        """
        row = self.queue.row(job.job_number)
        if not (self.types and job.gpus) or forecast.wait is None or row is None:
            return forecast
        size = np.array([row[SIZE], *row[START:]], dtype=np.int64)
        fits_at = PassState(job.time, self.queue, self.running).fits_at(size, self.idle)
        if fits_at is None:
            return WaitForecast(reason=TOO_FEW)
        least = fits_at - job.time
        within = forecast.starts_within
        return forecast.replaced(
            wait=max(forecast.wait, least),
            starts_within=within and tuple((level, max(seconds, least)) for level, seconds in within),
        )

    def revise(self, revisions: Sequence[RunTimeRevision]) -> None:
        """Take over predictions that were made anew, for jobs that wait or run in this pool."""
        waiting: list[tuple[int, ...]] = []
        running: list[tuple[int, ...]] = []
        for revision in revisions:
            if (row := self.queue.row(revision.job_number)) is not None:
                waiting.append(revised(self.queue, row, revision))
            elif (row := self.running.row(revision.job_number)) is not None:
                running.append(revised(self.queue, row, revision))
        if waiting:
            self.queue.replace(waiting)
        if running:
            self.running.replace(running)
        self.policy.note_revisions()
        if self.forecaster is not None:
            self.forecaster.forget()

    def withdraw(self, withdrawn: JobWithdrawn) -> None:
        """Take the job out of the queue."""
        forget(self.queue, self.queue.remove(withdrawn.job_number))
        self.observe(withdrawn)

    def reprioritise(self, changed: JobChanged) -> None:
        """Change the priority of the waiting job, and nothing else."""
        if changed.priority is not None:
            self.queue.priorities[changed.job_number] = changed.priority
        self.observe(changed)

    def change_running(self, changed: JobChanged, old: RunningJob, new: RunningJob) -> None:
        """Update the resources of a running or suspended job.

        A new limit caps all planned times of the job. A planned time that was its limit is the new limit.
        """
        number, processors = changed.job_number, new.started.processors
        suspended = number in self.suspended
        row = list(self.suspended[number] if suspended else self.running.remove(number))
        if not suspended:
            self.used += processors - row[SIZE]
        row[SIZE] = processors
        for at, resource in enumerate(self.further, START + 1):
            if (held := getattr(changed, resource)) is not None:
                row[at] = held
        if self.types and changed.gpus is not None:
            row[self._of_types :] = after_change(row[self._of_types :], changed.gpus)
        if new.submitted.priority is not None:
            self.queue.priorities[number] = new.submitted.priority
        if new.limit != old.limit:
            limit = NEVER if new.limit is None else new.limit
            self.reshaped.setdefault(number, self._as_queued(row, old.submitted))
            planned = row[ADJUSTED : SHORTENED + 1]
            row[ADJUSTED : SHORTENED + 1] = [
                limit if value == row[REQUESTED] else min(value, limit) for value in planned
            ]
            row[REQUESTED] = limit
        if suspended:
            self.suspended[number] = tuple(row)
        else:
            self.running.add(tuple(row))

        self.observe(changed)

    def suspend(self, suspended: JobSuspended) -> None:
        """Free the processors of the job until it resumes. The job keeps its memory and GPUs."""
        row = self.suspended[suspended.job_number] = self.running.remove(suspended.job_number)
        self.used -= row[SIZE]
        self.observe(suspended)

    def resume(self, resumed: JobResumed, job: RunningJob) -> None:
        """Give the job its processors back. Its start is moved later by its total time in suspension."""
        row = list(self.suspended.pop(resumed.job_number))
        row[START] = moment(job.started) + job.stood_still(moment(resumed))
        self.running.add(tuple(row))
        self.used += row[SIZE]
        self.observe(resumed)

    def start(self, started: JobStarted, job: JobSubmitted) -> None:
        """Move the job to the running jobs. The planned times of a moldable job are scaled to its size."""
        row = self.queue.remove(started.job_number)
        number, submit_time, requested, *times = row[:SLOT]
        if started.processors != requested and job.moldable:
            self.reshaped[number] = row
            times = [shape_of(job, started.processors).seconds(time) for time in times]
        placed = number, submit_time, started.processors, *times, row[SLOT]
        further = list(row[START:])
        if self.types and (job.gpus or started.gpu_types):
            further[len(self.further) :] = self._got(started, job)
        self.running.add((*placed, moment(started), *further))
        self.used += started.processors
        self.observe(started)

    def end(self, ended: JobEnded, job: RunningJob) -> None:
        """Free the resources that the job holds. A requeued job takes its former place in the queue."""
        number = ended.job_number
        row = self.suspended.pop(number, None)
        if row is None:
            row = self.running.remove(number)
            self.used -= row[SIZE]
        as_queued = self.reshaped.pop(number, None)
        if ended.requeued:
            self.queue.add(as_queued or self._as_queued(row, job.submitted))
        else:
            forget(self.queue, row)

        self.observe(ended)

    def _as_queued(self, row: Sequence[int], submitted: JobSubmitted) -> tuple[int, ...]:
        """Return the queue row of a running job that waits again with its former request."""
        return (*row[:SIZE], submitted.requested_processors, *row[SIZE + 1 : START], *self.asked(submitted))

    def resize(self, changed: CapacityChanged) -> None:
        """Change the capacity of the pool. The policy sees the event as if the pool were the machine."""
        self.capacity = self.capacity.changed(changed, self.types)
        self.observe(changed.model_copy(update={"pool": None}) if changed.pool else changed)

    def decide(self, point: SchedulingPoint) -> Sequence[Output]:
        """Return the decisions of the policy.

        Raises
        ------
        ValueError
            If the policy starts a job that does not wait here, or starts more than fits into the free resources.
        TypeError
            If the policy returns no sequence of decisions.
        """
        if self.further:
            self.running.idle[:] = self.idle
        free = self.capacity.processors - self.used
        decisions = self.policy.schedule(point.time, self.queue, self.running, free)
        if type(decisions) is not list or (decisions and not isinstance(decisions[0], FrozenModel)):
            require_decisions(self.policy.name, decisions)
        if decisions:
            taken = sum([decision.processors for decision in decisions if type(decision) is Start])
            if self.further or taken > free:
                require_fit(self.policy.name, decisions, self.queue, self.running, free, self.name, self.units)

        self.observe(point)
        return decisions

    def asked(self, job: JobSubmitted) -> list[int]:
        """Return the amount that a job requests of each further resource that limits jobs in this pool."""
        if not self.further:
            return []
        asked = [getattr(job, unit) or 0 for unit in self.further]
        return [*asked, *needed(self.types, job.gpu_type, job.gpus)] if self.types else asked

    def _got(self, started: JobStarted, job: JobSubmitted) -> tuple[int, ...]:
        """Return the GPUs of each type that a job got at its start: as stated, or else by the rule of `allotted`."""
        if started.gpu_types is not None:
            return by_type(self.types, started.gpu_types)
        return allotted(self.types, self.idle[1 + len(self.further) :].tolist(), job.gpu_type, job.gpus)

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state, without the capacity, as plain values."""
        return {
            "policy": self.policy.own_snapshot() if self.policy.pool else self.policy.snapshot(),
            "histograms": self.histograms.snapshot(),
            "queue": self.queue.snapshot(),
            "fractions": list(self.queue.fractions.items()),
            "priorities": list(self.queue.priorities.items()),
            "percentiles": list(self.queue.percentiles.items()),
            "running": self.running.snapshot(),
            "suspended": list(self.suspended.values()),
            "reshaped": list(self.reshaped.values()),
            "forecaster": self.forecaster and self.forecaster.snapshot(),
        }

    def restore(self, state: dict[str, Any], capacity: PoolCapacity) -> None:
        """Restore the state that `snapshot` returned, and a capacity."""
        self.capacity = capacity
        self.policy.restore(state["policy"])
        self.histograms.restore(state["histograms"])
        self.queue.restore(state["queue"])
        self.queue.fractions, self.queue.priorities = dict(state["fractions"]), dict(state["priorities"])
        self.queue.percentiles = dict(state["percentiles"])
        self.running.restore(state["running"])
        self.reshaped = {number: (number, *rest) for number, *rest in state["reshaped"]}
        self.suspended = {number: (number, *rest) for number, *rest in state["suspended"]}
        self.used = int(self.running.processors.sum())
        if self.forecaster is not None:
            self.forecaster.restore(state["forecaster"])
