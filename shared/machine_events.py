"""What is told of the machine itself."""

from typing import Annotated, Literal

from pydantic import Field

from shadowtime.shared.bounds import MAX_PROCESSORS
from shadowtime.shared.message import Amount, Count, Frozen, Instant


class CapacityChanged(Frozen):
    """A pool of the machine now has so much, since nodes came or went; None is as before, and the only pool.

    Running jobs go on, so fewer than none may be free for a while.
    """

    kind: Literal["CapacityChanged"] = "CapacityChanged"
    time: Instant
    processors: Annotated[int, Field(ge=0, le=MAX_PROCESSORS)]
    pool: Count | None = None
    memory: Amount | None = None
    gpus: Amount | None = None


class SchedulingPoint(Frozen):
    """Everything that ended or arrived at this instant has been told: the scheduler passes once."""

    kind: Literal["SchedulingPoint"] = "SchedulingPoint"
    time: Instant
