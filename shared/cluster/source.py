"""A source of events: the events of a cluster, instant by instant."""

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

from shadowtime.shared.messages import Event, Outcome

LIMIT, KILLED, RESIZED = 100, 101, 102
"""Statuses that the Standard Workload Format does not have: ended at the limit, killed by the system, resized."""


OUTCOMES: dict[int | None, Outcome] = {0: "failed", 1: "completed", 5: "cancelled", LIMIT: "limit", KILLED: "killed"}
"""Outcomes by status; any other status means completion."""


class Source(Protocol):
    """A source of a cluster's events, instant by instant, in the order of `event_order.py`; without I/O."""

    name: ClassVar[str]

    def next_time(self) -> int | None:
        """Return the time of the next instant in seconds; None if there is none, or it is not known yet."""
        ...

    def next_instant(self) -> Sequence[Event]:
        """Return the events of the next instant, its scheduling point among them, and move on."""
        ...

    def snapshot(self) -> Any:
        """Return the state as plain values. The input of the source, such as a log, is not part of it."""
        ...

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        ...


def none_if_now(instant: int | None, time: int) -> int | None:
    """Return an instant, or None if it equals the event's `time` or is unknown."""
    return None if instant == time else instant
