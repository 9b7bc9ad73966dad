"""Simulated machines: a compiled event loop over arrays, with the pass of a policy as its parameter."""

from shadowtime.services.scheduler.machine.event_loop import (
    ARRIVED,
    AS_PREDICTED,
    AS_REQUESTED,
    CHANGED,
    CLOCK,
    FREE,
    RUNS,
    WAITS,
    Machines,
    advance,
    follow,
)
from shadowtime.services.scheduler.machine.passes import AS_QUEUE, GUARDED, KnownTables, MemberArrays
from shadowtime.services.scheduler.machine.whole_log import (
    OUTLASTED,
    WHOLE,
    LogMachine,
    MachineJobs,
    MachinePolicy,
    machine_policy,
)
