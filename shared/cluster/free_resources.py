"""Free resources of a simulated machine, pool by pool."""

import math
from collections.abc import Iterable, Sequence

from shadowtime.shared.cluster.job import Job
from shadowtime.shared.messages import (
    CapacityChanged,
    GpuType,
    JobStarted,
    JobSubmitted,
    MachineCapacity,
    Pool,
    allotted,
    needed,
    units_of,
)


class FreeResources:
    """Free amounts of each pool: processors, MiB of memory, GPUs, and GPUs of each type if there are several types.

    Amounts may be negative after a pool has shrunk. A resource is unlimited if the pool does not state its amount.

    >>> left = FreeResources(8, [Pool(name="cpu", processors=6), Pool(name="gpu", processors=2, gpus=4)])
    >>> left.change(CapacityChanged(time=5, processors=1, pool=1))
    >>> left.free
    [[6, inf, inf], [1, inf, 4]]
    """

    def __init__(self, processors: int, pools: Sequence[Pool]) -> None:
        self.names = [pool.name for pool in pools]
        self.capacity = MachineCapacity(processors, pools)
        self.free: list[list[float]] = [
            [math.inf if amount is None else amount for amount in capacity.amounts] for capacity in self.capacity
        ]
        self.held: dict[int, tuple[int, ...]] = {}
        """GPUs of each type that running jobs hold, by job number, in pools with several types."""

    def change(self, event: CapacityChanged) -> None:
        """Set the capacity of a pool, and change its free amounts by the difference."""
        at = event.pool or 0
        before = self.capacity[at].amounts
        self.capacity.change(event)
        for resource, (has, had) in enumerate(zip(self.capacity[at].amounts, before, strict=True)):
            self.free[at][resource] += (has or 0) - (had or 0)

    def allot(self, jobs: Iterable[Job | JobSubmitted]) -> None:
        """Choose the GPUs of each type for jobs that start together: first for the jobs that name a type.

        Otherwise a job that names no type could get GPUs that a job behind it needs.
        """
        if not any(self.capacity.types):
            return
        wanting = [job for job in jobs if job.gpus and self.capacity.types[job.pool or 0]]
        left = [list(free[3:]) for free in self.free]
        named = [any(needed(self.capacity.types[job.pool or 0], job.gpu_type, job.gpus)) for job in wanting]
        for first in (True, False):
            for job, names in zip(wanting, named, strict=True):
                if names is first:
                    at = job.pool or 0
                    got = allotted(self.capacity.types[at], left[at], job.gpu_type, job.gpus)
                    self.held[job.job_number] = got
                    left[at] = [free - taken for free, taken in zip(left[at], got, strict=True)]

    def take(self, job: Job, processors: int, got: tuple[int, ...] | None = None) -> None:
        """Allocate `processors` and a job's memory and GPUs. `got` are its GPUs of each type, if they are known."""
        at = job.pool or 0
        if job.gpus and self.capacity.types[at]:
            if got is not None:
                self.held[job.job_number] = got
            elif job.job_number not in self.held:
                self.held[job.job_number] = allotted(self.capacity.types[at], self.free[at][3:], job.gpu_type, job.gpus)
        self._move(job, processors, 1)

    def release(self, job: Job, processors: int) -> None:
        """Free `processors` and the memory and GPUs that a job holds."""
        self._move(job, processors, -1)
        self.held.pop(job.job_number, None)

    def _move(self, job: Job, processors: int, times: int) -> None:
        free = self.free[job.pool or 0]
        free[0] -= times * processors
        if job.memory:
            free[1] -= times * job.memory
        if job.gpus:
            free[2] -= times * job.gpus
            for resource, gpus in enumerate(self.held.get(job.job_number, ()), 3):
                free[resource] -= times * gpus

    def started(self, job: Job, event: JobStarted) -> JobStarted:
        """Return the start of a job that holds its resources, with the GPUs that it got by type."""
        if (held := self.held.get(job.job_number)) is None:
            return event
        kinds = zip(self.capacity.types[job.pool or 0], held, strict=True)
        return event.replaced(gpu_types=tuple(GpuType(name=name, gpus=gpus) for name, gpus in kinds if gpus))

    def lacking(self, job: Job, processors: int) -> str | None:
        """Return the first resource that a job lacks, with the amounts needed and free, in words; None if it fits."""
        at = job.pool or 0
        free, types = self.free[at], self.capacity.types[at]
        if processors <= free[0] and not job.memory and not job.gpus:
            return None
        sizes = processors, job.memory, job.gpus, *needed(types, job.gpu_type, job.gpus)
        for resource, (size, left) in enumerate(zip(sizes, free, strict=True)):
            if size and size > left:
                where = f"pool {self.names[at]}" if self.names else "the machine"
                return f"{size} {units_of(types)[resource]}; {where} has {left}"

        return None

    def describe(self, jobs: Sequence[Job]) -> str:
        """Return the largest job that does not fit on the machine, which must be idle, in words, and what to do.

        If all jobs fit, return that the policy is the reason why they wait.
        """
        largest = sorted(jobs, key=lambda job: -job.processors)
        for job in largest:
            if lacks := self.lacking(job, job.processors):
                return (
                    f"job {job.job_number} requests {lacks}, all idle; leave out large jobs with a smaller "
                    "--processors, or add capacity with --capacity"
                )
        return "each of them fits on the idle machine, so the policy holds them back"
