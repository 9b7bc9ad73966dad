"""Fair queueing: the run with the least accumulated cost goes next, so a costly run delays itself first."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import Generic, TypeVar

Item = TypeVar("Item")

MAX_IDLE = 10_000
"""The number of keys with remembered costs, above which costs that no longer matter are dropped."""


NEW_KEYS = None
"""The key of the turns that all strangers share; see `FairQueue`."""

NO_KEY = b""
"""The key of items without one."""

TURN_SECONDS, SHORT_TURN_SECONDS = 0.1, 0.02
"""Maximum seconds for the turns that are handled together: while a single key is at work, and while several are."""

MAX_TURN = 10_000
"""The maximum number of items of a turn, however little each costs."""

COSTLY_SECONDS = 0.01
"""Seconds of work on one item, beyond which the item's key is costly."""

BEHIND_SECONDS = 0.003
"""The maximum mean seconds that an item of another key waits for the turns of costly keys."""

LEAST_SHARE = 0.03
"""The minimum share of the time that costly keys get."""

AT_WORK_SECONDS = 1.0
"""Seconds for which a key that is not costly counts as at work after its turn. Costly keys pause meanwhile."""


@dataclass(frozen=True)
class TurnPace:
    """The costs of the last turns of a key, and the length of its next turn."""

    items: int = 1
    """The maximum number of items of its next turn."""
    mean: float = 0.0
    """Mean seconds of an item in its last turn."""
    dearest: float = 0.0
    """Seconds of its most expensive item, halved for each turn since then."""

    @property
    def costly(self) -> bool:
        """Whether the key is costly."""
        return self.dearest > COSTLY_SECONDS

    def after(self, items: int, mean: float, longest: float) -> "TurnPace":
        """Return the pace after another turn. The number of items at most doubles, so no first turn takes long."""
        dearest = max(longest, self.dearest / 2)
        if dearest > COSTLY_SECONDS:
            return TurnPace(1, mean, dearest)
        pace = TurnPace(min(2 * max(self.items, items), MAX_TURN), mean, dearest)
        return replace(pace, items=pace.items_within(TURN_SECONDS))

    def items_within(self, seconds: float) -> int:
        """Return the number of items that are expected to take at most `seconds`; at least 1."""
        return max(1, min(self.items, int(seconds / self.mean))) if self.mean > 0 else self.items


UNKNOWN = TurnPace()

Turns = list[tuple[float, int, bytes | None]]
"""A heap of turns: the accumulated cost at which each is placed, its number, and its key."""


class FairQueue(Generic[Item]):
    """Items in order of arrival within a key, with start-time fair queueing of keys. O(log(keys)) a turn.

    The turn of a key is placed at the accumulated cost of its earlier turns, but never before the last turn: an idle
    key saves up no credit. Strangers are keys that are not known to be at work. The first items of all strangers share
    turns, in order of arrival. So nobody gets ahead of others by using ever new names.

    A turn is not interrupted, so items that arrive meanwhile wait. A turn has as many items as are expected to take
    `TURN_SECONDS`, or `SHORT_TURN_SECONDS` if other keys are at work. A key is costly while one of its items takes
    longer than `COSTLY_SECONDS`, and for some turns after that. A turn of a costly key has one item. After such a turn
    all costly keys pause, if other keys are at work. The pause after c seconds of work has c² / (2 `BEHIND_SECONDS`) -
    c seconds. So an item that arrives at any time waits `BEHIND_SECONDS` on average, however many keys are costly. A
    pause that would leave costly keys less than `LEAST_SHARE` of the time is shorter.

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
        self._waiting: dict[bytes, deque[tuple[Item, int]]] = {}
        self._strangers: deque[bytes] = deque()
        """The strangers, in the order of their first items."""
        self._met: list[bytes] = []
        """The strangers whose first items have their turn now."""
        self._turns: Turns = []
        self._costly_turns: Turns = []
        self._paces: dict[bytes | None, TurnPace] = {}
        self._under_way: dict[bytes | None, int] = {}
        """The keys whose turns are under way, with the numbers of their items."""
        self._expected = 0.0
        """Seconds that these turns are expected to take together."""
        self._paused_until = 0.0
        self._latest: tuple[bytes | None, float] = NO_KEY, -AT_WORK_SECONDS
        """The key of the last turn of a key that is not costly, and the time of its end."""
        self._before = -AT_WORK_SECONDS
        """The time of the end of the last such turn of another key."""
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
        return self.share_taken >= 1

    @property
    def share_taken(self) -> float:
        """The share of the queue that is used, by number or by bytes, whichever is larger. It may be above 1."""
        return max(self._items / self._max_items, self._bytes / self._max_bytes)

    def next_within(self, cost: float) -> bool:
        """Return whether the next turn of a key that is not costly can join the turns under way.

        It can if its place is at most `cost` seconds after the last turn's, and the turns under way are expected to
        take less than `TURN_SECONDS`.
        """
        return bool(self._turns) and self._turns[0][0] <= self._now + cost and self._expected < TURN_SECONDS

    def pause(self) -> float | None:
        """Return the seconds until the next turn, 0 unless only costly keys wait; None if nothing waits."""
        if self._turns:
            return 0.0
        if not self._costly_turns:
            return None
        return max(0.0, min(self._paused_until, self._latest[1] + AT_WORK_SECONDS) - self._clock())

    def is_costly(self, key: bytes | None) -> bool:
        """Return whether a key was costly in its last turn."""
        return self._pace(key).costly

    @property
    def waiting_costly(self) -> list[bytes | None]:
        """The costly keys that wait for their turns, in no order."""
        return [key for _, _, key in self._costly_turns]

    def put(self, key: bytes | None, item: Item, size: int, *, known: bool = True) -> None:
        """Add an item of `size` bytes behind the other items of its key. A key that is not `known` is a stranger."""
        key = key or NO_KEY
        if key not in self._waiting:
            self._waiting[key] = deque()
            if known or key in self._paces:
                self._line_up(key)
            else:
                if not self._strangers and NEW_KEYS not in self._under_way:
                    self._line_up(NEW_KEYS)
                self._strangers.append(key)

        self._waiting[key].append((item, size))
        self._items += 1
        self._bytes += size

    def count(self, key: bytes | None) -> int:
        """Return the number of items of a key that wait."""
        return len(self._waiting.get(key or NO_KEY, ()))

    def heads(self) -> list[Item]:
        """Return the first waiting item of each key that is not costly, in O(keys)."""
        return [waiting[0][0] for key, waiting in self._waiting.items() if waiting and not self.is_costly(key)]

    def take(self, most: int, most_bytes: int) -> tuple[bytes | None, Sequence[Item]]:
        """Return the key whose turn it is and its next items. The turn lasts until `charge`.

        There are at most `most` items, of at most `most_bytes` in all, but at least one item.
        The key of a turn of strangers is `NEW_KEYS`. If only costly keys wait, one of them has its turn, even before
        `pause` has passed.

        Raise `IndexError` if nothing waits.
        """
        turns = self._turns or self._costly_turns
        if self._turns and self._costly_turns and self._clock() >= self._paused_until:
            turns = min(self._turns, self._costly_turns)  # by their first turns
        self._now, _, key = heappop(turns)
        pace = self._pace(key)
        others = self._others_at_work(key, self._clock())
        most = min(most, pace.items_within(SHORT_TURN_SECONDS if others else TURN_SECONDS))
        items: list[Item] = []
        for waiting in self._next_of(key):
            size = waiting[0][1]
            if items and (len(items) == most or size > most_bytes):
                break
            items.append(waiting.popleft()[0])
            most_bytes -= size
            self._bytes -= size

        self._items -= len(items)
        if key is NEW_KEYS:
            self._met = [self._strangers.popleft() for _ in items]
        self._under_way[key] = len(items)
        self._expected += pace.mean * len(items)
        return key, items

    def _next_of(self, key: bytes | None) -> Iterator[deque[tuple[Item, int]]]:
        """Yield the waiting items of a key as long as there are any. For `NEW_KEYS`, yield those of each stranger."""
        if key is NEW_KEYS:
            yield from (self._waiting[stranger] for stranger in self._strangers)
        else:
            waiting = self._waiting[key]
            while waiting:
                yield waiting

    def charge(self, key: bytes | None, cost: float, mean: float = 0.0, longest: float = 0.0) -> None:
        """Add the cost of a key's turn in seconds, and end the turn.

        Parameters
        ----------
        mean, longest
            Seconds of work on an item of the turn: on average, and of the one that took longest.
        """
        now, items = self._clock(), self._under_way.pop(key, 1)
        if not self._under_way:
            self._expected = 0.0
        self._paces[key] = pace = self._pace(key).after(items, mean, 0.0 if key is NEW_KEYS else longest)
        if longest > COSTLY_SECONDS:
            seconds = mean * items
            pause = max(0.0, min(seconds**2 / (2 * BEHIND_SECONDS), seconds / LEAST_SHARE) - seconds)
            others = self._others_at_work(key, now - cost)
            self._paused_until = max(now, self._paused_until if others else now) + pause
        if not pace.costly:
            if key != self._latest[0]:
                self._before = self._latest[1]
            self._latest = key, now

        self._costs[key] = max(self._costs.get(key, 0.0), self._now) + cost
        for served in self._met if key is NEW_KEYS else (key,):
            if self._waiting[served]:
                self._line_up(served)
            else:
                del self._waiting[served]
        if key is NEW_KEYS and self._strangers:
            self._line_up(NEW_KEYS)
        if len(self._costs) > MAX_IDLE:
            self._costs = {run: spent for run, spent in self._costs.items() if spent > self._now}
            kept = self._costs.keys() | self._waiting.keys()
            self._paces = {run: pace for run, pace in self._paces.items() if run in kept}

    def _others_at_work(self, key: bytes | None, now: float) -> bool:
        """Return whether another key that is not costly was at work in the last `AT_WORK_SECONDS`."""
        latest, at = self._latest
        return now < (self._before if key == latest else at) + AT_WORK_SECONDS

    def _pace(self, key: bytes | None) -> TurnPace:
        return self._paces.get(key, UNKNOWN)

    def _line_up(self, key: bytes | None) -> None:
        self._count += 1
        turns = self._costly_turns if self.is_costly(key) else self._turns
        heappush(turns, (max(self._costs.get(key, 0.0), self._now), self._count, key))
