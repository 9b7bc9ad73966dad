"""Fair queueing: the run with the least accumulated cost goes next, so a costly run delays itself first."""

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Generic, TypeVar

Item = TypeVar("Item")

MAX_IDLE = 10_000
"""The number of remembered costs above which the costs that no longer count are dropped."""


NEW_RUNS = None
"""The key of the turns that all strangers share."""

AT_WORK_SECONDS = 1.0
"""Seconds after a turn of a key that is not costly, for which costly keys get half of the time at most."""

Turns = list[tuple[float, int, bytes | None]]
"""A heap of turns: the accumulated cost at which each is placed, its number, and its key."""


class FairQueue(Generic[Item]):
    """Items in order of arrival within a key, with start-time fair queueing of keys. O(log(keys)) a turn.

    The turn of a key is placed at the accumulated cost of its earlier turns, but never before the last turn: an idle
    key saves up no credit. Strangers are keys that are not known to be at work. They share one turn, in order of
    arrival: nobody gets ahead of others by using ever new names.

    The caller says which keys are costly: each of their items takes so long that others would wait. A costly key has
    one item in a turn. After it, all costly keys pause for as long as the turn took, if other keys are at work. So any
    number of costly keys gets half of the time at most.

    Parameters
    ----------
    max_items, max_bytes
        The numbers of waiting items, and of their bytes, from which on the queue is full.
    clock
        Returns seconds; only differences count.

    Examples
    --------
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

    def __init__(self, max_items: int, max_bytes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_items = max_items
        self._max_bytes = max_bytes
        self._clock = clock
        self._waiting: dict[bytes | None, deque[tuple[Item, int, bytes | None]]] = {}
        self._strangers: Counter[bytes | None] = Counter()
        self._turns: Turns = []
        self._costly_turns: Turns = []
        self._costly: set[bytes | None] = set()
        self._paused_until = 0.0
        self._others_until = 0.0
        """The time until which keys that are not costly count as at work."""
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
        """Return whether the next turn of a key that is not costly is placed at most `cost` after the last turn."""
        return bool(self._turns) and self._turns[0][0] <= self._now + cost

    def pause(self) -> float | None:
        """Return the seconds until the next turn: more than 0 if only costly keys wait; None if nothing waits."""
        if self._turns:
            return 0.0
        if not self._costly_turns:
            return None
        return max(0.0, min(self._paused_until, self._others_until) - self._clock())

    def is_costly(self, key: bytes | None) -> bool:
        """Return whether a key was costly in its last turn."""
        return key in self._costly

    @property
    def waiting_costly(self) -> list[bytes | None]:
        """The costly keys that wait for their turns, in no order."""
        return [key for _, _, key in self._costly_turns]

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

        If only costly keys wait, one of them has its turn, even before `pause` has passed.

        Raises
        ------
        IndexError
            If nothing waits.
        """
        turns = self._turns or self._costly_turns
        if self._turns and self._costly_turns and self._clock() >= self._paused_until:
            turns = min(self._turns, self._costly_turns)  # by their first turns
        self._now, _, key = heappop(turns)
        waiting = self._waiting[key]
        items: list[Item] = []
        total = 0
        if key in self._costly:
            most = 1
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

    def charge(self, key: bytes | None, cost: float, *, costly: bool = False) -> None:
        """Add the cost of a key's turn in seconds, and end the turn. `costly` says what the key is from now on."""
        now = self._clock()
        if costly:
            self._costly.add(key)
            self._paused_until = now + cost
        else:
            self._costly.discard(key)
            self._others_until = now + AT_WORK_SECONDS

        self._costs[key] = max(self._costs.get(key, 0.0), self._now) + cost
        if self._waiting[key]:
            self._line_up(key)
        else:
            del self._waiting[key]
        if len(self._costs) > MAX_IDLE:
            self._costs = {run: spent for run, spent in self._costs.items() if spent > self._now}
            self._costly &= self._costs.keys() | self._waiting.keys()

    def _line_up(self, key: bytes | None) -> None:
        self._count += 1
        turns = self._costly_turns if key in self._costly else self._turns
        heappush(turns, (max(self._costs.get(key, 0.0), self._now), self._count, key))
