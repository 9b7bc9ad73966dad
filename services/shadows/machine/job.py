"""One job on the cluster and in the shadow of it: what is known of its length, and when it ends in the shadow.

The rule: docs/shadows.md#how-a-shadow-runs.
"""

from dataclasses import asdict, dataclass
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
"""Seconds that a job runs at least in the shadow: ends come first at an instant, so none may end as it starts."""


@dataclass(slots=True, eq=False)
class ShadowJob:
    """A job from its submission to its end; times in seconds.

    On the cluster it `started` on `processors`, was suspended for `lost` seconds and is since `stopped`; it runs longer
    than `outlasts` seconds, which is all that is known before its `run_time` is. It may be `blocked` or `held` there,
    or have `left` the queue; then, or once it has ended, it is `over`. In the shadow it is `due` if one of the same
    number is there before it, gets its `start` `on` processors for `limit` seconds, is `freed` since it is presumed to
    be over, `stood` still for so many seconds before, and is `done`; it is `predicted` to run for so long.
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

    def began(self, event: JobStarted) -> None:
        """Note that it has started on the cluster."""
        self.started, self.processors, self.stopped, self.lost = moment(event), event.processors, None, 0

    def paused(self, event: JobSuspended) -> None:
        """Note that it was suspended there."""
        self.stopped = moment(event)

    def went_on(self, event: JobResumed) -> None:
        """Note that it was resumed there."""
        if self.stopped is not None:
            self.lost += moment(event) - self.stopped
            self.stopped = None

    def ended(self, event: JobEnded) -> None:
        """Note that it has ended there: its length is known, or that it is longer than it has run."""
        if event.requeued:
            if self.processors == self.job.requested_processors:
                self.outlasts = max(self.outlasts, event.run_time)
            self.started = self.stopped = None
            return

        self.outcome, self.over = event.outcome, True
        longer = event.outcome == "limit"  # it would have gone on
        self.run_time = max(event.own_run_time + longer, SHORTEST)

    def withdrawn(self, event: JobWithdrawn) -> None:
        """Note that it left the queue of the cluster: until it is released, or how long it would run nobody will know.

        Then, where it has started in the shadow, it runs there until now, or to its limit.
        """
        if event.reason == "held":
            self.held = True
        else:
            self.left, self.over, self.outcome = event.time, True, "cancelled"

    def changed(self, event: JobChanged) -> None:
        """Note whether it may not start there for now."""
        if event.blocked is not None:
            self.blocked = event.blocked

    @property
    def length(self) -> int | None:
        """How long it runs, in seconds, on the processors that it requested; None if nobody knows yet."""
        if self.run_time is None and self.left is not None and self.start is not None:
            return max(min(self.left - self.start, self._requested_time), SHORTEST)
        return self.run_time

    def surely(self, now: int) -> int:
        """Return the seconds that it is known at `now` to run longer than; -1 if nothing is known."""
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
        )

    @property
    def by(self) -> tuple[int, int]:
        """Factor of its times in the shadow, and divisor."""
        return ratio(self.job.requested_processors, self.on, self.job.speedup)

    def execution(self) -> Execution:
        """Return how it runs in the shadow; one of unknown length reaches its limit there."""
        start, length = 0 if self.start is None else self.start, self.length
        job = self._as_job(self._requested_time + 1 if length is None else length)
        return Execution(job, start, self.on, self.limit, self.by)

    def known_end(self, now: int) -> int | None:
        """Return when it ends in the shadow; None if that is not known at `now`.

        One that was presumed to be over goes on, or ends, as soon as it is known for how long it runs.
        """
        if self.freed is not None:
            return None if self.length is None else self.freed
        if self.length is None and (self.limit is None or not self._exceeds(now, self.limit)):
            return None
        return self.execution().end_time + self.stood

    def _exceeds(self, now: int, limit: int) -> bool:
        surely = self.surely(now)
        return surely >= 0 and reshaped_time(surely, self.by) >= limit

    def runs_until(self, now: int) -> int:
        """Return up to when it surely runs in the shadow, by what is known at `now`, where its end is not known."""
        start = 0 if self.start is None else self.start
        return start + reshaped_time(max(self.surely(now), 0), self.by)

    def presumed_end(self, now: int) -> tuple[int | None, bool]:
        """Return when it is presumed to end in the shadow, if so, and whether at its limit.

        It runs as long as predicted; if it is known to run longer, twice as long, then to its request
        (docs/algorithms.md#wait-forecasts). One that is known to run longer than all that runs on.
        """
        start, surely = self.stood + (0 if self.start is None else self.start), self.surely(now)
        predicted = [] if self.predicted is None else [ceil(self.predicted), ceil(2 * self.predicted)]
        requested = [] if self.job.requested_time is None else [self.job.requested_time]
        lengths = [length for length in predicted + requested if length > surely]
        if not lengths:
            return None, False
        run_time = max(reshaped_time(lengths[0], self.by), SHORTEST)
        if self.limit is not None and self.limit <= run_time:
            return start + self.limit, True
        return start + run_time, False

    def finished(self, time: int, now: int) -> JobEnded | JobSuspended | JobResumed:
        """Return how its end is told at a time, by what is known at `now`.

        As a stop where it is presumed to be over; as a trial that was cut, which waits again, where it is presumed to
        reach the limit of one; and where it was stopped too early it goes on, for as long as it has run too little.
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
        """Return it as plain values."""
        return asdict(self) | {"job": self.job.model_dump()}

    @classmethod
    def of(cls, state: dict[str, Any]) -> "ShadowJob":
        """Return what `snapshot` returned."""
        return cls(**state | {"job": JobSubmitted.model_validate(state["job"])})
