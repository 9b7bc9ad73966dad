"""Subscribe to a topic: messages as JSON lines."""

from collections.abc import Mapping
from typing import BinaryIO

import orjson
from aiokafka import TopicPartition

from shared.bus import partitions_of, reader
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
    """Write the messages of a topic, one line each, for ever or up to `count`.

    Only those whose fields, or kind of event, equal the ones `wanted`.

    A dead letter is shown by its headers, with its bytes as text as far as they are text.

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
        consumer.assign([TopicPartition(topic, number) for number in range(partitions)])
        await (consumer.seek_to_beginning() if beginning else consumer.seek_to_end())
        written = 0
        async for record in consumer:
            if topic == DEAD_LETTERS:
                headers = {name: value.decode(errors="replace") for name, value in record.headers}
                line = orjson.dumps(headers | {"value": (record.value or b"").decode(errors="replace")})
            else:
                line = record.value or b""
                if wanted and not _is_wanted(line, wanted):
                    continue
            output.write(line + b"\n")
            output.flush()
            written += 1
            if written == count:
                return
    finally:
        await consumer.stop()


def _is_wanted(line: bytes, wanted: Mapping[str, str]) -> bool:
    try:
        message = orjson.loads(line)
        fields = message | {"kind": message["event"]["kind"]}
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return False  # it is a dead letter of the next stage
    return all(fields.get(name) == value for name, value in wanted.items())
