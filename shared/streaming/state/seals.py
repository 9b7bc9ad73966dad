"""Seals of stored runs: a change in Redis by anybody but the run's stage is noticed when the run is loaded.

A seal is a digest of a run's position, snapshot, journal, outbox and quarantine. Its key is a secret of the stage, so
nobody else can make one. Without a secret, a seal still shows accidents: a slip of an administrator, an evicted key.
The read model is not sealed: no decision depends on it.

The digest of the journal runs on with each input, as the list of the outputs' digests does with each output. So a
transaction costs O(its own bytes), not O(those that are stored).
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import NamedTuple

from shadowtime.shared.streaming.protocols import RunState

SIZE = 16
"""Bytes of a digest. To forge one, 2^128 must be tried."""

EMPTY = bytes(SIZE)


class Contents(NamedTuple):
    """The digests of a run's stored contents: of snapshot and journal, and of each output in the outbox."""

    state: bytes = EMPTY
    outbox: bytes = b""


class Sealer:
    """Makes the seals of a stage. All runs of a stage have one key.

    >>> sealer = Sealer("scheduler", b"a secret")
    >>> saved = RunState(1, 7, 0, None, [b"first", b"second"], [b"answer"])
    >>> whole = sealer.contents(saved.snapshot, saved.journal, saved.outbox)
    >>> before = sealer.contents(None, [b"first"], [b"delivered"])
    >>> sealer.after(before, None, [b"second"], [b"answer"], delivered=1) == whole
    True
    >>> sealer.seal("run", saved, whole) == sealer.seal("other run", saved, whole)
    False
    """

    def __init__(self, stage: str, secret: bytes) -> None:
        self._stage = stage
        self._key = blake2b(secret).digest()

    def _digest(self, *parts: bytes) -> bytes:
        running = blake2b(key=self._key, digest_size=SIZE)
        for part in parts:
            running.update(part)
        return running.digest()

    def _journal(self, digest: bytes, inputs: Iterable[bytes]) -> bytes:
        for value in inputs:
            digest = self._digest(digest, value)
        return digest

    def _outbox(self, outputs: Iterable[bytes]) -> bytes:
        return b"".join([self._digest(value) for value in outputs])

    def contents(self, snapshot: bytes | None, journal: Iterable[bytes], outbox: Iterable[bytes]) -> Contents:
        """Return the digests of stored contents, in O(their bytes)."""
        begun = EMPTY if snapshot is None else self._digest(b"snapshot", snapshot)
        return Contents(self._journal(begun, journal), self._outbox(outbox))

    def after(
        self,
        before: Contents,
        snapshot: bytes | None,
        inputs: Sequence[bytes],
        outputs: Sequence[bytes],
        delivered: int,
    ) -> Contents:
        """Return the digests after a transaction; see `Transaction`. O(its bytes)."""
        state = self._journal(before.state, inputs) if snapshot is None else self._digest(b"snapshot", snapshot)
        return Contents(state, before.outbox[SIZE * delivered :] + self._outbox(outputs))

    def seal(self, run: str, saved: RunState, contents: Contents) -> bytes:
        """Return the seal of a run with these contents. Of `saved`, only the other fields count."""
        place = (saved.sequence, saved.offset, saved.partition, saved.log)
        header = repr((self._stage, run, place, saved.quarantined, saved.catching_up))
        return self._digest(header.encode(), contents.state, contents.outbox)
