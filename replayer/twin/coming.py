"""What has happened on a cluster and is still to come in the shadow of it, in order of time."""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from shadowtime.replayer.embedded import EVENTS
from shadowtime.replayer.twin.life import Life
from shadowtime.replayer.twin.machine_state import NEVER
from shadowtime.shared.events import Event


class Coming:
    """Events with the lives of their jobs; nothing reaches one that is done."""

    def __init__(self) -> None:
        self._events: deque[tuple[Event, Life | None]] = deque()

    def append(self, event: Event, life: Life | None) -> None:
        """Add an event behind all others."""
        self._events.append((event, life))

    def insert(self, event: Event, life: Life) -> None:
        """Add an event before all others."""
        self._events.appendleft((event, life))

    def next_time(self) -> int:
        """Return the time of the next event in seconds; `NEVER` if there is none."""
        while self._events and (life := self._events[0][1]) is not None and life.done:
            self._events.popleft()
        return self._events[0][0].time if self._events else NEVER

    def until(self, time: int) -> Iterator[tuple[Event, Life | None]]:
        """Yield and let go of all events up to a time, also of those that are added meanwhile."""
        while self.next_time() <= time:
            yield self._events.popleft()

    def snapshot(self, places: dict[int, int]) -> Any:
        """Return it as plain values; `places` has a number for each life."""
        return [
            [event.model_dump(), None if life is None else places[id(life)]]
            for event, life in self._events
            if life is None or not life.done
        ]

    def restore(self, state: Any, lives: Sequence[Life]) -> None:
        """Take on what `snapshot` returned, of the same lives."""
        events = EVENTS.validate_python([event for event, _ in state])
        of = [None if at is None else lives[at] for _, at in state]
        self._events = deque(zip(events, of, strict=True))
