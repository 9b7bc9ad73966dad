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
    """One run in one stage. A subclass overrides the methods of those events that concern it.

    Each `on_…` method gets the envelope, its event and the event's job, and returns the envelope to forward. The
    method runs after the event was checked and before the jobs in the system change.
    """

    passthrough = False
    """Whether the handler forwards every envelope of this run unchanged."""

    def __init__(self, opened: ClusterOpened) -> None:
        self.opened = opened
        self.share(RunLog(opened))

    def share(self, log: RunLog) -> None:
        """Use `log` to check events from now on. It must be at the same position as the handler's own log."""
        self.checked, self.jobs, self.capacities = log, log.jobs, log.capacities

    def handle(self, envelope: Envelope) -> Envelope:
        """Handle `envelope`, and return the envelope to forward.

        Raise `LogViolation` if the event contradicts the log; nothing has changed then.
        """
        output = self.answer(envelope, self.checked.check(envelope))
        self.checked.mark_read()
        return output

    def answer(self, envelope: Envelope, known: Any) -> Envelope:
        """Return the envelope to forward for a checked envelope. The jobs in the system change only afterwards.

        Parameters
        ----------
        known
            The event's job, as `RunLog.check` returned it.
        """
        return self._ANSWERS[type(envelope.event)](self, envelope, envelope.event, known)

    def on_submitted(self, envelope: Envelope, job: JobSubmitted) -> Envelope:
        """Return the envelope of a submission with this stage's additions. Other methods do so for their events."""
        return envelope

    def on_withdrawn(self, envelope: Envelope, withdrawn: JobWithdrawn, job: JobSubmitted) -> Envelope:
        """Answer the departure of a waiting job from the queue."""
        return envelope

    def on_changed(self, envelope: Envelope, changed: JobChanged, old: JobSubmitted, new: JobSubmitted) -> Envelope:
        """Answer a changed request of a waiting job as if the job left the queue and were submitted again.

        If only the priority or the site's reason changes (`only_priority`), the predictions of the job remain.
        """
        if only_priority(changed):
            return envelope
        return self.on_submitted(self.on_withdrawn(envelope, left(changed), old), new)

    def on_running_changed(self, envelope: Envelope, old: RunningJob, new: RunningJob) -> Envelope:
        """Answer a changed request of a running job."""
        return envelope

    def on_expected(self, envelope: Envelope, expected: JobExpected, job: JobSubmitted) -> Envelope:
        """Answer what the site's own scheduler expects of a waiting job."""
        return envelope

    def on_started(self, envelope: Envelope, started: JobStarted, job: JobSubmitted) -> Envelope:
        """Answer the start of a waiting job."""
        return envelope

    def on_wait(self, envelope: Envelope, job: JobSubmitted, wait: int) -> Envelope:
        """Answer the known wait of a job, in seconds: at its start, or once a trial run has ended for good.

        See docs/algorithms.md#own-run-time.
        """
        return envelope

    def on_suspended(self, envelope: Envelope, suspended: JobSuspended, job: RunningJob) -> Envelope:
        """Answer the suspension of a running job."""
        return envelope

    def on_resumed(self, envelope: Envelope, resumed: JobResumed, job: RunningJob) -> Envelope:
        """Answer the resumption of a suspended job; `job` is still the suspended job."""
        return envelope

    def on_ended(self, envelope: Envelope, ended: JobEnded, job: RunningJob) -> Envelope:
        """Answer the end of a running job."""
        return envelope

    def on_capacity(self, envelope: Envelope, changed: CapacityChanged) -> Envelope:
        """Answer a change of the capacity of the machine or of a pool."""
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
        """The number of processors that the machine has now."""
        return self.capacities.processors

    def processors_after(self, changed: CapacityChanged) -> int:
        """Return how many processors the machine has after a change of one of its pools."""
        return self.processors - self.capacities[changed.pool or 0].processors + changed.processors

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
        """Restore the state that `snapshot` returned."""
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
    """Let the handlers of successive stages of one run share a log, which checks each event only once.

    Raise `SnapshotMismatch` if they are at different positions of the log.
    """
    for handler in handlers[1:]:
        handlers[0].checked.add_reader(handler.checked)
        handler.share(handlers[0].checked)


def left(changed: JobChanged) -> JobWithdrawn:
    """Return a change of a waiting job as a withdrawal, for code that treats it as a withdrawal and a submission."""
    return JobWithdrawn(time=changed.time, job_number=changed.job_number, reason="held")
