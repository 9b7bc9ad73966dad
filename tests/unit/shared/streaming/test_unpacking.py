"""Packed batches: bounded, and none holds a reader up."""

import gzip
import zlib
from collections.abc import Sequence

import pytest
from aiokafka import TopicPartition
from aiokafka.consumer import fetcher
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.record.util import calc_crc32c

from shadowtime.shared.bounds import MAX_UNPACKED
from shadowtime.shared.streaming.kafka import clients as bus
from shadowtime.shared.streaming.kafka.decompression import TooLarge, unpacked

GZIP, SNAPPY, LZ4, ZSTD = range(1, 5)
ATTRIBUTES, CRC, CRC_FROM = 22, slice(17, 21), 21


def batch(first: int, values: Sequence[bytes], codec: int) -> bytes:
    """Return a batch as it lies in the log from offset `first` on; only gzip packs it truly."""
    builder = DefaultRecordBatchBuilder(2, GZIP if codec else 0, False, -1, -1, -1, 2**30)
    for offset, value in enumerate(values):
        builder.append(offset, 1_000, b"kth", value, [])
    made = bytearray(builder.build())
    made[:8] = first.to_bytes(8, "big")
    made[ATTRIBUTES] = codec
    made[CRC] = calc_crc32c(bytes(made[CRC_FROM:])).to_bytes(4, "big")
    return bytes(made)


def read(log: bytes) -> tuple[list[tuple[int, bytes | None, bytes | None]], int]:
    """Return offset, key and value of what is handed over, and where is read next."""
    assert bus  # who has it reads so
    found = fetcher.PartitionRecords(TopicPartition("jobs", 0), MemoryRecords(log), [], 0, None, None, True, 0)
    return [(each.offset, each.key, each.value) for each in found], found.next_fetch_offset


@pytest.mark.parametrize("codec", [0, GZIP])
def test_what_is_packed_is_unpacked(codec: int) -> None:
    found, behind = read(batch(0, [b"a", b"b"], codec) + batch(2, [b"c"], codec))
    assert found == [(0, b"kth", b"a"), (1, b"kth", b"b"), (2, b"kth", b"c")]
    assert behind == 3


@pytest.mark.parametrize("codec", [SNAPPY, LZ4, ZSTD])
def test_a_codec_that_is_not_known_holds_nobody_up(codec: int) -> None:
    found, behind = read(batch(0, [b"a"], 0) + batch(1, [b"b", b"c"], codec) + batch(3, [b"d"], 0))
    assert [(offset, key) for offset, key, _ in found] == [(0, b"kth"), (2, None), (3, b"kth")]
    assert found[1][2] is not None
    assert found[1][2].startswith(b"records 1 to 2 are in a batch that cannot be decompressed")
    assert behind == 4


def test_a_batch_is_unpacked_no_further_than_its_bound() -> None:
    found, behind = read(batch(0, [bytes(MAX_UNPACKED)], GZIP) + batch(1, [b"d"], 0))
    assert [(offset, key) for offset, key, _ in found] == [(0, None), (1, b"kth")]
    assert behind == 2


def test_members_of_gzip_count_together() -> None:
    assert unpacked(gzip.compress(b"a") + gzip.compress(b"b")) == b"ab"
    with pytest.raises(TooLarge):
        unpacked(gzip.compress(bytes(MAX_UNPACKED)) + gzip.compress(b"b"))
    with pytest.raises(zlib.error):
        unpacked(b"no gzip")
