"""The seam between a worker and its stream: records, outputs, dead letters."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from shadowtime.shared.logs import FewAMinute
from shadowtime.shared.streaming.worker_metrics import WorkerMetrics
from shadowtime.shared.wording import shortened

log = logging.getLogger("shadowtime.dead-letters")
log.addFilter(FewAMinute())


class Record(Protocol):
    """A message as it came from a topic."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: float | None
    """Unix time in seconds at which its event entered the first topic: outputs inherit that of their input."""


class Stream(Protocol):
    """What a worker needs of Kafka."""

    async def publish(self, partition: int, run: str, values: Sequence[bytes], times: Sequence[float | None]) -> None:
        """Deliver outputs to the stage's own topic, in order.

        `times` are those of their inputs, None where they are not known. Raises `Refused` if Kafka never takes one of
        them, `BusError` if delivery is not certain.
        """
        ...

    async def dead_letter(self, letters: Sequence[tuple[Record, str]]) -> None:
        """Deliver records to the dead letters, each with its reason; raise `BusError` if that is not certain."""
        ...

    def replay(self, partition: int, start: int, stop: int | None) -> AsyncIterator[Sequence[Record]]:
        """Yield the records of the stage's input from offset `start` up to `stop`, what there is now if None, in parts.

        Raises `BusError` if Kafka does not give them.
        """
        ...


class DeadLetters:
    """Records that cannot be used, until they are delivered; each is one letter, however often it is looked at."""

    def __init__(self, stream: Stream, metrics: WorkerMetrics) -> None:
        self._stream = stream
        self._metrics = metrics
        self._letters: dict[tuple[int, int], tuple[Record, str]] = {}
        self._delivering = asyncio.Lock()

    def add(self, record: Record, reason: str) -> None:
        """Note a dead letter."""
        self._letters.setdefault((record.partition, record.offset), (record, shortened(reason)))

    async def deliver(self) -> None:
        """Send what was noted; raise `BusError` if that is not certain."""
        if not self._letters:
            return
        async with self._delivering:  # whoever comes second waits: his may be among those under way
            letters = dict(self._letters)
            if not letters:
                return
            await self._stream.dead_letter(list(letters.values()))
            for place, (record, reason) in letters.items():
                del self._letters[place]
                log.error("dead letter: %s", reason, extra={"partition": record.partition, "offset": record.offset})
            self._metrics.dead_letters.inc(len(letters))
