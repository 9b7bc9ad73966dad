"""What is free on a machine of pools, followed event by event over plain numbers."""

from collections.abc import Sequence
from typing import NamedTuple

from shadowtime.shared.messages.decisions import Start
from shadowtime.shared.messages.envelope import (
    CapacityChanged,
    Event,
    JobChanged,
    JobEnded,
    JobResumed,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    JobWithdrawn,
)
from shadowtime.shared.messages.machine_capacity import Pool
from shadowtime.shared.stages.jobs_in_system import new_request

RESOURCES = ("processors", "memory", "gpus")
OF_TYPE = "gpus of type "
Size = dict[str, int]


class Held(NamedTuple):
    """What a job holds, in which pool, since when, and when its limit ends it."""

    pool: int
    size: Size
    start: int
    end: int


def size_of(job: JobSubmitted, processors: int) -> Size:
    """Return what a job asks for, of the resources of which it says anything."""
    size = {"processors": processors, "memory": job.memory or 0, "gpus": job.gpus or 0}
    return size if job.gpu_type is None or "+" in job.gpu_type else size | {OF_TYPE + job.gpu_type: job.gpus or 0}


def fits(size: Size, free: Size) -> bool:
    """Return whether there is enough; what a pool does not tell of, or a job does not take, limits nothing."""
    return all(size.get(name, 0) == 0 or size[name] <= left for name, left in free.items())


def without(free: Size, size: Size) -> Size:
    """Return what is left beside a job."""
    return {name: left - size.get(name, 0) for name, left in free.items()}


def got(job: JobSubmitted, event: JobStarted, free: Size) -> Size:
    """Return the GPUs of each type that a job got: as told, or its own type, or one by one of what most are left."""
    types = [name for name in free if name.startswith(OF_TYPE)]
    if event.gpu_types is not None:
        return {OF_TYPE + kind.name: kind.gpus for kind in event.gpu_types}
    if job.gpu_type is not None and "+" not in job.gpu_type:
        return {OF_TYPE + job.gpu_type: job.gpus or 0}
    if job.gpu_type is not None:
        types = [name for name in types if name.removeprefix(OF_TYPE) in job.gpu_type.split("+")]
    taken: Size = {}
    left = job.gpus or 0
    while types and left > 0:
        most = max(types, key=lambda name: free[name])
        types.remove(most)
        taken[most] = max(min(left, free[most]), 0)
        left -= taken[most]
    return taken


def kept(size: Size, gpus: int) -> Size:
    """Return the GPUs by type of a running job that changes to so many: fewer of the last, more of what it has most."""
    held = {name: size[name] for name in sorted(size) if name.startswith(OF_TYPE) and size[name]}
    while sum(held.values()) > gpus:
        last = [name for name, count in held.items() if count][-1]
        held[last] -= 1
    if held:
        held[max(held, key=lambda name: held[name])] += gpus - sum(held.values())
    return held


class Occupancy:
    """Who waits and runs in each pool, and what is free there."""

    def __init__(self, pools: Sequence[Pool]) -> None:
        self.rooms = [
            {name: has for name in RESOURCES if (has := getattr(pool, name)) is not None}
            | {OF_TYPE + kind.name: kind.gpus for kind in pool.gpu_types or ()}
            for pool in pools
        ]
        self.waiting: dict[int, JobSubmitted] = {}
        self.running: dict[int, Held] = {}
        self.suspended: dict[int, Held] = {}
        self.as_submitted: dict[int, JobSubmitted] = {}

    def free(self, pool: int) -> Size:
        """Return what is free in a pool: suspended jobs hold all but their processors."""
        left = self.rooms[pool]
        for job in self.running.values():
            left = without(left, job.size) if job.pool == pool else left
        for job in self.suspended.values():
            left = without(left, job.size | {"processors": 0}) if job.pool == pool else left
        return left

    def queue(self, pool: int) -> list[JobSubmitted]:
        """Return who waits in a pool, in order of arrival."""
        jobs = [job for job in self.waiting.values() if (job.pool or 0) == pool]
        return sorted(jobs, key=lambda job: (job.since, job.job_number))

    def see(self, event: Event) -> None:
        """Follow an event."""
        match event:
            case CapacityChanged():
                room = self.rooms[event.pool or 0]
                room |= {name: has for name in room if (has := getattr(event, name, None)) is not None}
                room |= {OF_TYPE + kind.name: kind.gpus for kind in event.gpu_types or ()}
            case JobSubmitted():
                self.waiting[event.job_number] = event
            case JobWithdrawn():
                del self.waiting[event.job_number]
            case JobChanged() if event.job_number in self.waiting:
                job = self.waiting[event.job_number]
                self.waiting[event.job_number] = job.model_copy(
                    update={**new_request(event), "eligible_time": job.since}
                )
            case JobChanged():
                held = self.running.get(event.job_number) or self.suspended[event.job_number]
                asked = event.requested_processors, event.memory, event.gpus
                size = held.size | {name: now for name, now in zip(RESOURCES, asked, strict=True) if now is not None}
                size |= kept(size, event.gpus) if event.gpus is not None else {}
                where = self.running if event.job_number in self.running else self.suspended
                where[event.job_number] = held._replace(size=size)
            case JobStarted():
                job = self.as_submitted[event.job_number] = self.waiting.pop(event.job_number)
                end = event.time + (event.limit or 10**9)
                size = size_of(job, event.processors) | got(job, event, self.free(job.pool or 0))
                self.running[event.job_number] = Held(job.pool or 0, size, event.time, end)
            case JobSuspended():
                self.suspended[event.job_number] = self.running.pop(event.job_number)
            case JobResumed():
                self.running[event.job_number] = self.suspended.pop(event.job_number)
            case JobEnded():
                self.running.pop(event.job_number, None)
                self.suspended.pop(event.job_number, None)
                job = self.as_submitted.pop(event.job_number)
                if event.requeued:
                    self.waiting[event.job_number] = job

    def require_room(self, starts: Sequence[Start]) -> None:
        """See that all that is started together fits, each job in its pool."""
        left = [self.free(pool) for pool in range(len(self.rooms))]
        for start in starts:
            job = self.waiting[start.job_number]
            size, pool = size_of(job, start.processors), job.pool or 0
            assert fits(size, left[pool]), (start, left[pool])
            left[pool] = without(left[pool], size)
