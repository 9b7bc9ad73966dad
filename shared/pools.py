"""The parts of a machine: sets of nodes that partitions share, each with what it has of every resource."""

from collections.abc import Sequence
from typing import NamedTuple

from shadowtime.shared.message import Amount, Frozen, Name, Processors


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


def rooms_of(processors: int, pools: Sequence[Pool]) -> list[Room]:
    """Return what each pool has; a machine that tells of none is one.

    >>> rooms_of(8, ())
    [Room(processors=8, memory=None, gpus=None)]
    >>> rooms_of(8, [Pool(name="cpu", processors=6), Pool(name="gpu", processors=2, gpus=4)])[1]
    Room(processors=2, memory=None, gpus=4)
    """
    return [Room(pool.processors, pool.memory, pool.gpus) for pool in pools] or [Room(processors)]
