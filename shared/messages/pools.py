"""The parts of a machine: sets of nodes that partitions share, each with what it has of every resource."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from shadowtime.shared.errors import RuleBroken
from shadowtime.shared.messages.base import Amount, Frozen, Name, Processors


class Pool(Frozen):
    """A set of nodes that partitions share; what is None is not told and limits no job. Memory in MiB, of all nodes."""

    name: Name
    processors: Processors
    nodes: Amount | None = None
    memory: Amount | None = None
    gpus: Amount | None = None


class Room(NamedTuple):
    """What a pool has now: processors, memory in MiB and GPUs; None where that limits no job."""

    processors: int
    memory: int | None = None
    gpus: int | None = None

    def changed(self, processors: int, memory: int | None, gpus: int | None) -> "Room":
        """Return it with other sizes; None is as before."""
        return Room(processors, self.memory if memory is None else memory, self.gpus if gpus is None else gpus)


UNITS = {"processors": "processors", "memory": "MiB of memory", "gpus": "GPUs"}
"""What each resource of a `Room` is counted in."""


class Rooms:
    """What each pool of a machine has now, counted from 0; one that tells of no pools is one.

    >>> rooms = Rooms(8, [Pool(name="cpu", processors=6), Pool(name="gpu", processors=2, gpus=4)])
    >>> rooms.change(0, Room(3))
    >>> rooms.processors, rooms[1]
    (5, Room(processors=2, memory=None, gpus=4))
    """

    def __init__(self, processors: int, pools: Sequence[Pool]) -> None:
        self._names = [pool.name for pool in pools] or ["the machine"]
        self._first = [Room(pool.processors, pool.memory, pool.gpus) for pool in pools] or [Room(processors)]
        self._now = list(self._first)
        self.processors = processors

    def __len__(self) -> int:
        return len(self._now)

    def __getitem__(self, pool: int) -> Room:
        return self._now[pool]

    def __iter__(self) -> Iterator[Room]:
        return iter(self._now)

    def change(self, pool: int, room: Room) -> None:
        """Let a pool have other sizes; None is as before."""
        before = self._now[pool]
        self._now[pool] = before.changed(*room)
        self.processors += room.processors - before.processors

    def require(self, what: str, pool: int | None, asked: tuple[int, int | None, int | None] = (0, None, None)) -> None:
        """Raise `RuleBroken` if there is no such pool, or it never had so many processors, MiB of memory or GPUs."""
        at = pool or 0
        if at >= len(self._now):
            raise RuleBroken(f"{what} pool {at}; the machine has {len(self._now)}, counted from 0")
        for wanted, unit, now, first in zip(asked, UNITS.values(), self._now[at], self._first[at], strict=True):
            if wanted is not None and now is not None and wanted > (largest := max(now, first or 0)):
                raise RuleBroken(f"{what} {wanted} {unit}; {self._names[at]} has {largest}")

    def snapshot(self) -> list[list[int | None]]:
        """Return what each has, as plain values."""
        return [list(room) for room in self._now]

    def restore(self, state: Sequence[Sequence[Any]]) -> None:
        """Take on what `snapshot` returned."""
        self._now = [Room(*room) for room in state]
        self.processors = sum(room.processors for room in self._now)
