"""Outputs that the broker never takes: their run is quarantined, says so, and no other waits for it."""

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.stages.topics import DEAD_LETTERS, FLOW
from shadowtime.shared.streaming.settings import Settings
from shadowtime.stack.servers.ports import free_port
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.integration.faults.scheduling_points import answered, publish
from tests.support.patience import PATIENCE
from tests.support.real_servers import require
from tests.support.workers import Workers

SMALL = 3_000
"""Bytes of a message that topic `runtime-distributions` takes here."""


async def make_topics(settings: Settings) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=settings.kafka_bootstrap)
    await admin.start()
    small = {"max.message.bytes": str(SMALL)}
    await admin.create_topics(
        [NewTopic(name, 1, 1, topic_configs=small if name == FLOW[1] else {}) for name in (*FLOW, DEAD_LETTERS)]
    )
    await admin.close()


def told_of_health(port: int) -> Any:
    with urlopen(f"http://127.0.0.1:{port}/health", timeout=PATIENCE) as answer:
        return json.load(answer)


@pytest.mark.nightly
def test_finding_03_an_output_that_the_broker_refuses_for_good_holds_nobody_up(tmp_path: Path) -> None:
    require(Kafka)
    require(Redis)
    with Kafka(tmp_path / "kafka") as kafka, Redis(tmp_path / "redis") as redis:
        settings = Settings(kafka_bootstrap=kafka.address, partitions=1)
        asyncio.run(make_topics(settings))
        port = free_port()
        workers = Workers(kafka, redis, tmp_path, partitions="1", web_port=str(port))
        workers.names = ["runtime_distribution-0"]
        with workers:
            asyncio.run(publish(settings, "before", "easy", 3))
            asyncio.run(publish(settings, "evil", f"easy:weight={'1' * SMALL}", 3))
            asyncio.run(publish(settings, "after", "easy", 3))
            until = time.monotonic() + PATIENCE
            while len(asyncio.run(answered(settings, "after"))) < 4:
                assert time.monotonic() < until, workers.logs()
                time.sleep(0.5)
            assert workers.starts["runtime_distribution-0"] == 1
            assert workers.processes["runtime_distribution-0"].poll() is None
            while (health := told_of_health(port))["quarantined_runs"] == 0:  # runs are worked on beside each other
                assert time.monotonic() < until, workers.logs()
                time.sleep(0.5)
            assert health["healthy"] is True
            assert health["quarantined_runs"] == 1
            assert "MessageSizeTooLarge" in health["quarantined"]["evil"]
        assert [each.event.kind for each in asyncio.run(answered(settings, "before"))][1:] == ["SchedulingPoint"] * 3
        watch = (sys.executable, "-m", "shadowtime", "watch", "dead-letters", "--beginning", "--count", "1")
        letters = subprocess.run(
            [*watch, f"--kafka-bootstrap={kafka.address}"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE,
        ).stdout
        assert "run 'evil' is quarantined by stage runtime_distribution" in json.loads(letters)["reason"]
