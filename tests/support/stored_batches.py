"""Batches of records byte by byte, as Kafka stores them, and a producer that sends them as they are."""

import gzip
import random
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.consumer import fetcher
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.util import calc_crc32c

from shadowtime.shared.streaming.kafka import clients as bus
from shadowtime.shared.streaming.settings import Settings

GZIP, SNAPPY, LZ4, ZSTD = range(1, 5)
ATTRIBUTES, CRC, CRC_FROM, LAST_OFFSET, HEADER = 22, slice(17, 21), 21, 23, 61
HEADERS: list[tuple[str, bytes | None]] = [("name", b"value"), ("none", None)]


def with_crc(stored: bytearray) -> bytes:
    """Return a batch with the length and the checksum of its present bytes."""
    stored[8:12] = (len(stored) - 12).to_bytes(4, "big")
    stored[CRC] = calc_crc32c(bytes(stored[CRC_FROM:])).to_bytes(4, "big")
    return bytes(stored)


def batch(
    first: int,
    values: Sequence[bytes | None],
    codec: int = 0,
    key: bytes | None = b"kth",
    headers: Sequence[tuple[str, bytes | None]] = HEADERS,
) -> bytes:
    """Return a batch as it is stored from offset `first` on; only gzip compresses it."""
    builder = DefaultRecordBatchBuilder(2, GZIP if codec else 0, False, -1, -1, -1, 2**30)
    for offset, value in enumerate(values):
        builder.append(offset, 1_000, key, value, list(headers))
    made = bytearray(builder.build())
    made[:8] = first.to_bytes(8, "big")
    made[ATTRIBUTES] = codec
    return with_crc(made)


def packed(plain: bytes) -> bytes:
    """Return a batch whose records are compressed with gzip, whatever they are."""
    made = bytearray(plain[:HEADER] + gzip.compress(plain[HEADER:], 1))
    made[ATTRIBUTES] = GZIP
    return with_crc(made)


def mutated(plain: bytes, chance: random.Random) -> bytes:
    """Return a batch with changed records and the right checksum: bytes replaced, removed, repeated and inserted."""
    made = bytearray(plain)
    for _ in range(chance.choice((1, 1, 2, 8))):
        at = chance.randrange(HEADER, max(len(made), HEADER + 1))
        match chance.randrange(5):
            case 0 | 1:
                made[at : at + 1] = bytes([chance.choice((0, 1, 0x7F, 0x80, 0xFE, 0xFF, chance.randrange(256)))])
            case 2:
                del made[at : at + chance.randrange(1, 9)]
            case 3:
                made[at:at] = made[at : at + chance.randrange(1, 40)]
            case _:
                made[at:at] = chance.randbytes(chance.randrange(1, 9))
    return packed(bytes(made)) if chance.random() < 0.3 else with_crc(made)


def records(log: bytes, position: int = 0) -> tuple[list[Any], int]:
    """Return the records that are handed over from `position` on, and the offset that is fetched next."""
    stored = fetcher.MemoryRecords(log)
    read = fetcher.PartitionRecords(TopicPartition("jobs", 0), stored, [], position, None, None, True, 0)
    return list(read), read.next_fetch_offset


class StoredBatchProducer:
    """An asynchronous context manager that sends batches as they are."""

    def __init__(self, settings: Settings) -> None:
        self._producer = AIOKafkaProducer(**bus.connection(settings))

    async def __aenter__(self) -> Self:
        await self._producer.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._producer.stop()

    async def send(self, topic: str, partition: int, stored: bytes) -> int | None:
        """Return the offset that Kafka gave the first record of a batch; None if Kafka refuses the batch."""
        await self._producer.partitions_for(topic)
        client = self._producer.client
        node = client.cluster.leader_for_partition(TopicPartition(topic, partition))
        request = ProduceRequest(None, -1, 30_000, [(topic, [(partition, stored)])])
        answer = await client.send(node, request)
        ((_, ((_, code, offset, *_),)),) = answer.topics
        return offset if code == 0 else None
