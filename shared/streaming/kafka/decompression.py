"""Batches that a publisher has packed: one that cannot be unpacked within bounds is handed over as one record.

aiokafka unpacks a batch whole, in the event loop: a megabyte of gzip is a gigabyte of zeros, and of a codec whose
library is not installed it raises for ever at the same offset. A record that says why takes the place of the last one
of such a batch, so that readers move on and the dead letters tell of it.
"""

import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from aiokafka.consumer import fetcher
from aiokafka.errors import UnsupportedCodecError
from aiokafka.record._crecords import default_records

from shadowtime.shared.bounds import MAX_UNPACKED

GZIP = 16 + zlib.MAX_WBITS


class TooLarge(Exception):
    """A batch is larger than it may be."""


class UndecodableBatch(bytes):
    """A message that could not be unpacked, with the reason."""


class Unreadable(NamedTuple):
    """The substitute for a batch that cannot be read."""

    offset: int
    timestamp: int
    value: UndecodableBatch
    timestamp_type: int = 0
    key: None = None
    checksum: None = None
    headers: tuple[()] = ()


def unpacked(payload: bytes) -> bytes:
    """Return what was packed with gzip; raises `TooLarge` beyond `MAX_UNPACKED` bytes."""
    plain, left = bytearray(), bytes(payload)
    while left:
        stream = zlib.decompressobj(GZIP)
        plain += stream.decompress(left, MAX_UNPACKED + 1 - len(plain))
        if len(plain) > MAX_UNPACKED:
            raise TooLarge(f"more than {MAX_UNPACKED} bytes")
        left = stream.unused_data

    return bytes(plain)


class _Batch:
    """A batch whose records may not be readable."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __iter__(self) -> Iterator[Any]:
        try:
            yield from self._batch
        except (UnsupportedCodecError, TooLarge, zlib.error) as error:
            first, last = self._batch.base_offset, self._batch.next_offset - 1
            reason = f"records {first} to {last} came in a batch that cannot be unpacked: {error}"
            yield Unreadable(last, self._batch.max_timestamp, UndecodableBatch(reason.encode()))


class _Batches:
    """The batches of a fetch."""

    def __init__(self, records: Any) -> None:
        self._records = records

    def __getattr__(self, name: str) -> Any:
        return getattr(self._records, name)

    def next_batch(self) -> _Batch:
        """Return the next one."""
        return _Batch(self._records.next_batch())


class PartitionRecords(fetcher.PartitionRecords):  # type: ignore[misc]
    """The source of aiokafka's records of a fetch."""

    def __init__(self, place: Any, records: Any, *others: Any) -> None:
        super().__init__(place, _Batches(records), *others)


def limit_decompression() -> None:
    """Let every consumer of this process read so."""
    default_records.gzip_decode = unpacked
    fetcher.PartitionRecords = PartitionRecords
