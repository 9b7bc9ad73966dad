"""Effects of the cluster's events in the shadow, applied when the shadow reaches their instant.

A job may wait in the shadow while it runs or has ended on the cluster, and vice versa.
"""

from collections.abc import Callable, Sequence
from typing import Any

from shadowtime.services.shadows.machine.job import ShadowJob
from shadowtime.services.shadows.machine.machine_state import MachineState
from shadowtime.shared.messages import (
    CapacityChanged,
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
from shadowtime.shared.stages import new_request

REACHING = CapacityChanged, JobSubmitted, JobWithdrawn, JobChanged
"""Events of the cluster that also happen in a shadow. Starts, suspensions and ends of jobs are not among them."""


def without_site_reason(event: Event) -> Event | None:
    """Return an event without the cluster's reason for the wait; None if the event has nothing else.

    In the shadow, the job may wait for another reason.

    >>> without_site_reason(JobChanged(time=0, job_number=1, site_reason="Priority")) is None
    True
    """
    if not isinstance(event, JobSubmitted | JobChanged) or event.site_reason is None:
        return event
    if isinstance(event, JobChanged) and new_request(event).keys() == {"site_reason"}:
        return None
    return event.replaced(site_reason=None)


def apply_cluster_event(machine: MachineState, event: Event, life: ShadowJob | None) -> Sequence[Event]:
    """Apply an event of the cluster to the shadow. Return the events that the shadow emits.

    A job that leaves the queue for good is marked as done.
    """
    if isinstance(event, CapacityChanged):
        return [machine.resize(event)]
    if life is None:
        return ()
    if isinstance(event, JobSubmitted):
        return _arrives(machine, event, life)
    if isinstance(event, JobWithdrawn):
        return _leaves(machine, event, life)
    return _changes(machine, event, life) if isinstance(event, JobChanged) else ()


def _waits(machine: MachineState, life: ShadowJob) -> bool:
    return machine.waiting.get(life.job.job_number) is life


def _arrives(machine: MachineState, event: JobSubmitted, life: ShadowJob) -> Sequence[Event]:
    """Put a job in the queue.

    A job that already waits or runs in the shadow was held on the cluster and is released now: nothing happens. If an
    earlier job of the same number still waits or runs in the shadow, the job only becomes due.
    """
    if _waits(machine, life) or life.start is not None:
        return ()
    life.job, life.due = event, event.job_number in machine
    if life.due:
        return ()
    machine.waiting[event.job_number] = life
    return [event]


def _leaves(machine: MachineState, event: JobWithdrawn, life: ShadowJob) -> Sequence[Event]:
    """Remove a job from the queue. A job that has started in the shadow continues to run."""
    if life.start is not None:
        return ()
    waited = _waits(machine, life)
    if waited:
        del machine.waiting[event.job_number]
    if event.reason != "held" or life.held:  # a released job is no longer held: its new arrival follows
        life.over = life.done = True
    return [event] if waited else ()


def _changes(machine: MachineState, event: JobChanged, life: ShadowJob) -> Sequence[Event]:
    """Change the request of a waiting job, or the limit of a running job."""
    new = new_request(event)
    if life.start is None:
        life.job = life.job.model_copy(update=new)
        return [event] if _waits(machine, life) else ()
    if "requested_time" not in new:
        return ()
    if life.limit == life.job.requested_time:
        life.limit = new["requested_time"]
    life.job = life.job.model_copy(update={"requested_time": new["requested_time"]})
    changed = JobChanged(
        time=event.time, job_number=event.job_number, requested_time=event.requested_time, unlimited=event.unlimited
    )
    return [changed]


# Mirroring: before a shadow takes over, the events of the cluster happen in it unchanged.


def mirror_cluster_event(machine: MachineState, event: Event, life: ShadowJob) -> None:
    """Apply an event of the cluster's job to the same job in the shadow."""
    if (handle := _HANDLERS.get(type(event))) is not None:
        handle(machine, event, life)


def _submitted(machine: MachineState, event: JobSubmitted, life: ShadowJob) -> None:
    life.job = event
    machine.waiting[event.job_number] = life


def _withdrawn(machine: MachineState, event: JobWithdrawn, life: ShadowJob) -> None:
    del machine.waiting[event.job_number]
    life.done = not life.held


def _changed(machine: MachineState, event: JobChanged, life: ShadowJob) -> None:
    new = new_request(event)
    if life.start is None:
        life.job = life.job.model_copy(update=new)
        return
    if "requested_time" in new:
        life.limit = new["requested_time"]
        life.job = life.job.model_copy(update={"requested_time": life.limit})
    if event.requested_processors is not None:
        times = 0 if life.freed is not None else 1
        machine.give_processors(life, -times)
        life.on = event.requested_processors
        machine.give_processors(life, times)


def _started(machine: MachineState, event: JobStarted, life: ShadowJob) -> None:
    life.start, life.on, life.limit = moment(event), event.processors, event.limit
    life.job = life.job.model_copy(update={"blocked": None})
    machine.place(life, event.gpu_types)


def _ended(machine: MachineState, event: JobEnded, life: ShadowJob) -> None:
    machine.remove(life)
    if event.requeued:
        machine.wait_again(life)
    else:
        life.done = True


_HANDLERS: dict[type, Callable[[MachineState, Any, ShadowJob], None]] = {
    JobSubmitted: _submitted,
    JobWithdrawn: _withdrawn,
    JobChanged: _changed,
    JobStarted: _started,
    JobSuspended: lambda machine, event, life: machine.stop(life, moment(event)),
    JobResumed: lambda machine, event, life: machine.go_on(life, moment(event)),
    JobEnded: _ended,
}
