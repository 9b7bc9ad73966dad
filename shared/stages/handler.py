"""The handler of a stage for one run: each event has a method of its own."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from shadowtime.shared.messages import (
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
from shadowtime.shared.stages.jobs_in_system import RunningJob, only_priority
from shadowtime.shared.stages.run_log import RunLog


class StageHandler:
    """One run in one stage; subclasses override what concerns them.

    Each `on_…` method gets the envelope and what is known about its job, and returns the envelope to forward. It runs
    after the event was checked and before the jobs in the system change.
    """

    passthrough = False
    """Whether, in this run, it forwards every envelope as it came."""

    def __init__(self, opened: ClusterOpened) -> None:
        self.opened = opened
        self.share(RunLog(opened))

    def share(self, log: RunLog) -> None:
        """Have events checked by `log` from now on, which is where its own one is."""
        self.checked, self.jobs, self.rooms = log, log.jobs, log.rooms

    def handle(self, envelope: Envelope) -> Envelope:
        """Return what to forward for `envelope`.

        Raises
        ------
        LogViolation
            If the event contradicts the log; nothing has changed then.
        """
        output = self.answer(envelope, self.checked.check(envelope))
        self.checked.mark_read()
        return output

    def answer(self, envelope: Envelope, known: Any) -> Envelope:
        """Return what to forward for an envelope that was checked; the jobs in the system change thereafter.

        Parameters
        ----------
        known
            What the log tells of the event's job: see `RunLog.check`.
        """
        return self._ANSWERS[type(envelope.event)](self, envelope, envelope.event, known)

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

    @property
    def time(self) -> int:
        """Time of the last event, in seconds."""
        return self.checked.time

    @property
    def closed(self) -> bool:
        """Whether the run has ended."""
        return self.checked.closed

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as plain values; a subclass adds its own under keys of its own."""
        return self.checked.snapshot()

    def restore(self, state: dict[str, Any]) -> None:
        """Take on the state that `snapshot` returned."""
        self.checked.restore(state)

    def _started(self, envelope: Envelope, event: JobStarted, job: JobSubmitted) -> Envelope:
        output = self.on_started(envelope, event, job)
        return output if event.trial else self.on_wait(output, job, moment(event) - job.since)

    def _ended(self, envelope: Envelope, event: JobEnded, job: RunningJob) -> Envelope:
        output = self.on_ended(envelope, event, job)
        if job.started.trial and not event.requeued:
            return self.on_wait(output, job.submitted, moment(job.started) - job.submitted.since)
        return output

    def _changed(self, envelope: Envelope, event: JobChanged, jobs: tuple[Any, Any]) -> Envelope:
        if isinstance(jobs[0], RunningJob):
            return self.on_running_changed(envelope, *jobs)
        return self.on_changed(envelope, event, *jobs)

    _ANSWERS: ClassVar[dict[type, Callable[["StageHandler", Envelope, Any, Any], Envelope]]] = {
        JobSubmitted: lambda stage, envelope, event, _: stage.on_submitted(envelope, event),
        JobWithdrawn: lambda stage, envelope, event, job: stage.on_withdrawn(envelope, event, job),
        JobChanged: _changed,
        JobExpected: lambda stage, envelope, event, job: stage.on_expected(envelope, event, job),
        JobStarted: _started,
        JobSuspended: lambda stage, envelope, event, job: stage.on_suspended(envelope, event, job),
        JobResumed: lambda stage, envelope, event, job: stage.on_resumed(envelope, event, job),
        JobEnded: _ended,
        CapacityChanged: lambda stage, envelope, event, _: stage.on_capacity(envelope, event),
        SchedulingPoint: lambda stage, envelope, event, _: stage.on_scheduling_point(envelope, event),
        Decided: lambda stage, envelope, event, _: stage.on_decided(envelope, event),
        Rejected: lambda stage, envelope, event, _: stage.on_rejected(envelope, event),
        ClusterClosed: lambda stage, envelope, event, _: stage.on_closed(envelope, event),
    }


def read_together(handlers: Sequence[StageHandler]) -> None:
    """Have each event checked once for all handlers of a run, which pass it on to one another.

    Raises
    ------
    SnapshotMismatch
        If they stand at different places of the log.
    """
    for handler in handlers[1:]:
        handlers[0].checked.add_reader(handler.checked)
        handler.share(handlers[0].checked)


def left(changed: JobChanged) -> JobWithdrawn:
    """Return the change of a waiting job as it is seen by who knows of none: it leaves, and is submitted anew."""
    return JobWithdrawn(time=changed.time, job_number=changed.job_number, reason="held")
