"""A replay is not resumed from a log without its beginning."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from shadowtime.replayer.io.kafka_run import KafkaRun
from shadowtime.shared.errors import ReplayError
from shadowtime.shared.messages.envelope import ClusterOpened, Envelope, SchedulingPoint
from shadowtime.shared.streaming.settings import Settings

OPENED = ClusterOpened(time=0, cluster="mine", processors=1, mode="closed")


class Left:
    """Clients of a Kafka whose retention has left these records of the run."""

    partitions = 8

    def __init__(self, sequences: range) -> None:
        self._records = [
            SimpleNamespace(value=Envelope(run="r", sequence=number, event=SchedulingPoint(time=number)).to_bytes())
            for number in sequences
        ]

    async def published(self, key: bytes, partition: int) -> list[SimpleNamespace]:
        return self._records


def test_a_log_without_its_beginning_is_told_before_anything_is_published() -> None:
    run = KafkaRun("r", OPENED, Settings())
    with pytest.raises(ReplayError, match=r"^run 'r' cannot be resumed: topic jobs has it only from sequence 40 on"):
        asyncio.run(run._begin(cast("Any", Left(range(40, 45)))))  # noqa: SLF001
