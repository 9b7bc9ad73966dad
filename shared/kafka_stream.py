"""What a stage sends to Kafka, and what it reads there again."""

from collections.abc import Sequence
from dataclasses import replace

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from shared import bus
from shared.errors import BusError, reason_of
from shared.settings import Settings
from shared.stage import Stage
from shared.stage_worker import Record
from shared.topics import DEAD_LETTERS


class KafkaStream:
    """The outputs and the dead letters of a stage."""

    def __init__(self, stage: Stage, producer: AIOKafkaProducer, settings: Settings) -> None:
        self._stage = stage
        self._producer = producer
        self._settings = settings

    async def publish(self, partition: int, run: str, values: Sequence[bytes], times: Sequence[float | None]) -> None:
        """Deliver outputs in order, each with the time of its input, or of now."""
        key, topic = run.encode(), self._stage.writes
        try:
            sent = [
                await self._producer.send(topic, value, key, partition, None if time is None else round(1000 * time))
                for value, time in zip(values, times, strict=True)
            ]
            for delivery in sent:
                await delivery
        except (KafkaError, OSError, TimeoutError) as error:
            raise BusError(f"Kafka does not take outputs: {reason_of(error)}") from error

    async def bury(self, record: Record, reason: str) -> None:
        """Deliver a record to the dead letters, with where it came from and why in the headers."""
        raw = record.value or b""
        headers = {
            "stage": self._stage.name,
            "topic": record.topic,
            "partition": str(record.partition),
            "offset": str(record.offset),
            "reason": reason,
            "bytes": str(len(raw)),
        }
        try:
            await self._producer.send_and_wait(
                DEAD_LETTERS,
                raw[: self._settings.max_message_bytes],
                headers=[(name, value.encode()) for name, value in headers.items()],
            )
        except (KafkaError, OSError, TimeoutError) as error:
            raise BusError(f"Kafka does not take dead letters: {reason_of(error)}") from error

    async def reread(self, partition: int, start: int, stop: int) -> Sequence[Record]:
        """Return the records of the stage's input from offset `start` up to `stop`."""
        try:
            found = await bus.read_log(self._settings, self._stage.reads, partition, start, stop)
            return [replace(record, timestamp=record.timestamp / 1000) for record in found]
        except (KafkaError, OSError, TimeoutError) as error:
            raise BusError(f"Kafka does not give records: {reason_of(error)}") from error
