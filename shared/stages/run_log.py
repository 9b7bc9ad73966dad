"""The checked log of a run: its state, and the rules for its events. An event is checked once for all readers."""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from shadowtime.shared.errors import LogViolation, SnapshotMismatch
from shadowtime.shared.messages import (
    CapacityChanged,
    ClusterClosed,
    ClusterOpened,
    Decided,
    Envelope,
    GpuType,
    JobChanged,
    JobEnded,
    JobExpected,
    JobResumed,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    JobWithdrawn,
    MachineCapacity,
    Rejected,
    SchedulingPoint,
    allotted,
    by_type,
)
from shadowtime.shared.stages.jobs_in_system import JobsInSystem, RunningJob, new_request, only_priority


class EventRule(NamedTuple):
    """The requirements of an event, and its effect on the log.

    `check` returns the job that the event concerns, or raises `LogViolation`. `change` gets this job as last argument.
    """

    check: Callable[["RunLog", Any], Any]
    change: Callable[["RunLog", Any, Any], None]


NOTHING = EventRule(lambda log, event: None, lambda log, event, known: None)


class RunLog:
    """The state of a run: its time, its machine, and the jobs that wait and run. O(1) for most events.

    Each reader calls `check` for an event, handles it, and then calls `mark_read`. The event is applied after the last
    reader's `mark_read`. So all readers see the state before the event.

    >>> log = RunLog(ClusterOpened(time=0, cluster="c", processors=4, policy="easy", mode="closed"))
    >>> log.check(Envelope(run="r", sequence=1, event=JobSubmitted(time=5, job_number=7, requested_processors=2)))
    >>> log.mark_read()
    >>> log.time, list(log.jobs.waiting)
    (5, [7])
    """

    def __init__(self, opened: ClusterOpened) -> None:
        self.time = opened.time
        self.closed = False
        self.jobs = JobsInSystem()
        self.capacities = MachineCapacity(opened.processors, opened.pools or ())
        self._opened = opened
        self._readers = 1
        self._through = 0
        self._event: Any = None
        self._known: Any = None

    def check(self, envelope: Envelope) -> Any:
        """Check an event, and return the waiting or running job that it concerns, as before the event.

        For a change, return the job before and after the change. For a submission, and for an event that concerns no
        job, return None.

        Raise `LogViolation` if the event contradicts the log; nothing has changed then.
        """
        event = envelope.event
        if event is self._event:  # already checked for another reader
            return self._known
        kind = type(event)
        if kind is not Rejected:  # a rejected event changed nothing in the previous stage, not even its time
            if self._through and kind is not Decided:
                raise LogViolation(f"{event.kind} at {event.time} replaces an event that other stages have read")
            if event.time < self.time:
                raise LogViolation(f"{event.kind} at {event.time} follows an event at {self.time}: time went back")
            if self.closed:
                raise LogViolation(f"{event.kind} at {event.time}: run {envelope.run!r} was closed at {self.time}")
            if kind is ClusterOpened:
                raise LogViolation(f"run {envelope.run!r} was already opened at {self._opened.time}")

        self._known = self._RULES[kind].check(self, event)
        self._event = event
        return self._known

    def mark_read(self) -> None:
        """Record that one reader has handled the checked event. Apply the event after the last reader.

        A rejected event is never applied.
        """
        event = self._event
        kind = type(event)
        if kind is not Rejected:
            self._through += 1
            if self._through < self._readers:
                return
            self._RULES[kind].change(self, event, self._known)
            self.time = event.time

        self._event, self._through = None, 0

    def add_reader(self, other: "RunLog") -> None:
        """Add the reader of another log. It reads this log from now on.

        Raise `SnapshotMismatch` if the other log is at another position.
        """
        if self.position() != other.position():
            raise SnapshotMismatch(
                "two stages of a run must be at the same position of its log; "
                f"found {self.summary()} and {other.summary()}"
            )
        self._readers += 1

    def position(self) -> tuple[Any, ...]:
        """Return the state of the run, for comparison with another log."""
        return self.time, self.closed, list(self.capacities), self.jobs.waiting, self.jobs.running

    def summary(self) -> str:
        """Return the time and the numbers of jobs as text, for errors."""
        return f"{self.time} s with {len(self.jobs.waiting)} waiting and {len(self.jobs.running)} running jobs"

    def snapshot(self) -> dict[str, Any]:
        """Return the state of the run as plain values."""
        state = {"time": self.time, "closed": self.closed, "capacities": self.capacities.snapshot()}
        return state | {"jobs": self.jobs.snapshot()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        self.time, self.closed = state["time"], state["closed"]
        self.capacities.restore(state["capacities"])
        self.jobs.restore(state["jobs"])
        self._event, self._through = None, 0

    def _submitted(self, event: JobSubmitted) -> None:
        self.jobs.require_new(event)
        opened = self._opened
        if opened.pools or event.requested_processors > opened.processors or event.pool:
            asked = event.requested_processors, event.memory, event.gpus
            self.capacities.require(f"job {event.job_number} requests", event.pool, asked, event.gpu_type)

    def _changed(self, event: JobChanged) -> tuple[JobSubmitted, JobSubmitted] | tuple[RunningJob, RunningJob]:
        job = self.jobs.require_known(event)
        now = job.submitted if isinstance(job, RunningJob) else job
        new = now.model_copy(update=new_request(event))
        pool = now.pool if isinstance(job, RunningJob) else new.pool  # a running job stays in its pool
        asked = new.requested_processors, new.memory, new.gpus
        self.capacities.require(f"job {event.job_number} changed to", pool, asked, new.gpu_type)
        if isinstance(job, RunningJob):
            return job, job.changed(event)
        if not only_priority(event):  # the job counts as submitted now, but keeps the beginning of its wait
            new = new.model_copy(update={"time": event.time, "eligible_time": job.since})
        return job, new

    def _started(self, event: JobStarted) -> JobSubmitted:
        job = self.jobs.require_waiting(event)
        if self._opened.pools or event.processors > self._opened.processors:
            self.capacities.require(f"job {event.job_number} starts on", job.pool, (event.processors, None, None))
        return job

    def _start(self, event: JobStarted, job: JobSubmitted) -> None:
        """Apply a start. If the event does not state the types of the job's GPUs, `allotted` chooses them: O(running).

        The stage `scheduler` applies the same rule (`PoolScheduler.start`).
        """
        at = job.pool or 0
        types = self.capacities.types[at] if job.gpus else ()
        if types and event.gpu_types is None:
            left = list(self.capacities[at].of_types)
            for other in self.jobs.running.values():
                if (other.submitted.pool or 0) == at and (kinds := other.started.gpu_types):
                    left = [free - held for free, held in zip(left, by_type(types, kinds), strict=True)]
            got = zip(types, allotted(types, left, job.gpu_type, job.gpus), strict=True)
            event = event.replaced(gpu_types=tuple(GpuType(name=name, gpus=gpus) for name, gpus in got if gpus))
        self.jobs.start(event)

    def _capacity(self, event: CapacityChanged) -> None:
        self.capacities.require(f"a change at {event.time} of", event.pool)

    def _resize(self, event: CapacityChanged, known: None) -> None:
        self.capacities.change(event)

    def _close(self, event: ClusterClosed, known: None) -> None:
        self.closed = True

    _RULES: ClassVar[dict[type, EventRule]] = {
        JobSubmitted: EventRule(_submitted, lambda log, event, known: log.jobs.submit(event)),
        JobWithdrawn: EventRule(
            lambda log, event: log.jobs.require_waiting(event), lambda log, event, known: log.jobs.withdraw(event)
        ),
        JobChanged: EventRule(_changed, lambda log, event, known: log.jobs.replace(known[1])),
        JobExpected: EventRule(lambda log, event: log.jobs.require_waiting(event), NOTHING.change),
        JobStarted: EventRule(_started, _start),
        JobSuspended: EventRule(
            lambda log, event: log.jobs.require_running(event), lambda log, event, known: log.jobs.suspend(event)
        ),
        JobResumed: EventRule(
            lambda log, event: log.jobs.require_running(event), lambda log, event, known: log.jobs.resume(event)
        ),
        JobEnded: EventRule(
            lambda log, event: log.jobs.require_running(event), lambda log, event, known: log.jobs.end(event)
        ),
        CapacityChanged: EventRule(_capacity, _resize),
        SchedulingPoint: NOTHING,
        Decided: NOTHING,
        Rejected: NOTHING,
        ClusterClosed: EventRule(NOTHING.check, _close),
    }
