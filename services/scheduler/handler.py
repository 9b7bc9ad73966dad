"""Handler of the scheduler stage. It keeps the state of the machine and answers each scheduling point with a `Decided`.

Each pool has its own state and its own policy in a `PoolScheduler`. The handler routes each event to its pool and
merges the decisions of all pools into one answer.
"""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np

from shadowtime.services.scheduler.forecasting import SchedulerState, starts_within, why_none
from shadowtime.services.scheduler.history import DecisionHistory
from shadowtime.services.scheduler.policy import Output, within_limit
from shadowtime.services.scheduler.pool_scheduler import TOO_FEW, PoolScheduler
from shadowtime.services.scheduler.probabilistic import PassState
from shadowtime.services.scheduler.registry import POLICIES
from shadowtime.services.scheduler.tables import enqueue, forget
from shadowtime.services.scheduler.work_limits import MAX_STARTS
from shadowtime.shared.bounds import MAX_LIVE_JOBS
from shadowtime.shared.distributions import point_masses
from shadowtime.shared.kernels import Integers
from shadowtime.shared.messages import (
    Again,
    CapacityChanged,
    Chosen,
    ClusterOpened,
    CutShort,
    Decided,
    Envelope,
    Evaluated,
    Event,
    JobChanged,
    JobEnded,
    JobExpected,
    JobResumed,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    JobWithdrawn,
    Kill,
    RunTimePrediction,
    RunTimeRevision,
    SchedulingPoint,
    Start,
    WaitForecast,
    WalltimeAdjustment,
    construct_unchecked,
)
from shadowtime.shared.spec import Price, parse
from shadowtime.shared.stages import AdvisedStart, RunningJob, StageHandler, only_priority

# Starts of jobs that might be submitted now. The state of the pool does not change.


def starts_if_submitted(
    pool: PoolScheduler, now: int, asked: Sequence[tuple[JobSubmitted, RunTimePrediction | None]]
) -> Iterator[AdvisedStart]:
    """Yield the start of each job as if only this job were submitted now. `asked` has jobs and run-time predictions.

    If no start can be given, the `AdvisedStart` has the reason instead. All jobs are tried in the same sampled futures,
    in which jobs use only processors. No job starts before its memory and GPUs are expected to be free. Quantiles are
    calibrated if the run calibrates its forecasts. O(queue) plus the cost of a sampled forecast for each job.

    References: docs/algorithms.md#sampled-futures.
    """
    futures = pool.policy.futures()
    if futures is None:
        name = pool.policy.name
        why = (
            f"policy {name} cannot be run ahead with its settings; easy, easy-sjbf and probabilistic can with "
            "queue=fcfs or queue=priority, and all-reserve with queue=fcfs and candidates=queue"
        )
        yield from (AdvisedStart(reason=why) for _ in asked)
        return

    queue = deepcopy(pool.queue)
    numbers = (queue.job_number, pool.running.job_number)
    number = 1 + max(int(column.max(initial=0)) for column in numbers)
    for job, prediction in asked:
        job = job.model_copy(update={"time": now, "job_number": number})
        answer = Envelope(run="ask", sequence=0, event=job, run_time=prediction)
        further = pool.asked(job)
        enqueue(queue, job, answer, pool.policy.settings, further)
        row = int(np.flatnonzero(queue.job_number == number)[0])
        starts = futures.starts(SchedulerState(now, queue, pool.running, pool.free), row)
        fits_at = PassState(now, queue, pool.running).fits_at(queue.sizes[row], pool.idle) if any(further) else now
        forget(queue, queue.remove(number))
        if fits_at is None:
            yield AdvisedStart(reason=TOO_FEW)
            continue
        starts = np.maximum(starts, fits_at)
        reason = why_none(now, int(starts.min())) or why_none(now, int(starts.max()))
        if reason is not None:
            yield AdvisedStart(reason=reason)
        else:
            yield _advised_start(pool, now, starts)


def _advised_start(pool: PoolScheduler, now: int, starts: Integers) -> AdvisedStart:
    within = starts_within(now, starts)
    if pool.forecaster is None or pool.forecaster.calibrated is None:
        return AdvisedStart(float(starts.mean()) - now, within)
    within = pool.forecaster.calibrated.shifted(within)
    return AdvisedStart(round(sum(mass * seconds for mass, seconds in point_masses(within)), 6), within)


BLOCKED = WaitForecast(reason="the site does not let it start for now")


class Predicted(NamedTuple):
    """Predictions of the earlier stages for a blocked job."""

    run_time: RunTimePrediction | None
    adjustment: WalltimeAdjustment | None


class Scheduler(StageHandler):
    """Scheduler of one run. Each pool has its own instance of the policy `ClusterOpened.policy`.

    A job is blocked if the site does not let it start for now. A blocked job is not in the queue of its pool. The job
    enters the queue once it is no longer blocked, or just before its start.
    """

    def __init__(self, opened: ClusterOpened) -> None:
        super().__init__(opened)
        if opened.pools is None:
            self.pools = [PoolScheduler(opened, self.capacities[0], "the machine")]
        else:
            named = zip(opened.pools, self.capacities, strict=True)
            self.pools = [
                PoolScheduler(alone(opened, at), room, f"pool {pool.name}", at, pool.types)
                for at, (pool, room) in enumerate(named)
            ]

        self.seeing = [pool for pool in self.pools if pool.policy.sees_all] if len(self.pools) > 1 else []
        """Pools whose policies also observe the jobs of other pools."""
        for pool in self.seeing[1:]:
            pool.policy.share(self.pools[0].policy)
        self.places: dict[int, PoolScheduler] = {}
        """The pool of each job in the system, by job number."""
        self.blocked: dict[int, Predicted] = {}
        """The predictions for each blocked job, by job number."""
        self.passes = DecisionHistory()

    @staticmethod
    def price(opened: ClusterOpened) -> Price:
        """Return the upper limit of memory and work for the policy of a run. The number of pools does not change it."""
        return POLICIES.price(parse(opened.policy))

    def answer(self, envelope: Envelope, known: Any) -> Envelope:
        """Take over the predictions that were made anew, then answer the event."""
        if envelope.revisions:
            self._revise(envelope.revisions)
        return super().answer(envelope, known)

    def _revise(self, revisions: Sequence[RunTimeRevision]) -> None:
        by_pool: dict[PoolScheduler, list[RunTimeRevision]] = {}
        for revision in revisions:
            number = revision.job_number
            if (blocked := self.blocked.get(number)) is not None:
                made = blocked.run_time or RunTimePrediction(point=revision.point, observations=0)
                made = made.replaced(point=revision.point, histogram=revision.histogram)
                self.blocked[number] = blocked._replace(run_time=made)
            elif (pool := self.places.get(number)) is not None:
                by_pool.setdefault(pool, []).append(revision)
        for pool, of_pool in by_pool.items():
            pool.revise(of_pool)

    def on_submitted(self, envelope: Envelope, job: JobSubmitted) -> Envelope:
        """Queue the job in its pool, unless it is blocked."""
        pool = self.places[job.job_number] = self.pools[job.pool or 0]
        if not job.blocked:
            self._beside(pool, job)
            envelope = pool.submit(envelope, job)
        else:
            self.blocked[job.job_number] = Predicted(envelope.run_time, envelope.adjustment)
            if pool.forecaster is not None:
                envelope = envelope.replaced(forecast=BLOCKED)

        self.passes.submit(envelope, job)
        return envelope

    def on_withdrawn(self, envelope: Envelope, withdrawn: JobWithdrawn, job: JobSubmitted) -> Envelope:
        """Take the job out of the queue."""
        pool = self.places.pop(job.job_number)
        if self.blocked.pop(job.job_number, None) is None:
            pool.withdraw(withdrawn)
            self._beside(pool, withdrawn)
        self.passes.forget(job.job_number)
        return envelope

    def on_expected(self, envelope: Envelope, expected: JobExpected, job: JobSubmitted) -> Envelope:
        """Keep the start that the site's own scheduler expects, to explain the wait."""
        self.passes.expect(expected.job_number, expected.start)
        return envelope

    def on_changed(self, envelope: Envelope, changed: JobChanged, old: JobSubmitted, new: JobSubmitted) -> Envelope:
        """Reprioritise a waiting job if only its priority changes. Otherwise withdraw it and submit it anew."""
        if only_priority(changed) and changed.priority is not None and changed.job_number not in self.blocked:
            self.places[changed.job_number].reprioritise(changed)
        return super().on_changed(envelope, changed, old, new)

    def on_running_changed(self, envelope: Envelope, old: RunningJob, new: RunningJob) -> Envelope:
        """Update the resources of a running job, and its limit. The job stays in its pool."""
        changed = envelope.event
        if isinstance(changed, JobChanged):
            pool = self.places[changed.job_number]
            pool.change_running(changed, old, new)
            self._beside(pool, changed)
        return envelope

    def on_suspended(self, envelope: Envelope, suspended: JobSuspended, job: RunningJob) -> Envelope:
        """Free the processors of the job until it resumes."""
        pool = self.places[suspended.job_number]
        pool.suspend(suspended)
        self._beside(pool, suspended)
        return envelope

    def on_resumed(self, envelope: Envelope, resumed: JobResumed, job: RunningJob) -> Envelope:
        """Give the job its processors back."""
        pool = self.places[resumed.job_number]
        pool.resume(resumed, job)
        self._beside(pool, resumed)
        return envelope

    def on_started(self, envelope: Envelope, started: JobStarted, job: JobSubmitted) -> Envelope:
        """Move the job to the running jobs. A blocked job first enters the queue of its pool."""
        pool = self.places[started.job_number]
        if (predicted := self.blocked.pop(started.job_number, None)) is not None:
            enters = job.model_copy(update={"time": started.time, "eligible_time": job.since, "blocked": None})
            pool.submit(envelope.model_copy(update=predicted._asdict()), enters)
            self._beside(pool, enters)

        pool.start(started, job)
        self.passes.start(started)
        self._beside(pool, started)
        return envelope

    def on_ended(self, envelope: Envelope, ended: JobEnded, job: RunningJob) -> Envelope:
        """Free the resources that the job holds."""
        pool = self.places[ended.job_number] if ended.requeued else self.places.pop(ended.job_number)
        pool.end(ended, job)
        self.passes.end(ended, job)
        self._beside(pool, ended)
        return envelope

    def on_capacity(self, envelope: Envelope, changed: CapacityChanged) -> Envelope:
        """Resize a pool."""
        self.pools[changed.pool or 0].resize(changed)
        return envelope

    def on_scheduling_point(self, envelope: Envelope, point: SchedulingPoint) -> Envelope:
        """Replace the scheduling point by a `Decided` with the decisions of all pools, in pool order."""
        decisions = self.pools[0].decide(point)
        for pool in self.pools[1:]:
            decisions = [*decisions, *pool.decide(point)]
        if len(decisions) > MAX_STARTS:
            decisions = within_limit(decisions, sum(len(pool.queue) for pool in self.pools))

        answer = decided(point.time, decisions) if decisions else construct_unchecked(Decided, time=point.time)
        self.passes.decide(answer, obeyed=self.opened.obeys(point.time))
        return envelope.replaced(event=answer)

    def starts_of(self, asked: Sequence[tuple[JobSubmitted, RunTimePrediction | None]]) -> tuple[AdvisedStart, ...]:
        """Return the start of each job as if only this job were submitted now, into the pool of the first job."""
        return tuple(starts_if_submitted(self.pools[asked[0][0].pool or 0], self.time, asked)) if asked else ()

    def _beside(self, pool: PoolScheduler, event: Event) -> None:
        """Pass an event of one pool to the policies of other pools, if they observe all pools."""
        for observer in self.seeing:
            if observer is not pool:
                observer.policy.beside(event)

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as plain values."""
        blocked = [
            [number, *(None if prediction is None else prediction.model_dump() for prediction in predicted)]
            for number, predicted in self.blocked.items()
        ]
        pools = [pool.snapshot() for pool in self.pools]
        return super().snapshot() | {"pools": pools, "blocked": blocked, "passes": self.passes.snapshot()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        super().restore(state)
        for pool, saved, capacity in zip(self.pools, state["pools"], self.capacities, strict=True):
            pool.restore(saved, capacity)
        self.blocked = {
            number: Predicted(
                None if run_time is None else RunTimePrediction.model_validate(run_time),
                None if adjustment is None else WalltimeAdjustment.model_validate(adjustment),
            )
            for number, run_time, adjustment in state["blocked"]
        }
        self.passes.restore(state["passes"])
        jobs = [*self.jobs.waiting.values(), *(job.submitted for job in self.jobs.running.values())]
        self.places = {job.job_number: self.pools[job.pool or 0] for job in jobs}


def decided(time: int, decisions: Sequence[Output]) -> Decided:
    """Return a `Decided` with the decisions sorted by kind.

    If several pools have chosen a configuration, the last one is reported. If several ask for another scheduling
    point, the earliest time counts.

    Raises
    ------
    TypeError
        If a decision has an unknown type.
    ValueError
        If there are too many decisions, or the earliest requested scheduling point is not after `time`.
    """
    starts = [decision for decision in decisions if type(decision) is Start]
    if len(starts) == len(decisions):  # the usual case: starts alone
        return construct_unchecked(Decided, time=time, starts=tuple(starts))
    sorted_: dict[type, list[Any]] = {Start: [], Kill: [], Evaluated: [], CutShort: [], Chosen: [], Again: []}
    for decision in decisions:
        if type(decision) not in sorted_:
            known = ", ".join(kind.__name__ for kind in sorted_)
            raise TypeError(f"a policy returned {type(decision).__name__}; expected {known}")
        sorted_[type(decision)].append(decision)

    _, kills, evaluated, cut, chosen, again = sorted_.values()
    soonest = min((event.time for event in again), default=None)
    if soonest is not None and soonest <= time:
        raise ValueError(f"a policy requests a scheduling point at {soonest}; expected a time after {time}")
    if len(decisions) > MAX_LIVE_JOBS:
        raise ValueError(f"a policy made {len(decisions):,} decisions at once; at most {MAX_LIVE_JOBS:,} are allowed")
    return construct_unchecked(
        Decided,
        time=time,
        starts=tuple(starts),
        kills=tuple(kills),
        evaluated=tuple(evaluated),
        cut_short=tuple(cut) or None,
        chosen=chosen[-1] if chosen else None,
        again=soonest,
    )


def alone(opened: ClusterOpened, at: int) -> ClusterOpened:
    """Return the `ClusterOpened` of a run for one of its pools, as if the pool were the machine.

    If there are several pools, each gets its own cluster name. The seeded random numbers of the pools then differ.
    """
    if opened.pools is None:
        return opened
    pools = opened.pools
    cluster = opened.cluster if len(pools) == 1 else f"{opened.cluster}/{pools[at].name}"
    return opened.model_copy(update={"processors": pools[at].processors, "pools": None, "cluster": cluster})
