"""Messages of several runs to Kafka: those that go out at the same time lie in common batches.

The producer's own way with a message, and a request for a batch of few of them, take ten times as long.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any, NamedTuple

from aiokafka import AIOKafkaProducer
from aiokafka.errors import MessageSizeTooLargeError

Dated = tuple[bytes, int | None]
"""A message, and its time in milliseconds since 1970; None for now."""


class Outgoing(NamedTuple):
    """Messages of one run, and who waits until they are on their way."""

    key: bytes
    messages: Sequence[Dated]
    under_way: asyncio.Future[list[Awaitable[Any]]]


class Sender:
    """Sends through a producer, in the order in which the messages of each partition came.

    Parameters
    ----------
    most
        Bytes of the largest value: a larger one would be refused with all that lie in its batch.
    """

    def __init__(self, producer: AIOKafkaProducer, most: int) -> None:
        self.producer = producer
        self._most = most
        self._waiting: dict[tuple[str, int], list[Outgoing]] = {}
        self._filling: set[asyncio.Task[None]] = set()

    async def send(self, topic: str, partition: int, key: bytes, messages: Sequence[Dated]) -> Sequence[Awaitable[Any]]:
        """Let messages go out in order; return what is done when they have arrived.

        Raises
        ------
        KafkaError
            If they cannot go out; `MessageSizeTooLargeError` if one is too large, and none does.
        """
        if not messages:
            return ()
        if (size := max(len(value) for value, _ in messages)) > self._most:
            raise MessageSizeTooLargeError(f"a message of {size} bytes; at most {self._most} are sent")
        own = Outgoing(key, messages, asyncio.get_running_loop().create_future())
        place = topic, partition
        if place in self._waiting:
            self._waiting[place].append(own)
        else:
            self._waiting[place] = [own]
            task = asyncio.create_task(self._fill_all(place))
            self._filling.add(task)
            task.add_done_callback(self._filling.discard)

        return await own.under_way

    async def _fill_all(self, place: tuple[str, int]) -> None:
        """Put what waits for a partition into batches, until nothing does."""
        while outgoing := self._waiting[place]:
            self._waiting[place] = []
            try:
                batch = await self._filled(place, outgoing)
            except Exception as error:
                batch = [error] * len(outgoing)

            for own, batches in zip(outgoing, batch, strict=True):
                if own.under_way.done():  # nobody waits for it any more
                    continue
                if isinstance(batches, Exception):
                    own.under_way.set_exception(batches)
                else:
                    own.under_way.set_result(batches)

        del self._waiting[place]

    async def _filled(
        self, place: tuple[str, int], outgoing: Sequence[Outgoing]
    ) -> Sequence[list[Awaitable[Any]] | Exception]:
        """Return the batches that the messages of each run lie in, which are on their way."""
        topic, partition = place
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
        # aiokafka gives one future for a batch: whoever is cancelled while he waits for it cancels it for himself alone
        return [[asyncio.shield(future) for future in sent[first : last + 1]] for first, last in span]


async def send_alone(
    producer: AIOKafkaProducer, topic: str, partition: int, key: bytes, message: Dated
) -> Awaitable[Any]:
    """Let a message go out in a batch that holds no other; return what is done when it has arrived."""
    value, when = message
    batch = producer.create_batch()
    batch.append(timestamp=when, key=key, value=value)
    batch.close()
    delivery: Awaitable[Any] = await producer.send_batch(batch, topic, partition=partition)
    return delivery
