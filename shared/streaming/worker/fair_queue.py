"""Fair queueing: the run with the least accumulated cost goes next, so a costly run delays itself first."""

import os
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
"""Seconds for which a key that is not costly counts as at work after its turn. Costly keys pause meanwhile, and keys
with a backlog if its work was short."""

LONGEST_PAUSES = 4.0
"""The maximum length of the pause of keys with a backlog, as a multiple of their turns."""

SHORT_ITEMS, SHORT_SECONDS = 20, 0.01
"""The maximum numbers of items and of their seconds of work for a key without a backlog, in its turn and behind it."""


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


def load_of_machine() -> float:
    """Return the number of processes that run or wait for a processor, as a mean of a minute, by processor."""
    return os.getloadavg()[0] / (os.cpu_count() or 1)


class LastTurns:
    """The last turn, and the last turn of another key than that."""

    def __init__(self) -> None:
        self.key: bytes | None = b""
        self.ended = -AT_WORK_SECONDS
        self._before = -AT_WORK_SECONDS

    def note(self, key: bytes | None, now: float) -> None:
        """Note the end of a turn."""
        if key != self.key:
            self._before = self.ended
        self.key, self.ended = key, now

    def other_at_work(self, key: bytes | None, now: float) -> bool:
        """Return whether another key was at work in the last `AT_WORK_SECONDS`."""
        return now < (self._before if key == self.key else self.ended) + AT_WORK_SECONDS


class Lane:
    """A heap of turns: the accumulated cost at which each is placed, its number, and its key.

    None of them begins during a pause, unless the keys for which the lane pauses are no longer at work.
    """

    def __init__(self, ahead: LastTurns) -> None:
        self.turns: list[tuple[float, int, bytes | None]] = []
        self.paused_until = 0.0
        self._ahead = ahead

    def pause(self, now: float) -> float:
        """Return the seconds until the next turn may begin."""
        return max(0.0, min(self.paused_until, self._ahead.ended + AT_WORK_SECONDS) - now)


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

    A key has a backlog if more than `SHORT_ITEMS` wait at the end of its turn, or if they are expected to take longer
    than `SHORT_SECONDS`. While keys with less work are at work, keys with a backlog pause as long as their turns took.
    So they get at most half of the time. On a machine with too few processors, they pause longer, in proportion to the
    load, but at most `LONGEST_PAUSES` times as long as their turns. Keys with a backlog have turns of their own.

    Parameters
    ----------
    max_items, max_bytes
        The numbers of waiting items, and of their bytes, from which on the queue is full.
    clock
        Returns seconds; only differences count.
    load
        Returns the load of the machine: at most 1 if there are enough processors.

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

    def __init__(
        self,
        max_items: int,
        max_bytes: int,
        clock: Callable[[], float] = time.monotonic,
        load: Callable[[], float] = load_of_machine,
    ) -> None:
        self._max_items = max_items
        self._max_bytes = max_bytes
        self._clock, self._load = clock, load
        self._waiting: dict[bytes, deque[tuple[Item, int]]] = {}
        self._strangers: deque[bytes] = deque()
        """The strangers, in the order of their first items."""
        self._met: list[bytes] = []
        """The strangers whose first items have their turn now."""
        self._at_work, self._quick = LastTurns(), LastTurns()
        """The last turns of keys that are not costly, and of those among them without a backlog."""
        self._prompt, self._backlogs, self._costly = Lane(self._quick), Lane(self._quick), Lane(self._at_work)
        self._lanes = self._prompt, self._backlogs, self._costly
        self._lane_taken = self._prompt
        """The lane of the last turn."""
        self._behind: set[bytes | None] = set()
        """The keys with a backlog."""
        self._paces: dict[bytes | None, TurnPace] = {}
        self._under_way: dict[bytes | None, int] = {}
        """The keys whose turns are under way, with the numbers of their items."""
        self._expected = 0.0
        """Seconds that these turns are expected to take together."""
        self._began = 0.0
        """The time at which the turns under way began."""
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

    @property
    def quick_at_work(self) -> bool:
        """Whether a key without a backlog was at work in the last `AT_WORK_SECONDS`."""
        return self._clock() < self._quick.ended + AT_WORK_SECONDS

    def next_within(self, cost: float) -> bool:
        """Return whether the next turn of a key that is not costly can join the turns under way.

        It can if its place is at most `cost` seconds after the last turn's, and it has a backlog if the last turn's key
        had one. The turns under way must be expected to take less than `TURN_SECONDS`, or `SHORT_TURN_SECONDS` while
        keys without a backlog are at work.
        """
        lane = self._next_lane([self._lane_taken])
        most = SHORT_TURN_SECONDS if self.quick_at_work else TURN_SECONDS
        return lane is not None and lane.turns[0][0] <= self._now + cost and self._expected < most

    def pause(self) -> float | None:
        """Return the seconds until the next turn, 0 unless only keys that pause wait; None if nothing waits."""
        now = self._clock()
        return min((lane.pause(now) for lane in self._lanes if lane.turns), default=None)

    def _next_lane(self, lanes: Sequence[Lane]) -> Lane | None:
        """Return the lane of the next turn; None if none of them has a turn that may begin."""
        now = self._clock()
        ready = [lane for lane in lanes if lane.turns and lane.pause(now) <= 0]
        return min(ready, key=lambda lane: lane.turns[0], default=None)

    def is_costly(self, key: bytes | None) -> bool:
        """Return whether a key was costly in its last turn."""
        return self._pace(key).costly

    def is_quick(self, key: bytes | None) -> bool:
        """Return whether a key is known to be neither costly nor to have a backlog."""
        return key in self._paces and key not in self._behind and not self.is_costly(key)

    @property
    def waiting_costly(self) -> list[bytes | None]:
        """The costly keys that wait for their turns, in no order."""
        return [key for _, _, key in self._costly.turns]

    def put(self, key: bytes, item: Item, size: int, *, known: bool = True) -> None:
        """Add an item of `size` bytes behind the other items of its key. A key that is not `known` is a stranger."""
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

    def count(self, key: bytes) -> int:
        """Return the number of items of a key that wait."""
        return len(self._waiting.get(key, ()))

    @property
    def items(self) -> Iterator[tuple[bytes, Item]]:
        """All waiting items, by key, each with its key."""
        return ((key, item) for key, waiting in self._waiting.items() for item, _ in waiting)

    def heads(self) -> list[Item]:
        """Return the first waiting item of each key that is not costly, in O(keys)."""
        return [waiting[0][0] for key, waiting in self._waiting.items() if waiting and not self.is_costly(key)]

    def take(self, most: int, most_bytes: int) -> tuple[bytes | None, Sequence[Item]]:
        """Return the key whose turn it is and its next items. The turn lasts until `charge`.

        There are at most `most` items, of at most `most_bytes` in all, but at least one item.
        The key of a turn of strangers is `NEW_KEYS`. If only keys that pause wait, one of them has its turn, even
        before `pause` has passed.

        Raise `IndexError` if nothing waits.
        """
        lane = self._next_lane(self._lanes) or next((lane for lane in self._lanes if lane.turns), self._prompt)
        self._lane_taken = lane
        self._now, _, key = heappop(lane.turns)
        pace, now = self._pace(key), self._clock()
        if not self._under_way:
            self._began = now
        others = self._at_work.other_at_work(key, now)
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

    def put_back(self, key: bytes | None, own: bytes, item: Item, size: int) -> None:
        """Return the last item of a turn that is not handled, before `charge`. It is the first of key `own` again.

        The key of the turn differs from that of the item if strangers shared the turn.
        """
        self._waiting[own].appendleft((item, size))
        self._under_way[key] -= 1
        self._items += 1
        self._bytes += size

    def _next_of(self, key: bytes | None) -> Iterator[deque[tuple[Item, int]]]:
        """Yield the waiting items of a key as long as there are any. For `NEW_KEYS`, yield those of each stranger."""
        if key is NEW_KEYS:
            yield from (self._waiting[stranger] for stranger in self._strangers)
        else:
            waiting = self._waiting[key]
            while waiting:
                yield waiting

    def charge(
        self, key: bytes | None, cost: float, mean: float = 0.0, longest: float = 0.0, elsewhere: int = 0
    ) -> None:
        """Add the cost of a key's turn in seconds, and end the turn. Without an item, the pace of the key stays.

        Parameters
        ----------
        mean, longest
            Seconds of work on an item of the turn: on average, and of the one that took longest.
        elsewhere
            Number of items of the key that are not in the queue yet, but belong to its backlog.
        """
        now, items = self._clock(), self._under_way.pop(key, 1)
        pace = self._pace(key)
        if items:
            self._paces[key] = pace = pace.after(items, mean, 0.0 if key is NEW_KEYS else longest)
        if longest > COSTLY_SECONDS:
            seconds = mean * items
            extra = max(0.0, min(seconds**2 / (2 * BEHIND_SECONDS), seconds / LEAST_SHARE) - seconds)
            others = self._at_work.other_at_work(key, now - cost)
            self._costly.paused_until = max(now, self._costly.paused_until if others else now) + extra
        behind = key is not NEW_KEYS and not _is_short(pace.mean, len(self._waiting[key]) + elsewhere)
        if not pace.costly:
            self._at_work.note(key, now)
            if not behind and _is_short(mean, items):
                self._quick.note(key, now)
        if behind:
            self._behind.add(key)
            if self._quick.other_at_work(key, now):
                pauses = min(LONGEST_PAUSES, max(1.0, self._load()))
                self._backlogs.paused_until = now + pauses * (now - self._began)
        else:
            self._behind.discard(key)
        if not self._under_way:
            self._expected = 0.0

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

    def _pace(self, key: bytes | None) -> TurnPace:
        return self._paces.get(key, UNKNOWN)

    def _line_up(self, key: bytes | None) -> None:
        self._count += 1
        lane = self._costly if self.is_costly(key) else self._backlogs if key in self._behind else self._prompt
        heappush(lane.turns, (max(self._costs.get(key, 0.0), self._now), self._count, key))


def _is_short(mean: float, items: int) -> bool:
    return items <= SHORT_ITEMS and mean * items <= SHORT_SECONDS
