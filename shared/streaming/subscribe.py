"""Subscribe to a topic from outside the flow: no consumer group, nothing committed, nobody waits for it."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import NamedTuple

from aiokafka import TopicPartition

from shadowtime.shared.errors import BusError
from shadowtime.shared.streaming.bus import partitions_of, reader
from shadowtime.shared.streaming.settings import Settings

MAX_AT_ONCE = 500
POLL_MILLISECONDS = 1_000


class Message(NamedTuple):
    """A message of a topic; `behind` counts those that lie after it in its partition."""

    value: bytes
    headers: Mapping[str, str]
    partition: int
    behind: int


async def subscribe(
    settings: Settings, topic: str, *, beginning: bool = False
) -> AsyncGenerator[Sequence[Message], None]:
    """Yield the messages of a topic for ever, those that come together at once, and none when a second brings none.

    Those of one run are in order. While Kafka is away there are none; whoever closes the generator ends the
    subscription.

    Raises
    ------
    BusError
        If Kafka cannot be reached, or the topic does not exist.
    """
    partitions = await partitions_of(settings, topic)
    if not partitions:
        raise BusError(f"Kafka at {settings.kafka_bootstrap} has no topic {topic!r}; start a worker or a replay first")
    consumer = reader(settings)
    await consumer.start()
    try:
        places = [TopicPartition(topic, number) for number in range(partitions)]
        consumer.assign(places)
        await (consumer.seek_to_beginning() if beginning else consumer.seek_to_end())
        while True:
            found = await consumer.getmany(timeout_ms=POLL_MILLISECONDS, max_records=MAX_AT_ONCE)
            yield [
                Message(
                    record.value or b"",
                    {name: value.decode(errors="replace") for name, value in record.headers},
                    place.partition,
                    max(0, (consumer.highwater(place) or 0) - record.offset - 1),
                )
                for place, records in found.items()
                for record in records
            ]
    finally:
        await consumer.stop()
