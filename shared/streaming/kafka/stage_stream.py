"""The stream of a stage: its outputs and dead letters to Kafka, and repeated reads of its input."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import suppress
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import (
    InvalidProducerIdMapping,
    InvalidTimestampError,
    KafkaError,
    MessageSizeTooLargeError,
    OutOfOrderSequenceNumber,
    ProducerFenced,
    RecordListTooLargeError,
    RecordTooLargeError,
)

from shadowtime.shared.errors import BusError, MessageRejected, reason_of
from shadowtime.shared.stages import DEAD_LETTERS, Stage
from shadowtime.shared.streaming.kafka import clients as bus
from shadowtime.shared.streaming.kafka.batch_sender import Dated, Sender, send_alone
from shadowtime.shared.streaming.kafka.log_reader import LogReader
from shadowtime.shared.streaming.kafka.topic_identity import topic_id
from shadowtime.shared.streaming.protocols import OwnRecord, Record
from shadowtime.shared.streaming.settings import Settings

log = logging.getLogger("shadowtime.worker")

FINAL = (MessageSizeTooLargeError, RecordTooLargeError, RecordListTooLargeError, InvalidTimestampError)
"""Errors of Kafka about a message that it will never accept."""

FAILURES = (KafkaError, OSError, TimeoutError)

RENEWED = (*FINAL, OutOfOrderSequenceNumber, InvalidProducerIdMapping, ProducerFenced)
"""Errors after which an idempotent producer is unusable: the broker waits for a message number that never arrives."""


class KafkaStream:
    """The outputs and the dead letters of a stage; `start` it before use."""

    def __init__(self, stage: Stage, settings: Settings) -> None:
        self._stage = stage
        self._settings = settings
        self._patience = settings.watchdog_seconds / 4
        self._sender = Sender(self._producer(), settings.max_output_bytes)
        self._ending: set[asyncio.Task[None]] = set()
        self._reader = LogReader(settings)
        self._renewing, self._alone = asyncio.Lock(), asyncio.Lock()
        self._refused: set[bytes] = set()

    def _producer(self) -> AIOKafkaProducer:
        """Return a producer that sends a request without an answer again before the watchdog ends the worker."""
        return bus.producer(self._settings, self._patience)

    async def start(self) -> None:
        """Connect the producer."""
        await self._sender.producer.start()

    async def publish(self, partition: int, run: str, values: Sequence[bytes], times: Sequence[float | None]) -> None:
        """Deliver outputs in order, each with the time of its input, or the present time.

        Outputs of several runs share a batch. Kafka accepts or refuses a batch as a whole, and after a refusal also
        refuses the other batches under way. Then each output is sent alone. If Kafka then refuses an output, later
        outputs of its run are also sent alone, until all outputs of one call are delivered.

        Raises
        ------
        MessageRejected
            If Kafka never accepts one of the outputs.
        BusError
            If Kafka cannot be used.
        """
        key, now = run.encode(), time.time()
        messages = [(value, _milliseconds(when, now)) for value, when in zip(values, times, strict=True)]
        try:
            if key not in self._refused:
                sender = self._sender
                try:
                    for delivery in await sender.send(self._stage.writes, partition, key, messages):
                        await delivery
                    return
                except RENEWED:
                    await self._renew(sender)

            await self._deliver_alone(partition, key, messages)
        except FINAL as error:
            raise MessageRejected(f"Kafka rejected an output of the run for good: {reason_of(error)}") from error
        except FAILURES as error:
            raise BusError(f"Kafka did not confirm all outputs: {reason_of(error)}") from error

    async def _deliver_alone(self, partition: int, key: bytes, messages: Sequence[Dated]) -> None:
        """Deliver each message in a batch of its own, by a separate producer: a refusal does not affect other runs."""
        async with self._alone:
            self._refused.add(key)
            producer = self._producer()
            try:
                await producer.start()
                for message in messages:
                    await (await send_alone(producer, self._stage.writes, partition, key, message))
                self._refused.discard(key)
            finally:
                with suppress(*FAILURES):
                    await producer.stop()

    async def dead_letter(self, letters: Sequence[tuple[Record, str]]) -> None:
        """Deliver records to the dead letters, with their origin and the reason in the headers.

        A body is cut to `max_message_bytes`. A record that Kafka refuses is delivered without its body. The headers
        have the full size of the body.

        Raise `BusError` if Kafka cannot be used.
        """
        sender = self._sender
        try:
            sent = [await self._send_letter(record, reason, record.value or b"") for record, reason in letters]
            for (record, reason), delivery in zip(letters, sent, strict=True):
                try:
                    await delivery
                except FINAL:
                    await self._renew(sender)
                    sender = self._sender
                    await (await self._send_letter(record, reason, b""))
        except RENEWED as error:
            await self._renew(sender)
            raise BusError(f"Kafka did not confirm all dead letters: {reason_of(error)}") from error
        except FAILURES as error:
            raise BusError(f"Kafka did not confirm all dead letters: {reason_of(error)}") from error

    async def replay(self, partition: int, start: int, stop: int | None) -> AsyncGenerator[Sequence[Record], None]:
        """Yield the records of the stage's input from offset `start` up to `stop` (the present end if None), in parts.

        Raise `BusError` if Kafka cannot be used.
        """
        try:
            async for part in self._reader.parts(self._stage.reads, partition, start, stop):
                yield [
                    OwnRecord(
                        record.topic, record.partition, record.key, record.offset, record.value, record.timestamp / 1000
                    )
                    for record in part
                ]
        except FAILURES as error:
            await self._reader.stop()
            raise BusError(f"Kafka returned no records of topic {self._stage.reads}: {reason_of(error)}") from error

    async def topic_id(self) -> str:
        """Return the id that Kafka gave the stage's input topic when the topic was made.

        Raise `BusError` if Kafka cannot be used.
        """
        try:
            return await topic_id(self._sender.producer.client, self._stage.reads)
        except FAILURES as error:
            raise BusError(f"Kafka returned no id for topic {self._stage.reads}: {reason_of(error)}") from error

    async def end(self, partition: int) -> int:
        """Return the offset behind the last record of a partition of the stage's input.

        Raise `BusError` if Kafka cannot be used.
        """
        try:
            return await self._reader.end(self._stage.reads, partition)
        except FAILURES as error:
            await self._reader.stop()
            raise BusError(f"Kafka returned no last offset of topic {self._stage.reads}: {reason_of(error)}") from error

    async def stop(self) -> None:
        """Close all connections."""
        await asyncio.gather(*self._ending)
        await self._reader.stop()
        await self._sender.producer.stop()

    async def _renew(self, old: Sender) -> None:
        """Replace the producer, unless another caller has."""
        async with self._renewing:
            if self._sender is not old:
                return
            new = self._producer()
            try:
                await new.start()
            except FAILURES as error:
                raise BusError(f"no new producer of outputs could start: {reason_of(error)}") from error

            self._sender = Sender(new, self._settings.max_output_bytes)
            ending = asyncio.create_task(_end(old.producer, self._patience))
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)

    async def _send_letter(self, record: Record, reason: str, raw: bytes) -> Awaitable[Any]:
        headers = {
            "stage": self._stage.name,
            "topic": record.topic,
            "partition": str(record.partition),
            "offset": str(record.offset),
            "reason": reason,
            "bytes": str(len(record.value or b"")),
        }
        body = raw[: self._settings.max_message_bytes]
        encoded = [(name, value.encode(errors="replace")) for name, value in headers.items()]
        sent: Awaitable[Any] = await self._sender.producer.send(DEAD_LETTERS, body, headers=encoded)
        return sent


async def _end(producer: AIOKafkaProducer, patience: float) -> None:
    """Stop a producer. What it has not delivered after `patience` seconds counts as not delivered.

    aiokafka never gives up a batch of an idempotent producer: a worker that waits for one might wait for ever.
    """
    stopping = asyncio.create_task(producer.stop())
    if not (await asyncio.wait({stopping}, timeout=patience))[0]:
        producer._message_accumulator.fail_all(KafkaError("its producer was replaced"))  # noqa: SLF001
    with suppress(*FAILURES):
        await stopping


def _milliseconds(when: float | None, now: float) -> int | None:
    """Return the time of an output in milliseconds: that of its input, but not in the future; None if unknown."""
    return None if when is None else round(1000 * min(max(when, 0.0), now))
