"""What lies on the topics after a run."""

import asyncio

from shadowtime.shared.messages.envelope import Envelope
from shadowtime.shared.stages.topics import FLOW
from shadowtime.shared.streaming.kafka.log_reader import read_log
from shadowtime.shared.streaming.kafka.topic_admin import prepare_topics
from shadowtime.shared.streaming.settings import Settings
from tests.support.patience import PATIENCE


def sequences(settings: Settings, run: str, partition: int, topics: tuple[str, ...] = FLOW) -> dict[str, list[int]]:
    """Return the sequences of a run on every topic of the flow, in the order in which they lie there."""

    async def read() -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        # A topic that was just made, or not yet, has no leader to ask; on a busy machine that takes a while.
        await prepare_topics(settings.model_copy(update={"connect_seconds": PATIENCE}))
        for topic in topics:
            records = [record async for record in read_log(settings, topic, partition)]
            envelopes = [Envelope.from_bytes(record.value) for record in records if record.key == run.encode()]
            found[topic] = [envelope.sequence for envelope in envelopes]
        return found

    return asyncio.run(read())


def without_duplicates(numbers: list[int]) -> list[int]:
    """Return what a receiver keeps: each number that follows the last one kept."""
    kept: list[int] = []
    for number in numbers:
        if number == len(kept):
            kept.append(number)
    return kept
