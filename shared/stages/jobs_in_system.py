"""The jobs that wait or run, and the rules for their events."""

from typing import Any, NamedTuple

from shadowtime.shared.bounds import MAX_LIVE_JOBS
from shadowtime.shared.errors import LogViolation
from shadowtime.shared.messages import (
    GpuType,
    JobChanged,
    JobEnded,
    JobExpected,
    JobResumed,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    JobWithdrawn,
    OfJob,
    after_change,
    moment,
)

DONE: dict[type, str] = {
    JobWithdrawn: "withdrawn",
    JobChanged: "changed",
    JobExpected: "expected",
    JobStarted: "started",
    JobSuspended: "suspended",
    JobResumed: "resumed",
    JobEnded: "ended",
}
ABSENT = "neither waits nor runs"
CHANGEABLE = (
    *("requested_processors", "requested_time", "user_id", "group_id", "executable_number", "queue_number"),
    *("partition_number", "priority", "qos_number", "pool", "nodes", "memory", "gpus", "gpu_type"),
)


class RunningJob(NamedTuple):
    """A running or suspended job: its submission, its start and its suspensions."""

    submitted: JobSubmitted
    started: JobStarted
    suspended: int | None = None
    """The time of its suspension, in seconds; None while it runs."""
    lost: int = 0
    """Total seconds of its earlier suspensions."""
    unlimited: bool = False
    """Whether its limit was taken away while it ran."""

    @property
    def limit(self) -> int | None:
        """The seconds that it may run; None if nothing ends it, or its limit is unknown."""
        return None if self.unlimited else self.started.limit or self.submitted.requested_time

    def stood_still(self, time: int) -> int:
        """Return the total time of its suspensions until `time`, in seconds."""
        return self.lost if self.suspended is None else self.lost + time - self.suspended

    def ran(self, time: int) -> int:
        """Return the seconds that it has run until `time`, without its suspensions."""
        return max(0, time - moment(self.started) - self.stood_still(time))

    def changed(self, event: JobChanged) -> "RunningJob":
        """Return the job with its new processors, limit and GPUs of each type.

        The submission keeps the request for which the run time was predicted. Only its priority changes, because the
        priority counts if the job waits again.
        """
        of_start: dict[str, int | None] = {"processors": event.requested_processors, "limit": event.requested_time}
        held: dict[str, Any] = {name: value for name, value in of_start.items() if value is not None}
        if event.gpus is not None and (kinds := self.started.gpu_types):
            now = zip(kinds, after_change([kind.gpus for kind in kinds], event.gpus), strict=True)
            held["gpu_types"] = tuple(GpuType(name=kind.name, gpus=gpus) for kind, gpus in now if gpus)
        if event.unlimited:
            held["limit"] = None
        submitted = self.submitted
        if event.priority is not None:
            submitted = submitted.model_copy(update={"priority": event.priority})
        unlimited = event.requested_time is None and (self.unlimited or event.unlimited is True)
        started = self.started.model_copy(update=held)
        return self._replace(submitted=submitted, started=started, unlimited=unlimited)


def new_request(event: JobChanged) -> dict[str, Any]:
    """Return the fields of a job's request that a change sets, with their new values."""
    changes: dict[str, Any] = {name: value for name in CHANGEABLE if (value := getattr(event, name)) is not None}
    if event.blocked is not None:
        changes["blocked"] = event.blocked or None
    if event.site_reason is not None:
        changes["site_reason"] = event.site_reason or None
    return changes | ({"requested_time": None} if event.unlimited else {})


def only_priority(event: JobChanged) -> bool:
    """Return whether a change sets only the priority or the site's reason, on which no prediction depends.

    >>> only_priority(JobChanged(time=0, job_number=1, priority=7, site_reason="Priority"))
    True
    >>> only_priority(JobChanged(time=0, job_number=1, priority=7, blocked=False))
    False
    """
    return new_request(event).keys() <= {"priority", "site_reason"}


class JobsInSystem:
    """Waiting and running jobs by number; memory is bounded by the jobs in the system.

    The `require_…` methods only check and look up; the others change the jobs.
    """

    def __init__(self) -> None:
        self.waiting: dict[int, JobSubmitted] = {}
        self.running: dict[int, RunningJob] = {}

    def require_new(self, event: JobSubmitted) -> None:
        """Raise `LogViolation` if the job is in the system, its wait begins in the future, or the system is full."""
        if event.job_number in self.waiting or event.job_number in self.running:
            state = "waiting" if event.job_number in self.waiting else "running"
            raise LogViolation(f"job {event.job_number} submitted at {event.time} is already {state}")
        if len(self.waiting) + len(self.running) >= MAX_LIVE_JOBS:
            raise LogViolation(
                f"job {event.job_number} submitted at {event.time} is one too many: "
                f"{len(self.waiting):,} wait and {len(self.running):,} run, at most {MAX_LIVE_JOBS:,} in all"
            )

        if event.eligible_time is not None and event.eligible_time > event.time:
            raise LogViolation(
                f"job {event.job_number} has the eligible time {event.eligible_time}; "
                f"expected no later time than its submission at {event.time}"
            )

    def require_waiting(self, event: JobStarted | JobWithdrawn | JobExpected) -> JobSubmitted:
        """Return the waiting job that starts, is withdrawn or has an expected start, or raise `LogViolation`."""
        job = self.waiting.get(event.job_number)
        if job is None:
            known = "runs already" if event.job_number in self.running else ABSENT
            raise LogViolation(f"job {event.job_number}, {DONE[type(event)]} at {event.time}, {known}")
        if event.happened is not None:
            self._require_order(event, event.happened, job.since, "its wait began")
        return job

    def require_running(self, event: JobEnded | JobSuspended | JobResumed) -> RunningJob:
        """Return the running job that ends, is suspended or is resumed, or raise `LogViolation`."""
        job = self.running.get(event.job_number)
        if job is None:
            done = DONE[type(event)]
            known = "still waits" if event.job_number in self.waiting else ABSENT
            raise LogViolation(f"job {event.job_number}, {done} at {event.time}, {known}")

        kind = type(event)
        if kind is JobSuspended and job.suspended is not None:
            raise LogViolation(
                f"job {event.job_number}, suspended at {event.time}, has been suspended since {job.suspended}"
            )
        if kind is JobResumed and job.suspended is None:
            raise LogViolation(f"job {event.job_number}, resumed at {event.time}, was not suspended")
        if event.happened is not None and job.suspended is None:
            self._require_order(event, event.happened, moment(job.started), "it started")
        elif event.happened is not None and job.suspended is not None:
            self._require_order(event, event.happened, job.suspended, "it was suspended")

        if type(event) is JobEnded and event.run_time > (held := moment(event) - moment(job.started)):
            raise LogViolation(
                f"job {event.job_number} ran {event.run_time} s, but held its processors for {held} s only"
            )

        return job

    def require_known(self, event: JobChanged) -> JobSubmitted | RunningJob:
        """Return the waiting or running job that changes, or raise `LogViolation`."""
        job = self.waiting.get(event.job_number) or self.running.get(event.job_number)
        if job is None:
            raise LogViolation(f"job {event.job_number}, changed at {event.time}, {ABSENT}")
        if event.happened is not None:
            waits = job.submitted if isinstance(job, RunningJob) else job
            self._require_order(event, event.happened, waits.since, "its wait began")
        return job

    @staticmethod
    def _require_order(event: OfJob, happened: int, earliest: int, what: str) -> None:
        if not earliest <= happened <= event.time:
            raise LogViolation(
                f"job {event.job_number} {DONE[type(event)]} at {happened}: "
                f"expected a time from {earliest}, when {what}, to {event.time}, when this was reported"
            )

    def submit(self, event: JobSubmitted) -> None:
        """Add a waiting job."""
        self.waiting[event.job_number] = event

    def withdraw(self, event: JobWithdrawn) -> None:
        """Remove a waiting job."""
        del self.waiting[event.job_number]

    def replace(self, job: JobSubmitted | RunningJob) -> None:
        """Replace a waiting or running job by its changed version."""
        if isinstance(job, RunningJob):
            self.running[job.submitted.job_number] = job
        else:
            self.waiting[job.job_number] = job

    def start(self, event: JobStarted) -> None:
        """Move a job from waiting to running. A started job is not blocked any more."""
        job = self.waiting.pop(event.job_number)
        if job.blocked:
            job = job.model_copy(update={"blocked": None})
        self.running[event.job_number] = RunningJob(job, event)

    def suspend(self, event: JobSuspended) -> None:
        """Record that a running job is suspended."""
        self.running[event.job_number] = self.running[event.job_number]._replace(suspended=moment(event))

    def resume(self, event: JobResumed) -> None:
        """Record that a suspended job continues."""
        job = self.running[event.job_number]
        self.running[event.job_number] = job._replace(suspended=None, lost=job.stood_still(moment(event)))

    def end(self, event: JobEnded) -> None:
        """Remove a running job. A requeued job waits again."""
        job = self.running.pop(event.job_number)
        if event.requeued:
            self.waiting[event.job_number] = job.submitted

    def snapshot(self) -> dict[str, Any]:
        """Return the jobs as plain values, in order of arrival."""
        return {
            "waiting": [job.model_dump() for job in self.waiting.values()],
            "running": [
                [submitted.model_dump(), started.model_dump(), *stopped]
                for submitted, started, *stopped in self.running.values()
            ],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the jobs that `snapshot` returned."""
        waiting = [JobSubmitted.model_validate(job) for job in state["waiting"]]
        running = [
            RunningJob(JobSubmitted.model_validate(submitted), JobStarted.model_validate(started), *stopped)
            for submitted, started, *stopped in state["running"]
        ]
        self.waiting = {job.job_number: job for job in waiting}
        self.running = {job.submitted.job_number: job for job in running}
