"""A broker that compresses messages by itself: workers are not healthy, and say which setting mends it."""

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.stages.topics import DEAD_LETTERS, FLOW
from shadowtime.shared.streaming.settings import Settings
from shadowtime.stack.servers.ports import free_port
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.integration.faults.scheduling_points import answered, publish
from tests.support.patience import PATIENCE
from tests.support.real_servers import require
from tests.support.workers import Workers

RETENTION = "7200000"


async def make_topics(settings: Settings, codec: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=settings.kafka_bootstrap)
    await admin.start()
    configs = {"compression.type": codec, "retention.ms": RETENTION}
    await admin.create_topics([NewTopic(name, 1, 1, topic_configs=configs) for name in (*FLOW, DEAD_LETTERS)])
    await admin.close()


async def configured(settings: Settings, topic: str) -> dict[str, str]:
    admin = AIOKafkaAdminClient(bootstrap_servers=settings.kafka_bootstrap)
    await admin.start()
    (answer,) = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
    await admin.close()
    return {entry[0]: entry[1] for entry in answer.resources[0][4]}


def health_of(port: int) -> tuple[int, Any]:
    try:
        with urlopen(f"http://127.0.0.1:{port}/health", timeout=PATIENCE) as answer:
            return answer.status, json.load(answer)
    except HTTPError as error:
        return error.code, json.load(error)


def prepare(settings: Settings) -> str:
    command = (sys.executable, "-m", "shadowtime", "topics", f"--kafka-bootstrap={settings.kafka_bootstrap}")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=True)
    return done.stdout + done.stderr


@pytest.mark.nightly
@pytest.mark.parametrize("codec", ["lz4", "zstd", "snappy"])
def test_a_codec_that_nobody_reads_turns_health_red_until_topics_are_set(tmp_path: Path, codec: str) -> None:
    require(Kafka)
    require(Redis)
    with Kafka(tmp_path / "kafka") as kafka, Redis(tmp_path / "redis") as redis:
        settings = Settings(kafka_bootstrap=kafka.address, partitions=1)
        asyncio.run(make_topics(settings, codec))
        port = free_port()
        workers = Workers(kafka, redis, tmp_path, partitions="1", web_port=str(port))
        workers.names = ["runtime_distribution-0"]
        with workers:
            asyncio.run(publish(settings, "packed", "easy", 3))
            until = time.monotonic() + PATIENCE
            reason = ""
            while "its codec" not in reason:
                assert time.monotonic() < until, workers.logs()
                time.sleep(0.5)
                try:
                    status, health = health_of(port)
                    reason = str(health["reason"])
                except OSError:  # it is starting
                    continue
            assert status == 503
            assert "topic jobs: record" in reason
            assert reason.endswith(
                f"its codec, {codec}, is not supported; expected none or gzip; "
                "set compression.type=producer on the topic: shadowtime topics"
            )

            assert "topics of 1 partition" in prepare(settings)
            found = asyncio.run(configured(settings, "jobs"))
            assert (found["compression.type"], found["retention.ms"]) == ("producer", RETENTION)
            asyncio.run(publish(settings, "plain", "easy", 3))
            while len(asyncio.run(answered(settings, "plain"))) < 4:
                assert time.monotonic() < until, workers.logs()
                time.sleep(0.5)
            assert health_of(port) == (200, {**health_of(port)[1], "healthy": True, "reason": None})


@pytest.mark.nightly
def test_new_topics_store_messages_as_they_are_sent(tmp_path: Path) -> None:
    require(Kafka)
    with Kafka(tmp_path / "kafka") as kafka:
        settings = Settings(kafka_bootstrap=kafka.address, partitions=1)
        for _ in range(2):
            prepare(settings)
            assert asyncio.run(configured(settings, "jobs"))["compression.type"] == "producer"
