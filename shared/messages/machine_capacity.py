"""The pools of a machine: sets of nodes that partitions share, each with its capacity of every resource."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, NamedTuple

from shadowtime.shared.errors import LogViolation
from shadowtime.shared.messages.base import Amount, AtMost, FrozenModel, Name, Processors

MAX_GPU_TYPES = 50


class GpuType(FrozenModel):
    """The GPUs of one type in a pool."""

    name: Name
    gpus: Amount


class Pool(FrozenModel):
    """A set of nodes that partitions share. Memory is in MiB, of all nodes.

    A resource that is None is unknown and limits no job. `gpu_types` are only given if there are several types. Jobs
    are limited by the sum of all types.
    """

    name: Name
    processors: Processors
    nodes: Amount | None = None
    memory: Amount | None = None
    gpus: Amount | None = None
    gpu_types: Annotated[tuple[GpuType, ...], AtMost(MAX_GPU_TYPES)] | None = None


class PoolCapacity(NamedTuple):
    """The capacity of a pool: processors, memory in MiB and GPUs; None where that limits no job."""

    processors: int
    memory: int | None = None
    gpus: int | None = None

    def changed(self, processors: int, memory: int | None, gpus: int | None) -> "PoolCapacity":
        """Return the capacity with other sizes. None keeps the present size."""
        return PoolCapacity(processors, self.memory if memory is None else memory, self.gpus if gpus is None else gpus)


UNITS = {"processors": "processors", "memory": "MiB of memory", "gpus": "GPUs"}
"""The unit of each resource of a `PoolCapacity`."""


class MachineCapacity:
    """The capacity of each pool of a machine, counted from 0; a machine without pools counts as one pool.

    >>> capacity = MachineCapacity(8, [Pool(name="cpu", processors=6), Pool(name="gpu", processors=2, gpus=4)])
    >>> capacity.change(0, PoolCapacity(3))
    >>> capacity.processors, capacity[1]
    (5, PoolCapacity(processors=2, memory=None, gpus=4))
    """

    def __init__(self, processors: int, pools: Sequence[Pool]) -> None:
        self._names = [pool.name for pool in pools] or ["the machine"]
        self._first = [PoolCapacity(pool.processors, pool.memory, pool.gpus) for pool in pools] or [
            PoolCapacity(processors)
        ]
        self._now = list(self._first)
        self.processors = processors

    def __len__(self) -> int:
        return len(self._now)

    def __getitem__(self, pool: int) -> PoolCapacity:
        return self._now[pool]

    def __iter__(self) -> Iterator[PoolCapacity]:
        return iter(self._now)

    def change(self, pool: int, capacity: PoolCapacity) -> None:
        """Change the sizes of a pool. None keeps the present size."""
        before = self._now[pool]
        self._now[pool] = before.changed(*capacity)
        self.processors += capacity.processors - before.processors

    def require(self, what: str, pool: int | None, asked: tuple[int, int | None, int | None] = (0, None, None)) -> None:
        """Raise `LogViolation` if the pool does not exist, or `asked` exceeds both its present and its first capacity.

        `asked` are processors, MiB of memory and GPUs. `what` begins the message of the error.
        """
        at = pool or 0
        if at >= len(self._now):
            raise LogViolation(f"{what} pool {at}; the machine has {len(self._now)} pools, counted from 0")
        for wanted, unit, now, first in zip(asked, UNITS.values(), self._now[at], self._first[at], strict=True):
            if wanted is not None and now is not None and wanted > (largest := max(now, first or 0)):
                raise LogViolation(f"{what} {wanted} {unit}; {self._names[at]} has {largest}")

    def snapshot(self) -> list[list[int | None]]:
        """Return the capacity of each pool as plain values."""
        return [list(capacity) for capacity in self._now]

    def restore(self, state: Sequence[Sequence[Any]]) -> None:
        """Restore the state that `snapshot` returned."""
        self._now = [PoolCapacity(*amounts) for amounts in state]
        self.processors = sum(pool.processors for pool in self._now)
