"""Before a shadow takes over, what happens in it is what happened on the cluster."""

from collections.abc import Callable
from typing import Any

from shadowtime.replayer.twin.life import Life
from shadowtime.replayer.twin.machine_state import MachineState
from shadowtime.shared.events import (
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
from shadowtime.shared.jobs_in_system import new_request


def happens(machine: MachineState, event: Event, life: Life) -> None:
    """Let a job do in the shadow what it did on the cluster."""
    if (handle := _HANDLERS.get(type(event))) is not None:
        handle(machine, event, life)


def _submitted(machine: MachineState, event: JobSubmitted, life: Life) -> None:
    life.job = event
    machine.waiting[event.job_number] = life


def _withdrawn(machine: MachineState, event: JobWithdrawn, life: Life) -> None:
    del machine.waiting[event.job_number]
    life.done = not life.held


def _changed(machine: MachineState, event: JobChanged, life: Life) -> None:
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


def _started(machine: MachineState, event: JobStarted, life: Life) -> None:
    life.start, life.on, life.limit = moment(event), event.processors, event.limit
    life.job = life.job.model_copy(update={"blocked": None})
    machine.place(life)


def _suspended(machine: MachineState, event: JobSuspended, life: Life) -> None:
    machine.stop(life, moment(event))


def _resumed(machine: MachineState, event: JobResumed, life: Life) -> None:
    machine.go_on(life, moment(event))


def _ended(machine: MachineState, event: JobEnded, life: Life) -> None:
    machine.remove(life)
    if event.requeued:
        machine.wait_again(life)
    else:
        life.done = True


_HANDLERS: dict[type, Callable[[MachineState, Any, Life], None]] = {
    JobSubmitted: _submitted,
    JobWithdrawn: _withdrawn,
    JobChanged: _changed,
    JobStarted: _started,
    JobSuspended: _suspended,
    JobResumed: _resumed,
    JobEnded: _ended,
}
