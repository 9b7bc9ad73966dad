"""What the pools of a cluster have, as it was told and as it is seen."""

from collections.abc import Iterable, Iterator, Sequence

from shadowtime.replayer.accounting.machine_parts import MachineParts
from shadowtime.replayer.following.sight import Node, Sight
from shadowtime.shared.events import CapacityChanged
from shadowtime.shared.pools import Room


class RoomsSeen:
    """The rooms of each pool, counted from 0; a pool never has what it did not have at first."""

    def __init__(self, parts: MachineParts) -> None:
        self._parts = parts
        self._first = [Room(pool.processors, pool.memory, pool.gpus) for pool in parts.pools]
        self._told = list(self._first)
        self._seen = list(self._first)

    def see(self, nodes: Iterable[Node]) -> None:
        """Take in what nodes there are now; those of no pool are left out. O(nodes)."""
        sums = [[0, 0, 0] for _ in self._first]
        for node in nodes:
            if (at := self._parts.of_node.get(node.name)) is None:
                at = self._parts.pool_of("", ",".join(node.partitions))
            if at is not None:
                for place, value in enumerate((node.usable, node.memory, node.gpus)):
                    sums[at][place] += value
        self._seen = [
            Room(has[0], *(None if first is None else now for now, first in zip(has[1:], pool[1:], strict=True)))
            for has, pool in zip(sums, self._first, strict=True)
        ]

    def changes(self, time: int) -> Iterator[CapacityChanged]:
        """Yield what is to be told of pools."""
        for pool, (told, seen) in enumerate(zip(self._told, self._seen, strict=True)):
            if told != seen:
                yield CapacityChanged(time=time, pool=pool, **seen._asdict())

    def told(self, event: CapacityChanged) -> None:
        """Note that a change was told."""
        self._told[event.pool or 0] = Room(event.processors, event.memory, event.gpus)

    def fits(self, sight: Sight, pool: int) -> bool:
        """Return whether a pool ever had what a job asks for."""
        wanted = sight.processors, sight.memory, sight.gpus
        return all(
            value is None or now is None or value <= max(now, first or 0)
            for value, now, first in zip(wanted, self._told[pool], self._first[pool], strict=True)
        )

    def snapshot(self) -> list[list[int | None]]:
        """Return what was told, as plain values."""
        return [list(room) for room in self._told]

    def restore(self, state: Sequence[Sequence[int]]) -> None:
        """Take on what `snapshot` returned."""
        self._told = [Room(*room) for room in state]
        self._seen = list(self._told)
