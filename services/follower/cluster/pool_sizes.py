"""The published and the observed capacity of the pools of a cluster."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from shadowtime.services.follower.cluster.observation import JobObservation, Node
from shadowtime.shared.accounting import MachineParts
from shadowtime.shared.bounds import MAX_AMOUNT
from shadowtime.shared.errors import LogViolation
from shadowtime.shared.messages import OR, CapacityChanged, GpuType, MachineCapacity, PoolCapacity, needed, of_types
from shadowtime.shared.quoting import quote, truncate


class ObservedCapacity:
    """The published and the observed capacity of each pool, by index. A pool never gains a kind of resource."""

    def __init__(self, parts: MachineParts) -> None:
        self.parts = parts
        self.configured = [pool.processors for pool in parts.pools]
        """The most processors, usable or not, that the nodes of each pool have had."""
        self.unknown: frozenset[str] = frozenset()
        """Partitions whose nodes are in no pool."""
        self._published = MachineCapacity(sum(pool.processors for pool in parts.pools), parts.pools)
        self._seen = list(self._published)

    def see(self, nodes: Iterable[Node]) -> None:
        """Set the observed capacity from all nodes, and learn new nodes and partitions. O(nodes).

        Nodes without a pool are left out.
        """
        nodes = list(nodes)
        self._learn(nodes)
        types = self._published.types
        sums = [[0] * (3 + len(names)) for names in types]
        configured = [0] * len(sums)
        for node in nodes:
            if (at := self.parts.of_node.get(node.name)) is not None:
                configured[at] += node.processors
                gpus = node.usable_gpus
                typed = (gpus.get(name, 0) for name in types[at])
                memory = node.memory if node.usable_memory is None else node.usable_memory
                for place, value in enumerate((node.usable, memory, sum(gpus.values()), *typed)):
                    sums[at][place] += value

        self.configured = [max(pair) for pair in zip(configured, self.configured, strict=True)]
        self._seen = [
            _managed(PoolCapacity(processors, memory, gpus, tuple(typed)), published)
            for (processors, memory, gpus, *typed), published in zip(sums, self._published, strict=True)
        ]

    def _learn(self, nodes: Sequence[Node]) -> None:
        """Assign new nodes and partitions to pools, and learn the type of each node's GPUs.

        A node that is in none of the pools of its known partitions gets the pool of the first of them. A new partition
        gets the pool that has most of its processors.
        """
        of_node, of_partition = dict(self.parts.of_node), dict(self.parts.of_partition)
        votes: dict[str, dict[int, int]] = {}
        for node in nodes:
            pools = [of_partition[name] for name in node.partitions if name in of_partition]
            if pools and of_node.get(node.name) not in pools:
                of_node[node.name] = pools[0]
            for name in node.partitions:
                if name not in of_partition:
                    of_pool = votes.setdefault(name, {})
                    if (pool := of_node.get(node.name)) is not None:
                        of_pool[pool] = of_pool.get(pool, 0) + node.processors
        of_partition |= {
            name: max(of_pool, key=lambda pool: of_pool[pool]) for name, of_pool in votes.items() if of_pool
        }
        self.unknown = frozenset(name for name, of_pool in votes.items() if not of_pool)
        types = {node.name: next(iter(node.gpu_types)) for node in nodes if len(node.gpu_types) == 1}
        self.parts = MachineParts(self.parts.pools, of_partition, of_node, types)

    def see_pool(self, name: str, room: CapacityChanged) -> None:
        """Apply the change `room` to the observed capacity of the pool called `name`.

        Raise `ValueError` if there is no such pool.
        """
        at = next((at for at, pool in enumerate(self.parts.pools) if pool.name == name), None)
        if at is None:
            known = ", ".join(pool.name for pool in self.parts.pools)
            raise ValueError(f"pool: expected one of the pools {truncate(known)}, found {quote(name)}")
        self._seen[at] = _managed(self._seen[at].changed(room, self._published.types[at]), self._published[at])
        self.configured[at] = max(self.configured[at], self._seen[at].processors)

    def changes(self, time: int) -> Iterator[CapacityChanged]:
        """Yield a change at `time` for each pool whose observed capacity is not published."""
        for pool, (published, seen) in enumerate(zip(self._published, self._seen, strict=True)):
            if published != seen:
                yield CapacityChanged(
                    time=time,
                    processors=seen.processors,
                    pool=pool,
                    memory=seen.memory,
                    gpus=seen.gpus,
                    gpu_types=of_types(self._published.types[pool], seen.of_types),
                )

    def published(self, event: CapacityChanged) -> None:
        """Record a published change."""
        self._published.change(event)

    def unusable(self, observation: JobObservation) -> str | None:
        """Return the reason why a life cannot be published; None if it can."""
        pool = self.pool_of(observation)
        if pool is None:
            return "on a node and in a partition of no pool"
        if observation.processors <= 0:
            return "without processors"
        if observation.start is not None and observation.end is not None and observation.end < observation.start:
            return "ended before it started"
        if not self._may_hold(observation, pool):
            return "larger than its pool"
        if max(observation.nodes or 0, observation.memory or 0, observation.gpus or 0) > MAX_AMOUNT:
            return "larger than any machine"
        return None

    def pool_of(self, observation: JobObservation) -> int | None:
        """Return the pool of a job, see `MachineParts.pool_of`; None if it has none.

        A job that waits in several partitions has the first of their pools that is large enough. If none is, it has the
        pool of the first known partition.
        """
        first = self.parts.pool_of(observation.node_list, observation.partition)
        if observation.start is not None or "," not in observation.partition:
            return first
        of_partition = self.parts.of_partition
        pools = dict.fromkeys(of_partition[name] for name in observation.partition.split(",") if name in of_partition)
        if len(pools) <= 1:
            return first
        return next((pool for pool in pools if self._may_hold(observation, pool)), first)

    def _may_hold(self, observation: JobObservation, pool: int) -> bool:
        """Return whether a job fits into the published or the observed capacity of a pool."""
        return self.fits(observation, pool) or self._within(observation, pool)

    def fits(self, observation: JobObservation, pool: int) -> bool:
        """Return whether a job fits into the published capacity of a pool: the present one, or the first of the log."""
        try:
            asked = observation.processors, observation.memory, observation.gpus
            self._published.require("a job asks for", pool, asked, observation.gpu_type)
        except LogViolation:
            return False
        return True

    def with_types(self, observation: JobObservation, pool: int | None) -> JobObservation:
        """Return an observation. If a started job on one node lacks the type of its GPUs, add the node's type."""
        if pool is None or observation.got is not None or observation.start is None or not observation.gpus:
            return observation
        kind = self.parts.type_of_node.get(observation.node_list) if self._published.types[pool] else None
        if kind is None or observation.nodes != 1:
            return observation
        return replace(observation, got=(GpuType(name=kind, gpus=observation.gpus),))

    def _within(self, observation: JobObservation, pool: int) -> bool:
        """Return whether a job fits into the observed capacity of a pool, which may not be published yet."""
        types, gpus = self._published.types[pool], observation.gpus
        if types and gpus and not {*filter(None, observation.gpu_type.split(OR))} <= {*types}:
            return False
        asked = observation.processors, observation.memory, gpus, *needed(types, observation.gpu_type, gpus)
        amounts = zip(asked, self._seen[pool].amounts, strict=True)
        return all(wanted is None or has is None or wanted <= has for wanted, has in amounts)

    def snapshot(self, *, seen: bool = False) -> list[list[int | None]]:
        """Return the published capacity of each pool as plain values, or with `seen` the observed capacity."""
        return [list(room.amounts) for room in self._seen] if seen else self._published.snapshot()

    def restore(self, state: Sequence[Sequence[Any]], seen: Sequence[Sequence[Any]] | None = None) -> None:
        """Restore the capacities that `snapshot` returned. The observed one defaults to the published one."""
        self._published.restore(state)
        self._seen = list(self._published) if seen is None else self._published.restored(seen)


def _managed(room: PoolCapacity, published: PoolCapacity) -> PoolCapacity:
    """Return a capacity without memory or GPUs if the published pool does not manage them."""
    return room._replace(
        memory=None if published.memory is None else room.memory, gpus=None if published.gpus is None else room.gpus
    )
