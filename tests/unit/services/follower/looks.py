"""A mirror of one pool, a job that waits there, and what is emitted after a picture."""

from shadowtime.services.follower.cluster.mirror import Mirror
from shadowtime.services.follower.cluster.name_table import NameTable
from shadowtime.services.follower.cluster.observation import JobObservation, LifeKey
from shadowtime.shared.accounting.machine_parts import MachineParts
from shadowtime.shared.accounting.names import Names
from shadowtime.shared.messages.envelope import Event, SchedulingPoint
from shadowtime.shared.messages.machine_capacity import Pool

PARTS = MachineParts((Pool(name="batch", processors=16, memory=4000),), {"batch": 0}, {"n1": 0, "n2": 0})
WAITS = JobObservation(
    LifeKey(7, -1, 10), "waiting", eligible=10, limit=600, processors=4, partition="batch", user="eve"
)


def mirror(patience: int = 600) -> Mirror:
    return Mirror(PARTS, NameTable(Names()), 0, patience)


def look(seen: Mirror, at: int, *observations: JobObservation, whole: bool = True) -> list[Event]:
    """Return what is told after a picture, without scheduling points."""
    seen.take(list(observations), at, whole=whole)
    seen.release(at - 1)
    told: list[Event] = []
    while seen.next_time() is not None:
        told += seen.next_instant()
    return [event for event in told if not isinstance(event, SchedulingPoint)]
