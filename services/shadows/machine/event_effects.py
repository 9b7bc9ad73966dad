"""Effects of the cluster's events in the shadow, once the shadow has come to their instant.

Whether a job is there waiting, runs or has ended may be otherwise than on the cluster.
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
"""Events that concern a shadow too. Starts and ends of jobs on the cluster do not."""


def apply_cluster_event(machine: MachineState, event: Event, life: ShadowJob | None) -> Sequence[Event]:
    """Let an event reach the shadow, and return what is told there; a job that left the queue for good is done."""
    if isinstance(event, CapacityChanged):
        machine.resize(event)
        return [event]
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
    """Put a job in the queue, unless it was held and is free again while it runs here, or another has its number."""
    if _waits(machine, life) or life.start is not None:
        return ()
    life.job, life.due = event, event.job_number in machine
    if life.due:
        return ()
    machine.waiting[event.job_number] = life
    return [event]


def _leaves(machine: MachineState, event: JobWithdrawn, life: ShadowJob) -> Sequence[Event]:
    """Take a job out of the queue; one that has started here runs on."""
    if life.start is not None:
        return ()
    waited = _waits(machine, life)
    if waited:
        del machine.waiting[event.job_number]
    if event.reason != "held" or life.held:  # one that is not held any more comes again
        life.over = life.done = True
    return [event] if waited else ()


def _changes(machine: MachineState, event: JobChanged, life: ShadowJob) -> Sequence[Event]:
    """Let a waiting job ask for something else, and a running one have another limit: nothing else reaches it."""
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


# Before a shadow takes over, what happens in it is what happened on the cluster.


def mirror_cluster_event(machine: MachineState, event: Event, life: ShadowJob) -> None:
    """Let a job do in the shadow what it did on the cluster."""
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
    machine.place(life)


def _suspended(machine: MachineState, event: JobSuspended, life: ShadowJob) -> None:
    machine.stop(life, moment(event))


def _resumed(machine: MachineState, event: JobResumed, life: ShadowJob) -> None:
    machine.go_on(life, moment(event))


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
    JobSuspended: _suspended,
    JobResumed: _resumed,
    JobEnded: _ended,
}
