"""The pools of a machine: sets of nodes that partitions share, each with its capacity of every resource."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from shadowtime.shared.errors import LogViolation
from shadowtime.shared.messages.base import Amount, AtMost, FrozenModel, Name, Processors
from shadowtime.shared.messages.gpu_types import MAX_GPU_TYPES, OR, GpuType, by_type, needed

if TYPE_CHECKING:
    from shadowtime.shared.messages.job_events import CapacityChanged


class Pool(FrozenModel):
    """A set of nodes that partitions share. Memory is in MiB, of all nodes.

    A resource that is None is unknown and limits no job. `gpu_types` are only given if there are several types. Then
    each type is a resource of its own. `gpus` are the GPUs of all types.
    """

    name: Name
    processors: Processors
    nodes: Amount | None = None
    memory: Amount | None = None
    gpus: Amount | None = None
    gpu_types: Annotated[tuple[GpuType, ...], AtMost(MAX_GPU_TYPES)] | None = None

    @property
    def types(self) -> tuple[str, ...]:
        """The types of GPUs that are kept apart; none unless there are several."""
        names = tuple(kind.name for kind in self.gpu_types or ())
        return names if len(names) > 1 and self.gpus is not None else ()


class PoolCapacity(NamedTuple):
    """The capacity of a pool: processors, memory in MiB, GPUs, and GPUs of each type. An amount None limits no job."""

    processors: int
    memory: int | None = None
    gpus: int | None = None
    of_types: tuple[int, ...] = ()

    @property
    def amounts(self) -> tuple[int | None, ...]:
        """All amounts in one row, the types of GPUs last."""
        return (*self[:3], *self.of_types)

    def changed(self, event: "CapacityChanged", types: Sequence[str]) -> "PoolCapacity":
        """Return the capacity after a change. `types` are the names of the types of GPUs."""
        memory, gpus = self.memory if event.memory is None else event.memory, self.gpus
        now = {kind.name: kind.gpus for kind in event.gpu_types or ()}
        of_types = tuple([now.get(name, has) for name, has in zip(types, self.of_types, strict=True)])
        return PoolCapacity(event.processors, memory, gpus if event.gpus is None else event.gpus, of_types)


UNITS = {"processors": "processors", "memory": "MiB of memory", "gpus": "GPUs"}
"""The unit of each resource of a `PoolCapacity`."""


def units_of(types: Sequence[str]) -> list[str]:
    """Return the unit of each amount of a pool with these types of GPUs.

    >>> units_of(["a100"])
    ['processors', 'MiB of memory', 'GPUs', 'a100 GPUs']
    """
    return [*UNITS.values(), *(f"{name} GPUs" for name in types)]


class MachineCapacity:
    """The capacity of each pool of a machine, counted from 0; a machine without pools counts as one pool.

    >>> from shadowtime.shared.messages import CapacityChanged
    >>> capacity = MachineCapacity(8, [Pool(name="cpu", processors=6), Pool(name="gpu", processors=2, gpus=4)])
    >>> capacity.change(CapacityChanged(time=0, processors=3))
    >>> capacity.processors, capacity[1]
    (5, PoolCapacity(processors=2, memory=None, gpus=4, of_types=()))
    """

    def __init__(self, processors: int, pools: Sequence[Pool]) -> None:
        self._names = [pool.name for pool in pools] or ["the machine"]
        self.types = [pool.types for pool in pools] or [()]
        """Types of GPUs that are kept apart in each pool, in the order of `PoolCapacity.of_types`."""
        self._first = [
            PoolCapacity(pool.processors, pool.memory, pool.gpus, by_type(pool.types, pool.gpu_types or ()))
            for pool in pools
        ] or [PoolCapacity(processors)]
        self._now = list(self._first)
        self.processors = processors

    def __len__(self) -> int:
        return len(self._now)

    def __getitem__(self, pool: int) -> PoolCapacity:
        return self._now[pool]

    def __iter__(self) -> Iterator[PoolCapacity]:
        return iter(self._now)

    def change(self, event: "CapacityChanged") -> None:
        """Change the capacity of a pool, and with it the processors of the machine."""
        pool = event.pool or 0
        before = self._now[pool]
        self._now[pool] = before.changed(event, self.types[pool])
        self.processors += event.processors - before.processors

    def most(self, pool: int) -> Sequence[int | None]:
        """Return the larger of the present and the first amount of each resource of a pool; None if it is unlimited."""
        if self._now[pool] is self._first[pool]:
            return self._now[pool].amounts
        pairs = zip(self._now[pool].amounts, self._first[pool].amounts, strict=True)
        return [None if now is None else max(now, first or 0) for now, first in pairs]

    def require(
        self,
        what: str,
        pool: int | None,
        asked: tuple[int, int | None, int | None] = (0, None, None),
        gpu_type: str | None = None,
    ) -> None:
        """Raise `LogViolation` if the pool does not exist, or `asked` exceeds both its present and its first capacity.

        `asked` are processors, MiB of memory and GPUs. The GPUs are of `gpu_type`, if that is not None; the pool must
        have this type if it has several. `what` begins the message of the error.
        """
        at = pool or 0
        if at >= len(self._now):
            raise LogViolation(f"{what} pool {at}; the machine has {len(self._now)} pools, counted from 0")
        types, most = self.types[at], self.most(at)
        amounts = (*asked, *needed(types, gpu_type, asked[2])) if types else asked
        for resource, (wanted, largest) in enumerate(zip(amounts, most, strict=True)):
            if wanted is not None and largest is not None and wanted > largest:
                raise LogViolation(f"{what} {wanted} {units_of(types)[resource]}; {self._names[at]} has {largest}")
        if types and gpu_type and asked[2] and not set(gpu_type.split(OR)) <= set(types):
            raise LogViolation(f"{what} {asked[2]} {gpu_type} GPUs; {self._names[at]} has only {', '.join(types)}")

    def snapshot(self) -> list[list[int | None]]:
        """Return the capacity of each pool as plain values."""
        return [list(capacity.amounts) for capacity in self._now]

    def restored(self, state: Sequence[Sequence[Any]]) -> list[PoolCapacity]:
        """Return capacities from plain values. Types that an older version did not store have their first capacity."""
        return [
            PoolCapacity(processors, memory, gpus, tuple(of_types) or first.of_types)
            for (processors, memory, gpus, *of_types), first in zip(state, self._first, strict=True)
        ]

    def restore(self, state: Sequence[Sequence[Any]]) -> None:
        """Restore the state that `snapshot` returned."""
        self._now = self.restored(state)
        self.processors = sum(pool.processors for pool in self._now)
