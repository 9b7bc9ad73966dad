"""Fair queueing: the run with the least accumulated cost goes next, so a costly run delays itself first."""

from collections import Counter, deque
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Generic, TypeVar

Item = TypeVar("Item")

MAX_IDLE = 10_000
"""The number of remembered costs above which the costs that no longer count are dropped."""


NEW_RUNS = None
"""The key of the turns that all strangers share."""


class FairQueue(Generic[Item]):
    """Items in order of arrival within a key, with start-time fair queueing of keys. O(log(keys)) a turn.

    The turn of a key is placed at the accumulated cost of its earlier turns, but never before the last turn: an idle
    key saves up no credit. Strangers are keys that are not known to be at work. They share one turn, in order of
    arrival: nobody gets ahead of others by using ever new names.

    >>> turns = FairQueue[str](max_items=10, max_bytes=100)
    >>> for key, item in ((b"dear", "a"), (b"dear", "b"), (b"cheap", "c"), (b"cheap", "d")):
    ...     turns.put(key, item, 1)
    >>> order = []
    >>> while len(turns):
    ...     key, items = turns.take(1, 100)
    ...     order += items
    ...     turns.charge(key, 5.0 if key == b"dear" else 0.1)
    >>> order
    ['a', 'c', 'd', 'b']

    References
    ----------
    docs/algorithms.md#fair-turns (Goyal 1997).
    """

    def __init__(self, max_items: int, max_bytes: int) -> None:
        self._max_items = max_items
        self._max_bytes = max_bytes
        self._waiting: dict[bytes | None, deque[tuple[Item, int, bytes | None]]] = {}
        self._strangers: Counter[bytes | None] = Counter()
        self._turns: list[tuple[float, int, bytes | None]] = []
        self._costs: dict[bytes | None, float] = {}
        self._now = 0.0
        self._count = 0
        self._items = 0
        self._bytes = 0

    def __len__(self) -> int:
        return self._items

    @property
    def full(self) -> bool:
        """Whether the queue is full: nothing more should be put in."""
        return self._items >= self._max_items or self._bytes >= self._max_bytes

    def next_within(self, cost: float) -> bool:
        """Return whether the next turn is placed at most `cost` after the last turn."""
        return bool(self._turns) and self._turns[0][0] <= self._now + cost

    def put(self, key: bytes | None, item: Item, size: int, *, known: bool = True) -> None:
        """Add an item of `size` bytes behind the other items of its key. A key that is not `known` is a stranger."""
        whose = key
        if key not in self._waiting and (not known or key in self._strangers):
            whose = NEW_RUNS
            self._strangers[key] += 1
        if whose not in self._waiting:
            self._waiting[whose] = deque()
            self._line_up(whose)
        self._waiting[whose].append((item, size, key))
        self._items += 1
        self._bytes += size

    def heads(self) -> list[Item]:
        """Return the next item of each key that has no turn now, in O(keys)."""
        return [waiting[0][0] for waiting in self._waiting.values() if waiting]

    def take(self, most: int, most_bytes: int) -> tuple[bytes | None, Sequence[Item]]:
        """Return the key whose turn it is and its next items, at least one. The turn lasts until `charge`.

        Raises
        ------
        IndexError
            If nothing waits.
        """
        self._now, _, key = heappop(self._turns)
        waiting = self._waiting[key]
        items: list[Item] = []
        total = 0
        while waiting and len(items) < most and (not items or total + waiting[0][1] <= most_bytes):
            item, size, whose = waiting.popleft()
            items.append(item)
            total += size
            if key is NEW_RUNS:
                self._strangers[whose] -= 1
                if self._strangers[whose] <= 0:
                    del self._strangers[whose]

        self._items -= len(items)
        self._bytes -= total
        return key, items

    def charge(self, key: bytes | None, cost: float) -> None:
        """Add the cost of a key's turn, and end the turn."""
        self._costs[key] = max(self._costs.get(key, 0.0), self._now) + cost
        if self._waiting[key]:
            self._line_up(key)
        else:
            del self._waiting[key]
        if len(self._costs) > MAX_IDLE:
            self._costs = {run: spent for run, spent in self._costs.items() if spent > self._now}

    def _line_up(self, key: bytes | None) -> None:
        self._count += 1
        heappush(self._turns, (max(self._costs.get(key, 0.0), self._now), self._count, key))
