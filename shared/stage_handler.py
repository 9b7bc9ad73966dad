"""What a stage does in one run: each event has a method of its own."""

from collections.abc import Callable
from typing import Any

from shadowtime.shared.errors import RuleBroken
from shadowtime.shared.events import (
    CapacityChanged,
    ClusterClosed,
    ClusterOpened,
    Decided,
    Envelope,
    JobChanged,
    JobEnded,
    JobExpected,
    JobResumed,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    JobWithdrawn,
    Rejected,
    SchedulingPoint,
    moment,
)
from shadowtime.shared.jobs_in_system import JobsInSystem, RunningJob, new_request, only_priority
from shadowtime.shared.pools import Room, Rooms


class StageHandler:
    """One run in one stage; subclasses override what concerns them.

    Each `on_…` method gets the envelope and what is known about its job, and returns the envelope to forward. It runs
    after the event was checked and before the jobs in the system change.
    """

    passthrough = False
    """Whether, in this run, it forwards every envelope as it came."""

    def __init__(self, opened: ClusterOpened) -> None:
        self.opened = opened
        self.time = opened.time
        self.rooms = Rooms(opened.processors, opened.pools or ())
        self.jobs = JobsInSystem()
        self.closed = False

    def handle(self, envelope: Envelope) -> Envelope:
        """Return what to forward for `envelope`.

        Raises
        ------
        RuleBroken
            If the event contradicts the log; nothing has changed then.
        """
        event = envelope.event
        if (kind := type(event)) is Rejected:  # it changed nothing in the stage before, not even the time
            return _HANDLERS[kind](self, envelope, event)
        time = event.time
        if time < self.time:
            raise RuleBroken(f"{event.kind} at {time} comes after {self.time}: time went back")
        if self.closed:
            raise RuleBroken(f"{event.kind} at {time}: run {envelope.run!r} was closed at {self.time}")
        output = _HANDLERS[kind](self, envelope, event)
        self.time = time
        return output

    def on_submitted(self, envelope: Envelope, job: JobSubmitted) -> Envelope:
        """Answer the submission of a job."""
        return envelope

    def on_withdrawn(self, envelope: Envelope, withdrawn: JobWithdrawn, job: JobSubmitted) -> Envelope:
        """Answer that a waiting job has left the queue."""
        return envelope

    def on_changed(self, envelope: Envelope, changed: JobChanged, old: JobSubmitted, new: JobSubmitted) -> Envelope:
        """Answer that a waiting job asks for something else: as if it left, and were submitted anew.

        Where its priority is all that changes (`only_priority`), what was said of it stands.
        """
        if only_priority(changed):
            return envelope
        return self.on_submitted(self.on_withdrawn(envelope, left(changed), old), new)

    def on_running_changed(self, envelope: Envelope, old: RunningJob, new: RunningJob) -> Envelope:
        """Answer that a running job asks for something else."""
        return envelope

    def on_expected(self, envelope: Envelope, expected: JobExpected, job: JobSubmitted) -> Envelope:
        """Answer what the site's own scheduler expects of a waiting job."""
        return envelope

    def on_started(self, envelope: Envelope, started: JobStarted, job: JobSubmitted) -> Envelope:
        """Answer the start of a waiting job."""
        return envelope

    def on_wait(self, envelope: Envelope, job: JobSubmitted, wait: int) -> Envelope:
        """Answer that a wait is known, in seconds: at the start, or once a trial has ended for good.

        The rule: docs/algorithms.md#own-run-time.
        """
        return envelope

    def on_suspended(self, envelope: Envelope, suspended: JobSuspended, job: RunningJob) -> Envelope:
        """Answer that a running job has stopped."""
        return envelope

    def on_resumed(self, envelope: Envelope, resumed: JobResumed, job: RunningJob) -> Envelope:
        """Answer that a suspended job goes on; the job is as it was suspended."""
        return envelope

    def on_ended(self, envelope: Envelope, ended: JobEnded, job: RunningJob) -> Envelope:
        """Answer the end of a running job."""
        return envelope

    def on_capacity(self, envelope: Envelope, changed: CapacityChanged) -> Envelope:
        """Answer a change of the machine's size."""
        return envelope

    def on_scheduling_point(self, envelope: Envelope, point: SchedulingPoint) -> Envelope:
        """Answer a scheduling point."""
        return envelope

    def on_decided(self, envelope: Envelope, decided: Decided) -> Envelope:
        """Answer a decision."""
        return envelope

    def on_rejected(self, envelope: Envelope, rejected: Rejected) -> Envelope:
        """Answer an event that an earlier stage rejected."""
        return envelope

    def on_closed(self, envelope: Envelope, closed: ClusterClosed) -> Envelope:
        """Answer the end of the run."""
        return envelope

    @property
    def processors(self) -> int:
        """How many processors the machine has now."""
        return self.rooms.processors

    def processors_after(self, changed: CapacityChanged) -> int:
        """Return how many processors the machine has after a change of one of its pools."""
        return self.processors - self.rooms[changed.pool or 0].processors + changed.processors

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as plain values; a subclass adds its own under keys of its own."""
        told = {"time": self.time, "closed": self.closed, "rooms": self.rooms.snapshot()}
        return told | {"jobs": self.jobs.snapshot()}

    def restore(self, state: dict[str, Any]) -> None:
        """Take on the state that `snapshot` returned."""
        self.time, self.closed = state["time"], state["closed"]
        self.rooms.restore(state["rooms"])
        self.jobs.restore(state["jobs"])

    def _submitted(self, envelope: Envelope, event: JobSubmitted) -> Envelope:
        self.jobs.require_new(event)
        if self.opened.pools or event.requested_processors > self.opened.processors or event.pool:
            asked = event.requested_processors, event.memory, event.gpus
            self.rooms.require(f"job {event.job_number} requests", event.pool, asked)
        output = self.on_submitted(envelope, event)
        self.jobs.submit(event)
        return output

    def _withdrawn(self, envelope: Envelope, event: JobWithdrawn) -> Envelope:
        output = self.on_withdrawn(envelope, event, self.jobs.require_waiting(event))
        self.jobs.withdraw(event)
        return output

    def _changed(self, envelope: Envelope, event: JobChanged) -> Envelope:
        job = self.jobs.require_known(event)
        now = job.submitted if isinstance(job, RunningJob) else job
        new = now.model_copy(update=new_request(event))
        pool = now.pool if isinstance(job, RunningJob) else new.pool  # a running job stays where it is
        self.rooms.require(f"job {event.job_number} changed to", pool, (new.requested_processors, new.memory, new.gpus))
        if isinstance(job, RunningJob):
            runs = job.changed(event)
            output = self.on_running_changed(envelope, job, runs)
            self.jobs.replace(runs)
        else:
            if not only_priority(event):  # then it is as one that is submitted now, but waits from when it did
                new = new.model_copy(update={"time": event.time, "eligible_time": job.since})
            output = self.on_changed(envelope, event, job, new)
            self.jobs.replace(new)
        return output

    def _suspended(self, envelope: Envelope, event: JobSuspended) -> Envelope:
        output = self.on_suspended(envelope, event, self.jobs.require_running(event))
        self.jobs.suspend(event)
        return output

    def _resumed(self, envelope: Envelope, event: JobResumed) -> Envelope:
        output = self.on_resumed(envelope, event, self.jobs.require_running(event))
        self.jobs.resume(event)
        return output

    def _started(self, envelope: Envelope, event: JobStarted) -> Envelope:
        job = self.jobs.require_waiting(event)
        if self.opened.pools or event.processors > self.opened.processors:
            self.rooms.require(f"job {event.job_number} starts on", job.pool, (event.processors, None, None))
        output = self.on_started(envelope, event, job)
        if not event.trial:
            output = self.on_wait(output, job, moment(event) - job.since)
        self.jobs.start(event)
        return output

    def _ended(self, envelope: Envelope, event: JobEnded) -> Envelope:
        job = self.jobs.require_running(event)
        output = self.on_ended(envelope, event, job)
        if job.started.trial and not event.requeued:
            output = self.on_wait(output, job.submitted, moment(job.started) - job.submitted.since)
        self.jobs.end(event)
        return output

    def _capacity(self, envelope: Envelope, event: CapacityChanged) -> Envelope:
        self.rooms.require(f"a change at {event.time} of", event.pool)
        output = self.on_capacity(envelope, event)
        self.rooms.change(event.pool or 0, Room(event.processors, event.memory, event.gpus))
        return output

    def _closed(self, envelope: Envelope, event: ClusterClosed) -> Envelope:
        output = self.on_closed(envelope, event)
        self.closed = True
        return output

    def _opened(self, envelope: Envelope, event: ClusterOpened) -> Envelope:
        raise RuleBroken(f"run {envelope.run!r} was opened already, at {self.opened.time}")


def left(changed: JobChanged) -> JobWithdrawn:
    """Return the change of a waiting job as it is seen by who knows of none: it leaves, and is submitted anew."""
    return JobWithdrawn(time=changed.time, job_number=changed.job_number, reason="held")


_HANDLERS: dict[type, Callable[[StageHandler, Envelope, Any], Envelope]] = {
    ClusterOpened: StageHandler._opened,
    JobSubmitted: StageHandler._submitted,
    JobWithdrawn: StageHandler._withdrawn,
    JobChanged: StageHandler._changed,
    JobExpected: lambda stage, envelope, event: stage.on_expected(envelope, event, stage.jobs.require_waiting(event)),
    JobStarted: StageHandler._started,
    JobSuspended: StageHandler._suspended,
    JobResumed: StageHandler._resumed,
    JobEnded: StageHandler._ended,
    CapacityChanged: StageHandler._capacity,
    SchedulingPoint: lambda stage, envelope, event: stage.on_scheduling_point(envelope, event),
    Decided: lambda stage, envelope, event: stage.on_decided(envelope, event),
    Rejected: lambda stage, envelope, event: stage.on_rejected(envelope, event),
    ClusterClosed: StageHandler._closed,
}
