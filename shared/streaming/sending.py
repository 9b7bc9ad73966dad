"""Messages of one run to Kafka: few one by one, many as batches that were put together at once."""

from collections.abc import Awaitable, Sequence
from typing import Any

from aiokafka import AIOKafkaProducer

Dated = tuple[bytes, int | None]
"""A message, and its time in milliseconds since 1970; None for now."""

MANY = 20
"""So many messages fill batches of their own: the producer's way with each of them takes ten times as long."""


async def send(
    producer: AIOKafkaProducer, topic: str, partition: int, key: bytes, messages: Sequence[Dated]
) -> list[Awaitable[Any]]:
    """Let messages go out in order; return what is done when they have arrived."""
    if len(messages) < MANY:
        return [await producer.send(topic, value, key, partition, when) for value, when in messages]
    under_way: list[Awaitable[Any]] = []
    batch = producer.create_batch()
    for value, when in messages:
        if batch.append(timestamp=when, key=key, value=value) is None:
            under_way.append(await producer.send_batch(batch, topic, partition=partition))
            batch = producer.create_batch()
            batch.append(timestamp=when, key=key, value=value)
    under_way.append(await producer.send_batch(batch, topic, partition=partition))
    return under_way


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
