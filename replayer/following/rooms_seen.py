"""What the pools of a cluster have, as it was told and as it is seen."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from shadowtime.replayer.accounting.machine_parts import MachineParts
from shadowtime.replayer.following.sight import Node, Sight
from shadowtime.shared.errors import RuleBroken
from shadowtime.shared.events import CapacityChanged
from shadowtime.shared.pools import Room, Rooms


class RoomsSeen:
    """The rooms of each pool, counted from 0; a pool never has what it did not have at first."""

    def __init__(self, parts: MachineParts) -> None:
        self._parts = parts
        self._told = Rooms(sum(pool.processors for pool in parts.pools), parts.pools)
        self._seen = list(self._told)

    def see(self, nodes: Iterable[Node]) -> None:
        """Take in what nodes there are now; those of no pool are left out. O(nodes)."""
        sums = [[0, 0, 0] for _ in self._parts.pools]
        for node in nodes:
            if (at := self._parts.of_node.get(node.name)) is None:
                at = self._parts.pool_of("", ",".join(node.partitions))
            if at is not None:
                for place, value in enumerate((node.usable, node.memory, node.gpus)):
                    sums[at][place] += value
        self._seen = [
            Room(processors, None if told.memory is None else memory, None if told.gpus is None else gpus)
            for (processors, memory, gpus), told in zip(sums, self._told, strict=True)
        ]

    def changes(self, time: int) -> Iterator[CapacityChanged]:
        """Yield what is to be told of pools."""
        for pool, (told, seen) in enumerate(zip(self._told, self._seen, strict=True)):
            if told != seen:
                yield CapacityChanged(time=time, pool=pool, **seen._asdict())

    def told(self, event: CapacityChanged) -> None:
        """Note that a change was told."""
        self._told.change(event.pool or 0, Room(event.processors, event.memory, event.gpus))

    def fits(self, sight: Sight, pool: int) -> bool:
        """Return whether a pool ever had what a job asks for."""
        try:
            self._told.require("a job asks for", pool, (sight.processors, sight.memory, sight.gpus))
        except RuleBroken:
            return False
        return True

    def snapshot(self) -> list[list[int | None]]:
        """Return what was told, as plain values."""
        return self._told.snapshot()

    def restore(self, state: Sequence[Sequence[Any]]) -> None:
        """Take on what `snapshot` returned."""
        self._told.restore(state)
        self._seen = list(self._told)
