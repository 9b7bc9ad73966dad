"""What the embedded pipeline decides, and that a run over Kafka is as complete."""

import tempfile
from functools import cache
from pathlib import Path

from shadowtime.shared.streaming.kafka.clients import partition_of
from shadowtime.shared.streaming.settings import Settings
from tests.support.forked import run_forked
from tests.support.topic_logs import sequences, without_duplicates


@cache
def embedded(*arguments: str) -> bytes:
    """Return the decision log of the embedded pipeline."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "embedded.jsonl"
        run_forked("replay", "--decisions", path, *arguments).check_returncode()
        return path.read_bytes()


def assert_complete(settings: Settings, run: str) -> None:
    """Nothing lost, nothing doubled: each sequence appears on every topic, in order after de-duplication."""
    found = sequences(settings, run, partition_of(run, settings.partitions))
    count = max(found["jobs"]) + 1
    assert {topic: len(without_duplicates(numbers)) for topic, numbers in found.items()} == dict.fromkeys(found, count)
