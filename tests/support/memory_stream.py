"""A stream of messages in memory, and a worker that reads it."""

import asyncio
import random
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

from shadowtime.services.pipeline import STAGES
from shadowtime.shared.errors import BusError
from shadowtime.shared.streaming.protocols import Record
from shadowtime.shared.streaming.worker.stage_worker import StageWorker

SCHEDULER = next(stage for stage in STAGES if stage.name == "scheduler")


@dataclass
class Message:
    value: bytes | None
    offset: int
    key: bytes | None = None
    partition: int = 0
    topic: str = SCHEDULER.reads
    timestamp: float | None = None


class MemoryStream:
    """Keeps what was published; fails as told, before or after the effect."""

    def __init__(self, log: Sequence[Message], chance: random.Random, failures: float = 0.0) -> None:
        self.log = log
        self.published: list[bytes] = []
        self.times: list[float | None] = []
        self.buried: list[tuple[int, str]] = []
        self.read_again = 0
        self.id = "first"
        self._chance = chance
        self._failures = failures

    async def publish(self, partition: int, run: str, values: Sequence[bytes], times: Sequence[float | None]) -> None:
        self.times += times
        for value, _ in zip(values, times, strict=True):
            if self._chance.random() < self._failures / 10:
                raise BusError("told to fail in the middle of a batch")
            self.published.append(value)
        if self._chance.random() < self._failures:
            raise BusError("told to fail after the batch")

    async def dead_letter(self, letters: Sequence[tuple[Record, str]]) -> None:
        self.buried += [(record.offset, reason) for record, reason in letters]

    async def replay(self, partition: int, start: int, stop: int | None) -> AsyncGenerator[Sequence[Message], None]:
        self.read_again += len(self.log[start:stop])
        for first in range(start, len(self.log) if stop is None else stop, 7):
            yield self.log[first : min(first + 7, len(self.log) if stop is None else stop)]

    async def topic_id(self) -> str:
        return self.id

    async def end(self, partition: int) -> int:
        return len(self.log)


async def no_sleep(_: float) -> None:
    await asyncio.sleep(0)


async def take_partition(worker: StageWorker, partition: int = 0) -> None:
    """Let a worker take over every run of a partition, as its loop does between records."""
    await worker.take(partition)
    while worker.untaken:
        await worker.take_over()


async def hand_over(worker: StageWorker, records: Sequence[Message], *, settle: bool = True) -> None:
    await worker.handle([worker.receive(record) for record in records])
    if settle:
        await worker.commit_all()
