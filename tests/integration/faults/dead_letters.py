"""Messages that a test publishes, and what is buried of them."""

import asyncio
import json
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from shadowtime.shared.streaming.kafka import clients as bus
from shadowtime.shared.streaming.kafka import topic_admin
from shadowtime.shared.streaming.settings import Settings
from tests.support.forked import Forked
from tests.support.patience import PATIENCE


def publish(settings: Settings, topic: str, run: str, values: list[bytes]) -> list[dict[str, str]]:
    """Publish messages of a run; return where each is."""

    async def send() -> list[dict[str, str]]:
        partitions = await topic_admin.prepare_topics(settings)
        producer = bus.producer(settings)
        await producer.start()
        partition = bus.partition_of(run, partitions)
        sent = [await producer.send_and_wait(topic, value, run.encode(), partition) for value in values]
        await producer.stop()
        return [{"topic": topic, "partition": str(partition), "offset": str(each.offset)} for each in sent]

    return asyncio.run(send())


def dead_letters(settings: Settings, count: int, **wanted: str) -> list[dict[str, str]]:
    """Wait for the dead letters with these headers or this text in their reason; other tests' are on the same Kafka."""
    command = ["watch", "dead-letters", "--beginning", f"--kafka-bootstrap={settings.kafka_bootstrap}"]

    def is_wanted(letter: dict[str, str]) -> bool:
        return all(text == letter[name] or (name == "reason" and text in letter[name]) for name, text in wanted.items())

    with TemporaryDirectory() as folder:
        shown = Path(folder) / "shown"
        process = Forked(command, dict(os.environ), shown)
        try:
            until = time.monotonic() + PATIENCE
            while time.monotonic() < until:
                lines = shown.read_bytes().rpartition(b"\n")[0].splitlines() if shown.exists() else []
                found = list(filter(is_wanted, map(json.loads, lines)))
                if len(found) >= count:
                    return found[:count]
                assert process.poll() is None, shown.read_text()
                time.sleep(0.1)
        finally:
            process.kill()
            process.wait()
    return found
