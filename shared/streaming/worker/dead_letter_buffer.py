"""Buffer of unusable records until they are on the dead-letter topic."""

import asyncio
import logging

from shadowtime.shared.cli import FewAMinute
from shadowtime.shared.quoting import truncate
from shadowtime.shared.streaming.protocols import Record, Stream
from shadowtime.shared.streaming.worker.context import WorkerMetrics

log = logging.getLogger("shadowtime.dead-letters")
log.addFilter(FewAMinute())


class DeadLetters:
    """Unusable records that are not delivered yet. A record is one dead letter, however often it is added meanwhile."""

    def __init__(self, stream: Stream, metrics: WorkerMetrics) -> None:
        self._stream = stream
        self._metrics = metrics
        self._letters: dict[tuple[int, int, bytes | None], tuple[Record, str]] = {}
        self._delivering = asyncio.Lock()

    def add(self, record: Record, reason: str) -> None:
        """Note a dead letter."""
        self._letters.setdefault((record.partition, record.offset, record.key), (record, truncate(reason)))

    async def deliver(self) -> None:
        """Deliver all noted dead letters: `KafkaStream` (shared/streaming/kafka/stage_stream.py) sends them to Kafka.

        Raise `BusError` if the delivery is not certain.
        """
        if not self._letters:
            return
        async with self._delivering:  # a second caller waits: its letters may be among those under way
            letters = dict(self._letters)
            if not letters:
                return
            await self._stream.dead_letter(list(letters.values()))
            for key, (record, reason) in letters.items():
                del self._letters[key]
                log.error("dead letter: %s", reason, extra={"partition": record.partition, "offset": record.offset})
            self._metrics.dead_letters.inc(len(letters))
