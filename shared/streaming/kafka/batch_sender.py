"""Sender of the messages of several runs to Kafka: messages that are sent at the same time share batches.

Single messages through the producer's own method `send`, and requests with small batches, take ten times as long.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any, NamedTuple

from aiokafka import AIOKafkaProducer
from aiokafka.errors import MessageSizeTooLargeError

Dated = tuple[bytes, int | None]
"""A message, and its time in milliseconds since 1970; None for now."""


class Outgoing(NamedTuple):
    """Messages of one run that wait to be sent.

    `under_way` is done when the producer has taken their batches. Its result is one awaitable per batch, done when the
    batch has arrived.
    """

    key: bytes
    messages: Sequence[Dated]
    under_way: asyncio.Future[list[Awaitable[Any]]]


class Sender:
    """Sends messages through a producer, in order of arrival for each partition.

    Parameters
    ----------
    most
        Maximum bytes of a message. Kafka would refuse a larger message together with its whole batch.
    """

    def __init__(self, producer: AIOKafkaProducer, most: int) -> None:
        self.producer = producer
        self._most = most
        self._waiting: dict[tuple[str, int], list[Outgoing]] = {}
        self._filling: set[asyncio.Task[None]] = set()

    async def send(self, topic: str, partition: int, key: bytes, messages: Sequence[Dated]) -> Sequence[Awaitable[Any]]:
        """Send messages in order. Return the awaitables that are done when the messages have arrived.

        Raise `KafkaError` if they cannot be sent: `MessageSizeTooLargeError` if a message is too large. Then none of
        them is sent.
        """
        if not messages:
            return ()
        if (size := max(len(value) for value, _ in messages)) > self._most:
            raise MessageSizeTooLargeError(f"a message has {size} bytes; the limit is {self._most}")
        own = Outgoing(key, messages, asyncio.get_running_loop().create_future())
        tp = topic, partition
        if tp in self._waiting:
            self._waiting[tp].append(own)
        else:
            self._waiting[tp] = [own]
            task = asyncio.create_task(self._fill_all(tp))
            self._filling.add(task)
            task.add_done_callback(self._filling.discard)

        return await own.under_way

    async def _fill_all(self, tp: tuple[str, int]) -> None:
        """Put the waiting messages of a partition into batches, until none waits."""
        while outgoing := self._waiting[tp]:
            self._waiting[tp] = []
            try:
                batch = await self._filled(tp, outgoing)
            except Exception as error:
                batch = [error] * len(outgoing)

            for own, batches in zip(outgoing, batch, strict=True):
                if own.under_way.done():  # nobody waits for it any more
                    continue
                if isinstance(batches, Exception):
                    own.under_way.set_exception(batches)
                else:
                    own.under_way.set_result(batches)

        del self._waiting[tp]

    async def _filled(
        self, tp: tuple[str, int], outgoing: Sequence[Outgoing]
    ) -> Sequence[list[Awaitable[Any]] | Exception]:
        """Send the messages in batches. For each entry of `outgoing`, return the futures of its batches.

        If the first message of an entry did not fit into the open batch, the future of that batch is returned too.
        """
        topic, partition = tp
        batch = self.producer.create_batch()
        sent: list[Awaitable[Any]] = []
        span = []
        for own in outgoing:
            first = len(sent)
            for value, when in own.messages:
                if batch.append(timestamp=when, key=own.key, value=value) is None:
                    sent.append(await self.producer.send_batch(batch, topic, partition=partition))
                    batch = self.producer.create_batch()
                    batch.append(timestamp=when, key=own.key, value=value)

            span.append((first, len(sent)))

        sent.append(await self.producer.send_batch(batch, topic, partition=partition))
        # aiokafka gives one future for a batch: a cancelled waiter must not cancel it for the others
        return [[asyncio.shield(future) for future in sent[first : last + 1]] for first, last in span]


async def send_alone(
    producer: AIOKafkaProducer, topic: str, partition: int, key: bytes, message: Dated
) -> Awaitable[Any]:
    """Send a message in a batch of its own. Return the awaitable that is done when it has arrived."""
    value, when = message
    batch = producer.create_batch()
    batch.append(timestamp=when, key=key, value=value)
    batch.close()
    delivery: Awaitable[Any] = await producer.send_batch(batch, topic, partition=partition)
    return delivery
