"""Free resources of a simulated machine, pool by pool."""

import math
from collections.abc import Sequence

from shadowtime.shared.cluster.job import Job
from shadowtime.shared.messages import UNITS, CapacityChanged, MachineCapacity, Pool, PoolCapacity


class FreeResources:
    """Free amounts of each pool: processors, MiB of memory, GPUs; below zero where a pool has shrunk.

    Of what a pool does not tell of there is no end.

    >>> left = FreeResources(8, [Pool(name="cpu", processors=6), Pool(name="gpu", processors=2, gpus=4)])
    >>> left.change(CapacityChanged(time=5, processors=1, pool=1))
    >>> left.free
    [[6, inf, inf], [1, inf, 4]]
    """

    def __init__(self, processors: int, pools: Sequence[Pool]) -> None:
        self.names = [pool.name for pool in pools]
        self.rooms = MachineCapacity(processors, pools)
        self.free: list[list[float]] = [
            [math.inf if amount is None else amount for amount in room] for room in self.rooms
        ]

    def change(self, event: CapacityChanged) -> None:
        """Let a pool have so much from now on."""
        at = event.pool or 0
        before = self.rooms[at]
        self.rooms.change(at, PoolCapacity(event.processors, event.memory, event.gpus))
        for resource, (has, had) in enumerate(zip(self.rooms[at], before, strict=True)):
            self.free[at][resource] += (has or 0) - (had or 0)

    def take(self, job: Job, processors: int, times: int = 1) -> None:
        """Let a job hold what it asks for, on so many processors; -1 times: give it back."""
        free = self.free[job.pool or 0]
        free[0] -= times * processors
        if job.memory:
            free[1] -= times * job.memory
        if job.gpus:
            free[2] -= times * job.gpus

    def lacking(self, job: Job, processors: int) -> str | None:
        """Return what a job needs and how much of it there is, in words; None if it fits."""
        free = self.free[job.pool or 0]
        if processors <= free[0] and not job.memory and not job.gpus:
            return None
        for size, left, unit in zip((processors, job.memory, job.gpus), free, UNITS.values(), strict=True):
            if size and size > left:
                where = f"pool {self.names[job.pool or 0]}" if self.names else "the machine"
                return f"{size} {unit}; {where} has {left}"

        return None

    def describe(self, jobs: Sequence[Job]) -> str:
        """Return which of some jobs does not fit, the largest of them, where nothing runs; if all fit, the largest."""
        largest = sorted(jobs, key=lambda job: -job.processors)
        shortages = ((job, self.lacking(job, job.processors)) for job in largest)
        job, lacks = next((pair for pair in shortages if pair[1]), (largest[0], None))
        return f"job {job.job_number} requests {lacks or f'{job.processors} processors; there are as many'}, all idle"
