"""Subscribe to a topic: messages as JSON lines."""

from collections.abc import Mapping
from typing import BinaryIO

import orjson
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from shared.bus import reader
from shared.errors import BusError
from shared.settings import Settings
from shared.topics import DEAD_LETTERS


async def subscribe(
    settings: Settings,
    topic: str,
    output: BinaryIO,
    wanted: Mapping[str, str],
    *,
    beginning: bool = False,
    count: int | None = None,
) -> None:
    """Write the messages of a topic whose fields equal those `wanted`, one line each, for ever or up to `count`.

    A dead letter is shown by its headers, with its bytes as text as far as they are text.

    Raises
    ------
    BusError
        If Kafka cannot be reached, or the topic does not exist.
    """
    consumer = reader(settings)
    try:
        await consumer.start()
        known = await consumer.topics()
    except (KafkaError, OSError) as error:
        await consumer.stop()
        raise BusError(f"Kafka at {settings.kafka_bootstrap} cannot be used: {error}") from None
    try:
        if topic not in known:
            raise BusError(
                f"Kafka at {settings.kafka_bootstrap} has no topic {topic!r}; start a worker or a replay first"
            )
        numbers = consumer.partitions_for_topic(topic) or ()
        consumer.assign([TopicPartition(topic, number) for number in sorted(numbers)])
        await (consumer.seek_to_beginning() if beginning else consumer.seek_to_end())
        written = 0
        async for record in consumer:
            if topic == DEAD_LETTERS:
                headers = {name: value.decode(errors="replace") for name, value in record.headers}
                line = orjson.dumps(headers | {"value": (record.value or b"").decode(errors="replace")})
            else:
                line = record.value or b""
                if wanted and any(orjson.loads(line).get(name) != value for name, value in wanted.items()):
                    continue
            output.write(line + b"\n")
            output.flush()
            written += 1
            if written == count:
                return
    finally:
        await consumer.stop()
