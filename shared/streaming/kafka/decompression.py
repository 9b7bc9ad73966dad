"""Bounded decompression of batches: a batch that cannot be decompressed within bounds is handed over as one record.

aiokafka decompresses a whole batch in the event loop. A megabyte of gzip may be a gigabyte of zeros. If the library
of a codec is not installed, aiokafka raises for ever at the same offset. So a record with the reason replaces such a
batch, at the offset of its last record. Readers move on, and the record becomes a dead letter.
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
    """The value of a record that replaces a batch: the reason why the batch could not be decompressed."""


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
    """Return the decompressed form of gzip data. Raise `TooLarge` beyond `MAX_UNPACKED` bytes."""
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
            reason = f"records {first} to {last} are in a batch that cannot be decompressed: {error}"
            yield Unreadable(last, self._batch.max_timestamp, UndecodableBatch(reason.encode()))


class _Batches:
    """The batches of a fetch."""

    def __init__(self, records: Any) -> None:
        self._records = records

    def __getattr__(self, name: str) -> Any:
        return getattr(self._records, name)

    def next_batch(self) -> _Batch:
        """Return the next batch."""
        return _Batch(self._records.next_batch())


class PartitionRecords(fetcher.PartitionRecords):  # type: ignore[misc]
    """The records of a fetch in aiokafka, with bounded decompression."""

    def __init__(self, place: Any, records: Any, *others: Any) -> None:
        super().__init__(place, _Batches(records), *others)


def limit_decompression() -> None:
    """Patch aiokafka, so that every consumer of this process decompresses within bounds."""
    default_records.gzip_decode = unpacked
    fetcher.PartitionRecords = PartitionRecords
