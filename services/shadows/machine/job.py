"""One job on the cluster and in its shadow: the known part of its run time, and its end in the shadow.

The rule: docs/shadows.md#how-a-shadow-runs.
"""

from dataclasses import dataclass
from math import ceil
from typing import Any

from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.cluster import OUTCOMES, Execution, Job
from shadowtime.shared.messages import (
    JobChanged,
    JobEnded,
    JobResumed,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    JobWithdrawn,
    Outcome,
    moment,
    ratio,
    reshaped_time,
)

STATUSES: dict[Outcome, int | None] = {outcome: status for status, outcome in OUTCOMES.items()}

SHORTEST = 1
"""Least run time in the shadow, in seconds. Ends precede starts at an instant, so no job may end as it starts."""


@dataclass(slots=True, eq=False)
class ShadowJob:
    """A job from its submission to its end; times in seconds.

    On the cluster: the job `started` on `processors`. Its past suspensions lasted `lost` seconds in total. A present
    suspension began at `stopped`. `outlasts` is a lower bound of its run time, in seconds, until `run_time` is known.
    The job may be `blocked` or `held`, or have `left` the queue. It is `over` once it has left or ended.

    In the shadow: the job is `due` while it waits for an earlier job of the same number to be done. The job starts at
    `start` on `on` processors, with a `limit`. `predicted` is its predicted run time. At `freed` it released its
    processors, because it was presumed to be over or was suspended. Its earlier suspensions lasted `stood` seconds in
    total. It is `given_up` if an exact shadow has waited too long for its start on the cluster: then its predicted run
    time counts. It is `done` once it has left or ended.
    """

    job: JobSubmitted
    started: int | None = None
    processors: int = 0
    stopped: int | None = None
    lost: int = 0
    outlasts: int = -1
    run_time: int | None = None
    outcome: Outcome = "completed"
    left: int | None = None
    blocked: bool = False
    held: bool = False
    over: bool = False
    due: bool = False
    start: int | None = None
    on: int = 0
    limit: int | None = None
    freed: int | None = None
    stood: int = 0
    predicted: float | None = None
    done: bool = False
    given_up: bool = False

    def began(self, event: JobStarted) -> None:
        """Record the start of the job on the cluster."""
        self.started, self.processors, self.stopped, self.lost = moment(event), event.processors, None, 0

    def paused(self, event: JobSuspended) -> None:
        """Record the suspension of the job on the cluster."""
        self.stopped = moment(event)

    def went_on(self, event: JobResumed) -> None:
        """Record the resumption of the job on the cluster."""
        if self.stopped is not None:
            self.lost += moment(event) - self.stopped
            self.stopped = None

    def ended(self, event: JobEnded) -> None:
        """Record the end of the job on the cluster. This gives its run time; for a requeued job, only a lower bound."""
        if event.requeued:
            if self.processors == self.job.requested_processors:
                self.outlasts = max(self.outlasts, event.run_time)
            self.started = self.stopped = None
            return

        self.outcome, self.over = event.outcome, True
        longer = event.outcome == "limit"  # without the limit, the job would have run longer
        self.run_time = max(event.own_run_time + longer, SHORTEST)

    def withdrawn(self, event: JobWithdrawn) -> None:
        """Record that the job left the queue of the cluster.

        A held job comes back when it is released. The run time of any other job stays unknown. If that job has started
        in the shadow, it runs there until it leaves the cluster's queue, but at most for its requested time.
        """
        if event.reason == "held":
            self.held = True
        else:
            self.left, self.over, self.outcome = event.time, True, "cancelled"

    def changed(self, event: JobChanged) -> None:
        """Record whether the job is blocked from starting on the cluster."""
        if event.blocked is not None:
            self.blocked = event.blocked

    @property
    def length(self) -> int | None:
        """Run time of the job in seconds on its requested processors; None if it is not known yet."""
        if self.run_time is None and self.left is not None and self.start is not None:
            return max(min(self.left - self.start, self._requested_time), SHORTEST)
        return self.run_time

    def least_known(self, now: int) -> int:
        """Return the lower bound of the job's run time that is known at `now`, in seconds; -1 if there is none."""
        if self.started is None or self.processors != self.job.requested_processors:
            return self.outlasts
        stood_still = self.lost + (0 if self.stopped is None else now - self.stopped)
        return max(self.outlasts, now - self.started - stood_still)

    @property
    def _requested_time(self) -> int:
        return MAX_DURATION if self.job.requested_time is None else self.job.requested_time

    def _as_job(self, run_time: int) -> Job:
        job = self.job
        return Job(
            *(job.job_number, job.time, None, run_time, self._requested_time, job.requested_processors),
            *(None, None, None, None, None, STATUSES[self.outcome]),
            pool=job.pool,
            memory=job.memory,
            gpus=job.gpus,
            gpu_type=job.gpu_type,
        )

    @property
    def by(self) -> tuple[int, int]:
        """Factor and divisor that convert times on the requested processors to times in the shadow."""
        return ratio(self.job.requested_processors, self.on, self.job.speedup)

    def execution(self) -> Execution:
        """Return the execution of the job in the shadow. A job of unknown run time is assumed to reach its limit."""
        start, length = 0 if self.start is None else self.start, self.length
        job = self._as_job(self._requested_time + 1 if length is None else length)
        return Execution(job, start, self.on, self.limit, self.by)

    def known_end(self, now: int) -> int | None:
        """Return the end time of the job in the shadow; None if it is not known at `now`.

        A job that was presumed to be over continues, or ends, as soon as its run time is known.
        """
        if self.freed is not None:
            return None if self.length is None else self.freed
        if self.length is None and not self._exceeds_limit(now):
            return None
        return self.execution().end_time + self.stood

    def _exceeds_limit(self, now: int) -> bool:
        """Return whether the limit certainly ends the job, which runs for at least another second on the cluster."""
        least, start = self.least_known(now), 0 if self.start is None else self.start
        return least >= 0 and Execution(self._as_job(least + 1), start, self.on, self.limit, self.by).cut

    def runs_until(self, now: int) -> int:
        """Return the time until which the job runs in the shadow at least, as known at `now`, if its end is unknown.

        It runs for at least another second on the cluster. So it ends in the shadow after this time.
        """
        start, least = 0 if self.start is None else self.start, max(self.least_known(now), 0) + 1
        return Execution(self._as_job(least), start, self.on, self.limit, self.by).end_time - 1

    def presumed_end(self, now: int) -> tuple[int | None, bool]:
        """Return the presumed end time of the job in the shadow, and whether the job ends at its limit.

        The presumed run time is the first of three values that the job has not exceeded: the prediction, twice the
        prediction, the request (docs/algorithms.md#wait-forecasts). The end time is None if the job has exceeded all.
        """
        start, least = self.stood + (0 if self.start is None else self.start), self.least_known(now)
        predicted = [] if self.predicted is None else [ceil(self.predicted), ceil(2 * self.predicted)]
        requested = [] if self.job.requested_time is None else [self.job.requested_time]
        lengths = [length for length in predicted + requested if length > least]
        if not lengths:
            return None, False
        run_time = max(reshaped_time(lengths[0], self.by), SHORTEST)
        if self.limit is not None and self.limit <= run_time:
            return start + self.limit, True
        return start + run_time, False

    def finished(self, time: int, now: int) -> JobEnded | JobSuspended | JobResumed:
        """Return the event of the job's known or presumed end at `time`, as known at `now`.

        A job that is presumed to be over is suspended. A trial run that is presumed to reach its limit ends, and the
        job waits again. A job that was suspended too early resumes for the rest of its run time.
        """
        execution, known = self.execution(), self.known_end(now)
        number, length = self.job.job_number, execution.end_time - execution.start_time
        if known is None and not (execution.on_trial and self.presumed_end(now)[1]):
            return JobSuspended(time=time, job_number=number)
        if self.freed is not None:
            if length > self.freed - execution.start_time - self.stood:
                return JobResumed(time=time, job_number=number)
            known = max(self.freed, execution.end_time + self.stood)

        ended = execution.ended(time)
        if known is None or known == time == execution.end_time:
            return ended
        return ended.model_copy(update={"run_time": length, "happened": None if known == time else known})

    def snapshot(self) -> dict[str, Any]:
        """Return all fields as plain values."""
        return {name: getattr(self, name) for name in self.__slots__} | {"job": self.job.model_dump()}

    @classmethod
    def of(cls, state: dict[str, Any]) -> "ShadowJob":
        """Return the job whose fields `snapshot` returned."""
        return cls(**state | {"job": JobSubmitted.model_validate(state["job"])})
