"""Free resources of a simulated machine, pool by pool."""

import math
from collections.abc import Sequence

from shadowtime.shared.cluster.job import Job
from shadowtime.shared.messages import UNITS, CapacityChanged, MachineCapacity, Pool, PoolCapacity


class FreeResources:
    """Free amounts of each pool: processors, MiB of memory, GPUs. They may be negative after a pool has shrunk.

    A resource is unlimited if the pool does not state its amount.

    >>> left = FreeResources(8, [Pool(name="cpu", processors=6), Pool(name="gpu", processors=2, gpus=4)])
    >>> left.change(CapacityChanged(time=5, processors=1, pool=1))
    >>> left.free
    [[6, inf, inf], [1, inf, 4]]
    """

    def __init__(self, processors: int, pools: Sequence[Pool]) -> None:
        self.names = [pool.name for pool in pools]
        self.capacity = MachineCapacity(processors, pools)
        self.free: list[list[float]] = [
            [math.inf if amount is None else amount for amount in amounts] for amounts in self.capacity
        ]

    def change(self, event: CapacityChanged) -> None:
        """Set the capacity of a pool."""
        at = event.pool or 0
        before = self.capacity[at]
        self.capacity.change(at, PoolCapacity(event.processors, event.memory, event.gpus))
        for resource, (has, had) in enumerate(zip(self.capacity[at], before, strict=True)):
            self.free[at][resource] += (has or 0) - (had or 0)

    def take(self, job: Job, processors: int, times: int = 1) -> None:
        """Allocate a job's resources, on so many processors. With `times` -1, release them."""
        free = self.free[job.pool or 0]
        free[0] -= times * processors
        if job.memory:
            free[1] -= times * job.memory
        if job.gpus:
            free[2] -= times * job.gpus

    def lacking(self, job: Job, processors: int) -> str | None:
        """Return the first resource that a job lacks, with the amounts needed and free, in words; None if it fits."""
        free = self.free[job.pool or 0]
        if processors <= free[0] and not job.memory and not job.gpus:
            return None
        for size, left, unit in zip((processors, job.memory, job.gpus), free, UNITS.values(), strict=True):
            if size and size > left:
                where = f"pool {self.names[job.pool or 0]}" if self.names else "the machine"
                return f"{size} {unit}; {where} has {left}"

        return None

    def describe(self, jobs: Sequence[Job]) -> str:
        """Return the largest job that does not fit on the idle machine, in words, and what to do.

        If all jobs fit, the policy is the reason.
        """
        largest = sorted(jobs, key=lambda job: -job.processors)
        for job in largest:
            if lacks := self.lacking(job, job.processors):
                return (
                    f"job {job.job_number} requests {lacks}, all idle; leave out large jobs with a smaller "
                    "--processors, or add capacity with --capacity"
                )
        return "each of them fits on the idle machine, so the policy holds them back"
