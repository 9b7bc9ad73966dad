"""The log of one partition: the records received without a gap, and the beginnings of runs."""

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

    def skip(self) -> int:
        """Begin a stretch of records that are read again later, and return its number."""
        self._searched = self._known()
        self._epoch += 1
        self._next = -1
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
