"""The log of one partition: the records received without a gap, the beginnings of runs, the records left in it."""

from collections import defaultdict, deque
from dataclasses import dataclass
from typing import NamedTuple

from shadowtime.shared.bounds import MAX_NAME_LENGTH

MAX_BEGINNINGS = 100_000
"""The maximum number of remembered beginnings of runs in a partition. The oldest entry is forgotten first."""

OPENING = b"ClusterOpened"

MAX_KEY_LENGTH = 4 * MAX_NAME_LENGTH
"""The maximum length of a run's name in bytes. No run begins under a longer key."""


def name_of(key: bytes | None) -> str:
    """Return the name of the run with this key."""
    return "" if key is None else key.decode(errors="replace")


class Span(NamedTuple):
    """Offsets from `start` up to, not including, `stop`."""

    start: int
    stop: int


class PartitionLog:
    """The offsets of one partition, without its records. O(1) a record; memory is bounded by `MAX_BEGINNINGS`.

    A log has an identity. If a topic is deleted and made again, its partitions have other logs: all offsets count anew.

    >>> log = PartitionLog()
    >>> [log.receive(offset, b"kth", b"") for offset in (5, 6, 9)]
    [1, 1, 2]
    >>> log.unsearched()
    Span(start=0, stop=9)
    """

    def __init__(self) -> None:
        self._identities: list[tuple[int, str]] = [(0, "")]
        """The first stretch of each log that the partition has had, and the identity of that log, in order."""
        self._epoch = 0
        self._first = 0
        self._next = 0
        self._searched = 0
        self._beginnings: dict[bytes, int] = {}

    @property
    def identity(self) -> str:
        """The identity of the present log; empty if it is not known."""
        return self._identities[-1][1]

    def identify(self, identity: str) -> None:
        """Note the identity of the present log, also for what was received before."""
        self._identities = [(0, identity)]

    def begin_again(self, identity: str) -> None:
        """Record that another log has taken the place of the present one: all offsets count anew."""
        self._identities = [self._identities[-1], (self._epoch + 1, identity)]
        self._first = self._searched = 0
        self._next = -1
        self._beginnings.clear()

    def identity_of(self, epoch: int) -> str:
        """Return the identity of the log of a stretch."""
        first, identity = self._identities[-1]
        return identity if epoch >= first else self._identities[0][1]

    def receive(self, offset: int, key: bytes | None, value: bytes | None) -> int:
        """Note a record, in the order in which records are handed over. Return the number of its stretch.

        A stretch has no gaps: all records between two records of a stretch were handed over.
        """
        if self._epoch == 0 or offset != self._next:
            self._searched = self._known()
            self._epoch += 1
            self._first = offset

        self._next = offset + 1
        self.find(offset, key, value)
        return self._epoch

    def find(self, offset: int, key: bytes | None, value: bytes | None) -> None:
        """Note a record if a run may begin in it. Of several records, the one with the lowest offset counts."""
        if key is None or len(key) > MAX_KEY_LENGTH or value is None or OPENING not in value:
            return
        if offset >= self._beginnings.get(key, offset + 1):
            return
        self._beginnings[key] = offset
        if len(self._beginnings) > MAX_BEGINNINGS:
            del self._beginnings[next(iter(self._beginnings))]

    def mistaken(self, key: bytes) -> None:
        """Forget the noted beginning of a run: no run begins there."""
        self._beginnings.pop(key, None)

    def beginning(self, key: bytes) -> int | None:
        """Return the offset at which a run begins; None if that is not known."""
        return self._beginnings.get(key)

    def unsearched(self) -> Span:
        """Return the offsets that may have unknown beginnings of runs; an empty span if there are none."""
        return Span(self._known(), max(self._known(), self._first))

    def searched(self, stop: int) -> None:
        """Record that all beginnings before offset `stop` are known."""
        self._searched = max(self._searched, stop)

    def _known(self) -> int:
        """Return the offset before which every beginning is known."""
        return max(self._searched, self._next) if self._searched >= self._first else self._searched


@dataclass
class LeftPart:
    """Records of one run that were left in the log, all of one stretch: from offset `first` up to `last`."""

    partition: int
    epoch: int
    first: int
    last: int
    count: int = 1

    def spans(self, partition: int, offset: int) -> bool:
        """Return whether an offset of a partition lies in this part."""
        return self.partition == partition and self.first <= offset <= self.last


class LeftRecords:
    """The records of runs that wait in the log, not in memory. O(1) a record; memory grows with the stretches of runs.

    >>> left = LeftRecords()
    >>> for offset in (5, 7, 9):
    ...     left.add(b"kth", 3, 1, offset)
    >>> left.first_of(3), len(left)
    (5, 3)
    >>> left.read(b"kth", stop=8, count=2)
    >>> left.first_of(3), len(left)
    (8, 1)
    """

    def __init__(self) -> None:
        self._parts: dict[bytes, deque[LeftPart]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, key: bytes) -> bool:
        return key in self._parts

    def count(self, key: bytes | None) -> int:
        """Return the number of records of a run that were left."""
        return sum(part.count for part in self._parts.get(key, ())) if key is not None else 0

    @property
    def keys(self) -> list[bytes]:
        """The runs that have records in the log; the one whose records were read longest ago comes first."""
        return list(self._parts)

    def add(self, key: bytes, partition: int, epoch: int, offset: int) -> None:
        """Leave a record in the log. It follows the records of its run that were left before."""
        parts = self._parts.setdefault(key, deque())
        if parts and (parts[-1].partition, parts[-1].epoch) == (partition, epoch):
            parts[-1].last = offset
            parts[-1].count += 1
        else:
            parts.append(LeftPart(partition, epoch, offset, offset))
        self._count += 1

    def covers(self, key: bytes, partition: int, offset: int) -> bool:
        """Return whether a record was left in the log, and will be read."""
        return key in self._parts and any(part.spans(partition, offset) for part in self._parts[key])

    def is_behind(self, key: bytes, offset: int) -> bool:
        """Return whether a record follows the records of its run that were left in the log; there must be some."""
        return offset > self._parts[key][-1].last

    def next_part(self, key: bytes) -> LeftPart:
        """Return the part of a run's records that is to be read next."""
        return self._parts[key][0]

    def read(self, key: bytes, stop: int, count: int) -> None:
        """Record that `count` records of a run's next part were read: all before offset `stop`."""
        parts = self._parts.pop(key)
        part = parts[0]
        part.first = stop
        count = part.count if stop > part.last else min(count, part.count - 1)
        part.count -= count
        self._count -= count
        if stop > part.last:
            parts.popleft()
        if parts:
            self._parts[key] = parts

    def drop(self, partition: int) -> None:
        """Forget the records of a partition: its log was replaced, or another worker reads it."""
        for key, parts in list(self._parts.items()):
            kept = deque(part for part in parts if part.partition != partition)
            self._count -= sum(part.count for part in parts) - sum(part.count for part in kept)
            if kept:
                self._parts[key] = kept
            else:
                del self._parts[key]

    def first_of(self, partition: int) -> int | None:
        """Return the lowest offset in a partition that was left, in O(runs); None if there is none."""
        return min(
            (part.first for parts in self._parts.values() for part in parts if part.partition == partition),
            default=None,
        )


class LogReading(NamedTuple):
    """A reading of the log for a run whose records were left in it, together with records of other runs on the way."""

    key: bytes
    own: int
    """The number of records of the run that are read, as far as there are any, however many others lie in between."""
    limit: int
    limit_of_all: int
    """The maximum numbers of records that are taken: of each run, and of all runs."""


class LeftReader:
    """Decides which left records are taken while a log is read once. The records of each run are taken in order."""

    def __init__(self, left: LeftRecords, reading: LogReading) -> None:
        part = left.next_part(reading.key)
        self._left, self._key = left, reading.key
        self._partition, self._start = part.partition, part.first
        self._remaining: defaultdict[bytes, int] = defaultdict(lambda: reading.limit)
        self._remaining_of_all = reading.limit_of_all
        self._due = reading.own

    def epoch_of(self, key: bytes, offset: int) -> int | None:
        """Take a record if it may be taken, and return the number of its stretch; else return None."""
        if not self._remaining[key] or key not in self._left:
            return None
        part = self._left.next_part(key)
        if not part.spans(self._partition, offset):
            return None
        due = key == self._key and self._due > 0
        if part.first < self._start or not (self._remaining_of_all > 0 or due):
            self._remaining[key] = 0  # earlier records of the run are not read, so later ones must not be
            return None
        self._left.read(key, offset + 1, 1)
        self._remaining[key] -= 1
        self._remaining_of_all -= 1
        self._due -= key == self._key
        return part.epoch

    @property
    def enough(self) -> bool:
        """Whether enough was taken."""
        used_up = self._remaining_of_all <= 0 and self._due <= 0
        return used_up or not self._remaining[self._key] or self._key not in self._left
