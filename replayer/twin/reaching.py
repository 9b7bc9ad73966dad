"""What an event of the cluster's log means in the shadow, once the shadow has come to its instant.

Whether a job is there waiting, runs or has ended may be otherwise than on the cluster.
"""

from collections.abc import Sequence

from shadowtime.replayer.twin.life import Life
from shadowtime.replayer.twin.machine_state import MachineState
from shadowtime.shared.events import CapacityChanged, Event, JobChanged, JobSubmitted, JobWithdrawn
from shadowtime.shared.jobs_in_system import new_request

REACHING = CapacityChanged, JobSubmitted, JobWithdrawn, JobChanged
"""What concerns a shadow too; when jobs start and end on the cluster does not."""


def reaches(machine: MachineState, event: Event, life: Life | None) -> Sequence[Event]:
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


def _waits(machine: MachineState, life: Life) -> bool:
    return machine.waiting.get(life.job.job_number) is life


def _arrives(machine: MachineState, event: JobSubmitted, life: Life) -> Sequence[Event]:
    """Put a job in the queue, unless it was held and is free again while it runs here, or another has its number."""
    if _waits(machine, life) or life.start is not None:
        return ()
    life.job, life.due = event, event.job_number in machine
    if life.due:
        return ()
    machine.waiting[event.job_number] = life
    return [event]


def _leaves(machine: MachineState, event: JobWithdrawn, life: Life) -> Sequence[Event]:
    """Take a job out of the queue; one that has started here runs on."""
    if life.start is not None:
        return ()
    waited = _waits(machine, life)
    if waited:
        del machine.waiting[event.job_number]
    if event.reason != "held" or life.held:  # one that is not held any more comes again
        life.over = life.done = True
    return [event] if waited else ()


def _changes(machine: MachineState, event: JobChanged, life: Life) -> Sequence[Event]:
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
    told = JobChanged(
        time=event.time, job_number=event.job_number, requested_time=event.requested_time, unlimited=event.unlimited
    )
    return [told]
