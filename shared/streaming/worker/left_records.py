"""The records of runs that wait in the log of a partition, not in memory; what a worker stores of them."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import orjson
from pydantic import NonNegativeInt, PositiveInt, TypeAdapter

_STORED = TypeAdapter(tuple[str, NonNegativeInt, list[tuple[str, NonNegativeInt, NonNegativeInt, PositiveInt]]])
"""The stored form of `Unhandled`: the log, the stop, and of each run: key, first and last offset, records."""


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


class LeftSpan(NamedTuple):
    """Unhandled records of one run, from offset `first` up to `last`."""

    first: int
    last: int
    records: int


@dataclass(frozen=True)
class Unhandled:
    """The unhandled records of a partition before offset `stop`, by the key of their run; the others are handled.

    It stays true: other records may be handled later, and a record that is handled twice is a duplicate. So any owner
    of the partition may begin at `stop`, and read these records again when there is room for them.

    >>> unhandled = Unhandled("topic/0", 9, {b"kth": LeftSpan(5, 7, 2)})
    >>> Unhandled.from_bytes(unhandled.to_bytes()) == unhandled
    True
    """

    log: str
    """The identity of the log in which the offsets count."""
    stop: int
    spans: Mapping[bytes, LeftSpan]

    def to_bytes(self) -> bytes:
        """Return this as bytes, for the store."""
        spans = [(key.hex(), *span) for key, span in self.spans.items()]
        return orjson.dumps((self.log, self.stop, spans))

    @classmethod
    def from_bytes(cls, content: bytes) -> "Unhandled":
        """Return what `to_bytes` has made bytes of; raise `ValueError` for other bytes."""
        log, stop, stored = _STORED.validate_json(content)
        spans = {bytes.fromhex(key): LeftSpan(*span) for key, *span in stored}
        if not all(span.first <= span.last < stop for span in spans.values()):
            raise ValueError("A stretch of unhandled records ends before it begins, or behind the stop.")
        return cls(log, stop, spans)


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

    def unhandled(self, partition: int, log: str, stop: int, waiting: Iterable[tuple[bytes, int]]) -> Unhandled:
        """Return the unhandled records of a partition, in O(runs + waiting records).

        Parameters
        ----------
        log
            The identity of the partition's log.
        stop
            The offset behind the last record of the partition that was received.
        waiting
            The keys and offsets of the records that wait in memory.
        """
        spans = {
            key: LeftSpan(own[0].first, own[-1].last, sum(part.count for part in own))
            for key, parts in self._parts.items()
            if (own := [part for part in parts if part.partition == partition])
        }
        for key, offset in waiting:
            first, last, records = spans.get(key, (offset, offset, 0))
            spans[key] = LeftSpan(min(first, offset), max(last, offset), records + 1)
        return Unhandled(log, stop, spans)

    def restore(self, partition: int, epoch: int, spans: Mapping[bytes, LeftSpan]) -> None:
        """Leave the records that were stored as unhandled. No record of the partition must be left yet."""
        for key, span in spans.items():
            self._parts.setdefault(key, deque()).append(LeftPart(partition, epoch, *span))
            self._count += span.records

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
    """The maximum numbers of records that are taken: of each other run, and of all runs."""
    most_left: float = inf
    """Of other runs, only those with at most so many left records are read."""


class LeftReader:
    """Decides which left records are taken while a log is read once. The records of each run are taken in order."""

    def __init__(self, left: LeftRecords, reading: LogReading) -> None:
        part = left.next_part(reading.key)
        self._left, self._key = left, reading.key
        self._partition, self._start = part.partition, part.first
        self._limit, self._most_left = reading.limit, reading.most_left
        self._remaining = {reading.key: max(reading.limit, reading.own)}
        self._remaining_of_all = reading.limit_of_all
        self._due = reading.own

    def epoch_of(self, key: bytes, offset: int) -> int | None:
        """Take a record if it may be taken, and return the number of its stretch; else return None."""
        if key not in self._left:
            return None
        if key not in self._remaining:
            self._remaining[key] = self._limit if self._left.count(key) <= self._most_left else 0
        if not self._remaining[key]:
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

    def stop_before(self, offset: int) -> None:
        """End the reading: the run of the reading has no other record before `offset`."""
        if self._key in self._left and self._remaining[self._key]:
            part = self._left.next_part(self._key)
            if part.partition == self._partition and part.first < offset <= part.last:
                self._left.read(self._key, offset, 0)

    @property
    def enough(self) -> bool:
        """Whether enough was taken."""
        used_up = self._remaining_of_all <= 0 and self._due <= 0
        return used_up or not self._remaining[self._key] or self._key not in self._left
