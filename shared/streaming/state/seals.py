"""Seals of stored runs: a change in Redis by anybody but the run's stage is noticed when the run is loaded.

A seal is a digest of a run's position, snapshot, journal, outbox and quarantine. Its key is a secret of the stage, so
nobody else can make one. Without a secret, a seal still shows accidents: a slip of an administrator, an evicted key.
The read model is not sealed: no decision depends on it.

The digests of a run's contents are updated with each input and output. So a transaction costs O(its own bytes), not
O(all stored bytes).
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

from shadowtime.shared.streaming.protocols import RunState, Transaction

PIECE = 2_000
"""Bytes that are added to a digest at once. From 2,048 bytes on, hashlib lets other threads run, and the event loop may
wait for milliseconds until it is its turn again."""

LARGE = 100_000
"""Bytes from which on the computation takes so long that other threads should run meanwhile."""

SEAL_BYTES = 16
"""The length of a seal in bytes."""


class Contents:
    """The running digests of a run's stored contents: of its snapshot and journal, and of its outbox."""

    def __init__(
        self, snapshot: bytes | None = None, journal: Iterable[bytes] = (), outbox: Sequence[bytes] = ()
    ) -> None:
        self._state, self._outbox, self._outputs = blake2b(), blake2b(), 0
        self.add(snapshot, (), ())
        self.add(None, journal, outbox)

    def deliver(self, count: int) -> bool:
        """Drop the first `count` outputs of the outbox. If `count` is neither 0 nor all, drop none and return False."""
        if count == self._outputs:
            self._outbox, self._outputs = blake2b(), 0
        return count == 0 or self._outputs == 0

    def add(self, snapshot: bytes | None, inputs: Iterable[bytes], outputs: Sequence[bytes]) -> None:
        """Add the contents of a transaction; see `Transaction`. O(its bytes)."""
        if snapshot is not None:
            self._state = blake2b()
            inputs = (b"snapshot", snapshot)
        _add(self._state, inputs)
        _add(self._outbox, outputs)
        self._outputs += len(outputs)

    def digest(self) -> bytes:
        """Return the digest of all contents."""
        return self._state.digest() + self._outbox.digest()


def _add(digest: Any, values: Iterable[bytes]) -> None:
    """Add values to a running digest, each with its length in front."""
    text = b"".join([b"%d:%b" % (len(value), value) for value in values])
    step = PIECE if len(text) < LARGE else len(text)
    for begin in range(0, len(text), step):
        digest.update(text[begin : begin + step])


class Sealer:
    """Makes the seals of a stage. All runs of a stage have one key.

    >>> sealer = Sealer("scheduler", b"a secret")
    >>> saved = RunState(1, 7, 0, None, [b"first", b"second"], [b"answer"])
    >>> whole = sealer.seal("run", saved, Contents(saved.snapshot, saved.journal, saved.outbox))
    >>> running = Contents(None, [b"first"], [b"delivered"])
    >>> running.deliver(1)
    True
    >>> running.add(None, [b"second"], [b"answer"])
    >>> sealer.seal("run", saved, running) == whole
    True
    >>> sealer.seal("other run", saved, running) == whole
    False
    """

    def __init__(self, stage: str, secret: bytes) -> None:
        self._stage = stage
        self._key = blake2b(secret).digest()

    def seal(self, run: str, saved: RunState | Transaction, contents: Contents) -> bytes:
        """Return the seal of a run with these contents. The contents in `saved` itself are ignored."""
        place = (saved.sequence, saved.offset, saved.partition, saved.log)
        return self.seal_of(contents.digest(), run, place, saved.quarantined, saved.catching_up)

    def seal_of(self, content: bytes, *name: object) -> bytes:
        """Return the seal of a content with this name; each part of the name has a constant `repr`."""
        header = repr((self._stage, *name))
        return blake2b(header.encode() + content, key=self._key, digest_size=SEAL_BYTES).digest()
