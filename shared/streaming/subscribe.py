"""Subscribe to a topic from outside the flow: no consumer group, nothing committed, nobody waits for it."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import NamedTuple

from aiokafka import TopicPartition

from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.topic_follower import TopicFollower

MAX_AT_ONCE = 500
POLL_SECONDS = 1.0


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
    async with TopicFollower(settings, topic, beginning=beginning) as follower:
        while True:
            yield [
                Message(
                    record.value or b"",
                    {name: value.decode(errors="replace") for name, value in record.headers},
                    record.partition,
                    follower.behind(TopicPartition(topic, record.partition), record.offset + 1),
                )
                for record in await follower.next_batch(MAX_AT_ONCE, POLL_SECONDS)
            ]
