"""Conversion of stored batches into records. Bytes that cannot be read never stop a reader or hide other records.

aiokafka raises an error at bytes that it cannot read. It raises the error again at each fetch, since the offset stays
the same. A megabyte of gzip may unpack to a gigabyte. A producer may write any offset into a record.

So this module replaces records that cannot be read by a single record with the reason. The single record has the offset
of the last record that it replaces. Readers continue behind this offset, and the record becomes one dead letter. All
other records of the batch are handed over.

The cost is linear in the bytes of the batch and of its decompressed form. Both numbers of bytes are bounded.
"""

import zlib
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from aiokafka.consumer import fetcher
from aiokafka.errors import UnsupportedCodecError
from aiokafka.record._crecords import default_records
from aiokafka.record.default_records import DefaultRecordBatch
from aiokafka.record.legacy_records import LegacyRecordBatch
from aiokafka.record.util import decode_varint

from shadowtime.shared.bounds import MAX_GZIP_MEMBERS, MAX_UNPACKED
from shadowtime.shared.errors import reason_of

GZIP = 16 + zlib.MAX_WBITS

# The places of fields in a stored batch: https://kafka.apache.org/documentation/#recordbatch
PREFIX: Final = 12
"""Bytes of the fields base offset and length. The length is the number of bytes behind these two fields."""
LENGTH: Final = 8
MAGIC: Final = 16
ATTRIBUTES: Final = 22
COUNT: Final = slice(57, 61)
HEADER: Final = 61
CODEC: Final = 0x07
"""The bits of the attributes that name the codec."""


CODECS: Final = {2: "snappy", 3: "lz4", 4: "zstd"}
"""Names of the codecs that are not supported."""


class UnreadableBatch(Exception):
    """A batch, or one of its records, violates Kafka's format or exceeds a limit of size."""


class UnsupportedCodec(UnreadableBatch):
    """A batch is compressed by a codec that readers do not support."""


class UnreadableReason(bytes):
    """The reason why records cannot be read: the value of the record that replaces them."""


class UnsupportedReason(UnreadableReason):
    """The reason why records of an unsupported codec cannot be read."""


class Unreadable(NamedTuple):
    """A record that replaces records that cannot be read."""

    offset: int
    timestamp: int
    value: UnreadableReason
    timestamp_type: int = 0
    key: None = None
    checksum: None = None
    headers: tuple[()] = ()


def _unreadable(first: int, last: int, timestamp: int, error: Exception) -> Unreadable:
    named = f"record {last}" if first == last else f"records {first} to {last}"
    kind = UnsupportedReason if isinstance(error, UnsupportedCodec | UnsupportedCodecError) else UnreadableReason
    return Unreadable(last, timestamp, kind(f"{named} cannot be read: {reason_of(error)}".encode()))


def unpacked(payload: bytes) -> bytes:
    """Return the decompressed form of gzip data, in O(its bytes).

    Raises
    ------
    UnreadableBatch
        If the decompressed form has more than `MAX_UNPACKED` bytes, or the data has more than `MAX_GZIP_MEMBERS`
        members. Each member costs a copy of the bytes behind it.
    zlib.error
        If the data is not gzip.
    """
    plain, left = bytearray(), bytes(payload)
    for _ in range(MAX_GZIP_MEMBERS):
        stream = zlib.decompressobj(GZIP)
        plain += stream.decompress(left, MAX_UNPACKED + 1 - len(plain))
        if len(plain) > MAX_UNPACKED:
            raise UnreadableBatch(f"its batch decompresses to more than {MAX_UNPACKED} bytes")
        left = stream.unused_data
        if not left:
            return bytes(plain)

    raise UnreadableBatch(f"its batch has more than {MAX_GZIP_MEMBERS} members of gzip")


class _Batch:
    """A stored batch. Its construction raises `UnreadableBatch` if it is damaged; iterating over it raises nothing."""

    def __init__(self, raw: bytes) -> None:
        if len(raw) < HEADER and raw[MAGIC] >= 2:
            raise UnreadableBatch(f"its batch has {len(raw)} bytes; expected at least {HEADER}")
        self._raw = raw
        self._batch: Any = DefaultRecordBatch(raw) if raw[MAGIC] >= 2 else LegacyRecordBatch(raw, raw[MAGIC])
        if not self._batch.validate_crc():
            raise UnreadableBatch("the checksum of its batch is wrong")

    def validate_crc(self) -> bool:
        """Return True: the checksum was verified at construction."""
        return True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __iter__(self) -> Iterator[Any]:
        read, offset, last = 0, self._batch.base_offset - 1, self._batch.next_offset - 1
        try:
            for record in self._batch:
                _check_offset(record, offset, last)
                read, offset = read + 1, record.offset
                yield record
        except Exception as error:
            if self._raw[MAGIC] < 2:
                yield _unreadable(offset + 1, last, self._batch.max_timestamp or 0, error)
            else:
                yield from self._one_by_one(read, offset, last)

    def _one_by_one(self, read: int, offset: int, last: int) -> Iterator[Any]:
        """Yield the records behind `offset`, without the first `read` records. Each record is decoded on its own."""
        first, reason, timestamp = offset + 1, None, self._batch.max_timestamp
        try:
            for place, record in enumerate(self._single_records()):
                if place < read:
                    continue
                at = min(max(self._batch.base_offset + place, offset + 1), last)
                try:
                    (decoded,) = DefaultRecordBatch(record)
                    _check_offset(decoded, offset, last)
                except Exception as error:
                    offset, reason = at, reason or error
                    continue
                if reason is not None:
                    yield _unreadable(first, decoded.offset - 1, timestamp, reason)
                yield decoded
                offset, first, reason = decoded.offset, decoded.offset + 1, None
        except Exception as error:
            reason = reason or error
        if reason is not None and first <= last:
            yield _unreadable(first, last, timestamp, reason)

    def _single_records(self) -> Iterator[bytes]:
        """Yield each record as an uncompressed batch of its own. Raise an error at a record with an invalid length."""
        header, body = bytearray(self._raw[:HEADER]), self._raw[HEADER:]
        codec = header[ATTRIBUTES] & CODEC
        if codec == DefaultRecordBatch.CODEC_GZIP:
            body = unpacked(body)
        elif codec != DefaultRecordBatch.CODEC_NONE:
            name = CODECS.get(codec, str(codec))
            raise UnsupportedCodec(f"its codec, {name}, is not supported; expected none or gzip")
        header[ATTRIBUTES] &= ~CODEC
        header[COUNT] = (1).to_bytes(4, "big")
        at = 0
        for _ in range(int.from_bytes(self._raw[COUNT], "big", signed=True)):
            length, begin = decode_varint(body, at)
            if length < 0 or begin + length > len(body):
                raise UnreadableBatch(
                    f"a record of {length} bytes begins {len(body) - begin} bytes before the end of its batch"
                )
            yield bytes(header) + body[at : begin + length]
            at = begin + length


def _check_offset(record: Any, offset: int, last: int) -> None:
    """Raise `UnreadableBatch` unless a record is behind `offset` and not behind `last`."""
    if not offset < record.offset <= last:
        raise UnreadableBatch(f"its offset is {record.offset}; expected {offset + 1} to {last}")


class _Damaged:
    """The batch at an offset, if it cannot be read and its end is unknown."""

    is_control_batch = is_transactional = False
    producer_id = None

    def __init__(self, offset: int, error: Exception) -> None:
        self._error = error
        self.base_offset, self.next_offset = offset, offset + 1

    def validate_crc(self) -> bool:
        """Return True: this batch is known to be damaged."""
        return True

    def __iter__(self) -> Iterator[Any]:
        yield _unreadable(self.base_offset, self.base_offset, 0, self._error)


class RecordBatches:
    """The batches of a fetch from offset `position` on. A cut-off batch at its end is skipped, unless it is first."""

    def __init__(self, stored: bytes) -> None:
        self._stored = stored
        self._at = 0
        self.position = 0

    def size_in_bytes(self) -> int:
        """Return the number of bytes of the fetch."""
        return len(self._stored)

    def _end(self) -> int:
        """Return where the next batch ends."""
        length = self._stored[self._at + LENGTH : self._at + PREFIX]
        return self._at + PREFIX + int.from_bytes(length, "big", signed=True)

    def has_next(self) -> bool:
        """Return whether a batch is left. Kafka returns at least the first one whole."""
        return self._at < len(self._stored) and (self._at == 0 or self._end() <= len(self._stored))

    def next_batch(self) -> _Batch | _Damaged:
        """Return the next batch."""
        begin, end = self._at, self._end()
        try:
            if end > len(self._stored):
                raise UnreadableBatch(f"its batch is cut off after {len(self._stored) - begin} bytes")
            batch = _Batch(self._stored[begin:end])
            if batch.next_offset <= self.position:
                raise UnreadableBatch(
                    f"its batch ends before offset {batch.next_offset}; expected records from {self.position} on"
                )
        except Exception as error:
            self._at = len(self._stored)  # later batches are fetched again, from the next offset on
            return _Damaged(self.position, error)
        self._at, self.position = end, batch.next_offset
        return batch


class PartitionRecords(fetcher.PartitionRecords):  # type: ignore[misc]
    """The records of a fetch in aiokafka. It passes the first offset of the fetch to `RecordBatches`."""

    def __init__(self, place: Any, records: RecordBatches, aborted: Any, position: int, *others: Any) -> None:
        records.position = position
        super().__init__(place, records, aborted, position, *others)


def read_safely() -> None:
    """Patch aiokafka, so that every consumer of this process reads batches as this module does."""
    default_records.gzip_decode = unpacked
    fetcher.MemoryRecords = RecordBatches
    fetcher.PartitionRecords = PartitionRecords
