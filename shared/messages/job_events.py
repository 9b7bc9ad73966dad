"""Events of a job, from its submission to its end."""

from typing import Annotated, Literal

from pydantic import Field

from shadowtime.shared.bounds import MAX_PROCESSORS
from shadowtime.shared.messages.base import (
    Amount,
    AtMost,
    Count,
    FrozenModel,
    Instant,
    Name,
    Processors,
    Request,
    Seconds,
    Whole,
)
from shadowtime.shared.messages.decisions import JobNumber
from shadowtime.shared.messages.gpu_types import MAX_GPU_TYPES, GpuType
from shadowtime.shared.messages.speedup import SpeedUp

GpuTypes = Annotated[tuple[GpuType, ...], AtMost(MAX_GPU_TYPES)]

Outcome = Literal["completed", "failed", "cancelled", "limit", "killed"]
"""End of a job: by itself (three ways), at the limit set at its start, or by a decision of the scheduler."""


class JobSubmitted(FrozenModel):
    """A job enters the queue. Its run time has no field here: only the future knows it.

    Its wait begins at `eligible_time`, or at `time` if that is None. `submit_time` is the time at which its user
    submitted it, if that was earlier. A withdrawn job may enter the queue again, under the same number. `speedup` is
    the scaling of a moldable job; None means constant efficiency. `pool` counts the pools of `ClusterOpened` from 0. A
    running job holds its processors, and in total `memory` MiB and `gpus` GPUs. With `whole_nodes` it holds all
    processors of its nodes. `priority` is the site's; the highest goes first. A `blocked` job waits, but may not start
    for now, for a reason of the site such as a limit on its user: no policy starts it, or keeps processors for it.
    `gpu_type` is the type of GPUs that it names, if any, or several types joined by `+`. In a pool with several types
    it waits for GPUs of that type; if it names none, or several, for GPUs of any type. `site_reason` is the reason that
    the site's own scheduler gives for its wait. No stage decides or predicts by it.
    """

    kind: Literal["JobSubmitted"] = "JobSubmitted"
    time: Instant
    job_number: JobNumber
    submit_time: Instant | None = None
    eligible_time: Instant | None = None
    requested_processors: Processors
    requested_time: Request | None = None
    user_id: Whole | None = None
    group_id: Whole | None = None
    executable_number: Whole | None = None
    queue_number: Whole | None = None
    partition_number: Whole | None = None
    restartable: bool = True
    moldable: bool = True
    speedup: SpeedUp | None = None
    priority: Count | None = None
    qos_number: Whole | None = None
    pool: Count | None = None
    nodes: Amount | None = None
    memory: Amount | None = None
    gpus: Amount | None = None
    gpu_type: Name | None = None
    whole_nodes: Literal[True] | None = None
    blocked: Literal[True] | None = None
    site_reason: Name | None = None

    @property
    def since(self) -> int:
        """The time at which the job's wait began, in seconds."""
        return self.time if self.eligible_time is None else self.eligible_time


class JobWithdrawn(FrozenModel):
    """A waiting job left the queue without having started: for good, or `held`, until it is submitted again."""

    kind: Literal["JobWithdrawn"] = "JobWithdrawn"
    time: Instant
    job_number: JobNumber
    reason: Literal["cancelled", "held"] = "cancelled"
    happened: Instant | None = None


class JobChanged(FrozenModel):
    """A waiting or running job has another request, or another place in the accounts. A field that is None stays.

    A running job holds `requested_processors` from now on, and ends `requested_time` seconds after its start at the
    latest; with `unlimited` nothing ends it. `blocked` is only for waiting jobs; the start of a job ends it. An empty
    `site_reason` says that the site's scheduler gives no reason any more.
    """

    kind: Literal["JobChanged"] = "JobChanged"
    time: Instant
    job_number: JobNumber
    requested_processors: Processors | None = None
    requested_time: Request | None = None
    unlimited: Literal[True] | None = None
    user_id: Whole | None = None
    group_id: Whole | None = None
    executable_number: Whole | None = None
    queue_number: Whole | None = None
    partition_number: Whole | None = None
    priority: Count | None = None
    qos_number: Whole | None = None
    pool: Count | None = None
    nodes: Amount | None = None
    memory: Amount | None = None
    gpus: Amount | None = None
    gpu_type: Name | None = None
    blocked: bool | None = None
    site_reason: Name | None = None
    happened: Instant | None = None


class JobExpected(FrozenModel):
    """The site's own scheduler expects a waiting job to start at `start`. No stage uses it to decide or predict.

    `start` may be before `time`: the expectation may be outdated.
    """

    kind: Literal["JobExpected"] = "JobExpected"
    time: Instant
    job_number: JobNumber
    start: Instant
    happened: Instant | None = None


class JobStarted(FrozenModel):
    """A waiting job got its processors; the machine will end it `limit` seconds later at the latest.

    A `trial` has less time than the job requests. If the job needs more, it waits again, as if it had not started.
    `gpu_types` are the GPUs that it got, by type, in a pool with several types. If they are not stated, it got the type
    that it names, or else the types with most free (docs/algorithms.md#types-of-gpus).
    """

    kind: Literal["JobStarted"] = "JobStarted"
    time: Instant
    job_number: JobNumber
    processors: Processors
    limit: Request | None = None
    trial: Literal[True] | None = None
    gpu_types: GpuTypes | None = None
    happened: Instant | None = None


class JobSuspended(FrozenModel):
    """A running job stopped, and gave its processors back for a while."""

    kind: Literal["JobSuspended"] = "JobSuspended"
    time: Instant
    job_number: JobNumber
    happened: Instant | None = None


class JobResumed(FrozenModel):
    """A suspended job got its processors back, and goes on."""

    kind: Literal["JobResumed"] = "JobResumed"
    time: Instant
    job_number: JobNumber
    happened: Instant | None = None


class JobEnded(FrozenModel):
    """A running or suspended job gave its processors back; with `requeued` it waits again, as submitted.

    `run_time` excludes the time in which the job was suspended. `original_run_time` is the run time on the requested
    processors, if the job ran on another number of processors.
    """

    kind: Literal["JobEnded"] = "JobEnded"
    time: Instant
    job_number: JobNumber
    run_time: Seconds
    outcome: Outcome = "completed"
    requeued: bool = False
    original_run_time: Seconds | None = None
    happened: Instant | None = None

    @property
    def own_run_time(self) -> int:
        """The run time on the processors that the job requested, in seconds (docs/algorithms.md#own-run-time)."""
        return self.run_time if self.original_run_time is None else self.original_run_time


OfJob = JobWithdrawn | JobChanged | JobExpected | JobStarted | JobSuspended | JobResumed | JobEnded
"""Events of a job after its submission."""


def moment(event: OfJob) -> int:
    """Return the time at which an event of a job happened, in seconds: `happened` if it was reported late, else `time`.

    >>> moment(JobSuspended(time=60, job_number=1)), moment(JobSuspended(time=60, job_number=1, happened=45))
    (60, 45)
    """
    return event.time if event.happened is None else event.happened


# Events of the machine itself.


class CapacityChanged(FrozenModel):
    """A pool of the machine has another capacity from now on, because nodes were added or removed.

    A resource that is None, or a type of GPUs that is not listed, stays as it was; `pool` is None for the only pool.
    Running jobs continue, so the number of free processors may be negative for a while.
    """

    kind: Literal["CapacityChanged"] = "CapacityChanged"
    time: Instant
    processors: Annotated[int, Field(ge=0, le=MAX_PROCESSORS)]
    pool: Count | None = None
    memory: Amount | None = None
    gpus: Amount | None = None
    gpu_types: GpuTypes | None = None


class SchedulingPoint(FrozenModel):
    """All ends and arrivals of this instant have been reported: the scheduler makes one pass."""

    kind: Literal["SchedulingPoint"] = "SchedulingPoint"
    time: Instant
