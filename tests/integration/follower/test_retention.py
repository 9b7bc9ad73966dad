"""A live run whose early log is gone: everybody starts again from what is stored, and the run goes on."""

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.messages.envelope import Envelope, JobSubmitted
from shadowtime.shared.stages.topics import DEAD_LETTERS, FLOW, JOBS, SCORES
from shadowtime.shared.streaming.kafka import clients as bus
from shadowtime.shared.streaming.kafka import topic_admin
from shadowtime.shared.streaming.kafka.log_reader import read_log
from shadowtime.shared.streaming.settings import Settings
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.support.patience import PATIENCE
from tests.support.workers import Workers

RUN = "gone/live"


class Site:
    """A cluster that is told of in lines, and a follower of it."""

    def __init__(self, workers: Workers, folder: Path) -> None:
        (folder / "lines").mkdir()
        (folder / "pools.toml").write_text('[[pool]]\nname = "batch"\nprocessors = 64\npartitions = ["batch"]\n')
        self.settings = Settings(kafka_bootstrap=workers.kafka.address)
        self.partition = asyncio.run(self._partition())
        self._log = folder / "follower.log"
        self._lines = folder / "lines" / "1.jsonl"
        self._environment = workers.environment
        self._command = [
            *(sys.executable, "-m", "shadowtime", "follow", "lines", "--cluster", "gone", "--history", "1day"),
            *("--from", str(folder / "lines"), "--pools", str(folder / "pools.toml"), "--every", "5"),
            *("--policy", "easy", "--runtime", "empirical"),
        ]
        self.start()

    async def _partition(self) -> int:
        return bus.partition_of(RUN, await topic_admin.prepare_topics(self.settings))

    def start(self) -> None:
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                self._command, cwd=ROOT, env=self._environment, stdout=log, stderr=subprocess.STDOUT
            )

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def write(self, jobs: range, second: int) -> None:
        """Tell of jobs, one a second from then on, that wait five seconds and run for a minute."""
        with self._lines.open("a") as file:
            for at, job in enumerate(jobs, second):
                told = {"job": job, "submit": at, "start": at + 5, "end": at + 65, "limit": 600, "processors": 1}
                file.write(json.dumps({**told, "user": "eve", "partition": "batch"}) + "\n")

    def scored(self) -> list[Envelope]:
        return [envelope for _, envelope in self.read(SCORES)]

    def read(self, topic: str) -> list[tuple[int, Envelope]]:
        async def read() -> list[Any]:
            return [record async for record in read_log(self.settings, topic, self.partition)]

        own = (record for record in asyncio.run(read()) if record.key == RUN.encode())
        return [(record.offset, Envelope.from_bytes(record.value)) for record in own]

    def wait_for(self, job: int, workers: Workers) -> list[Envelope]:
        """Return what the last stage has told once it is at a job."""
        until = time.monotonic() + PATIENCE
        while True:
            found = self.scored()
            submitted = [each.event.job_number for each in found if isinstance(each.event, JobSubmitted)]
            if job in submitted:
                return found
            assert time.monotonic() < until, self._log.read_text() + workers.logs()
            assert self.process.poll() is None, self._log.read_text()
            workers.tend()
            time.sleep(1)

    def forget(self) -> None:
        """Delete all of the partition's log so far, on every topic of the flow."""

        async def delete() -> None:
            admin = AIOKafkaAdminClient(bootstrap_servers=self.settings.kafka_bootstrap)
            await admin.start()
            places = [TopicPartition(topic, self.partition) for topic in FLOW]
            await admin.delete_records({place: RecordsToDelete(-1) for place in places})
            await admin.close()

        asyncio.run(delete())


@pytest.mark.nightly
def test_a_run_goes_on_whose_early_log_is_gone(kafka: Kafka, redis_server: Redis, tmp_path: Path) -> None:
    now = int(time.time())
    with Workers(kafka, redis_server, tmp_path) as workers:
        site = Site(workers, tmp_path)
        try:
            site.write(range(1, 201), now - 3_600)
            site.wait_for(200, workers)
            site.kill()
            for name in workers.names:
                workers.processes[name].kill()
                workers.processes[name].wait()
            before = site.scored()
            site.forget()
            assert site.scored() == []
            site.write(range(201, 231), now - 600)
            site.start()
            workers.tend()
            after = site.wait_for(230, workers)
            scores = json.loads(shadowtime("scores", RUN, "--json", environment=workers.environment))
            told = shadowtime("scores", RUN, environment=workers.environment)
        finally:
            site.kill()
        assert scores["policy"]["jobs"] >= 200
        assert "Bounds on waits" in told
        assert RUN in told
        assert not [letter for letter in letters(site.settings) if letter.key == RUN.encode()]
    sequences = [each.sequence for each in after]
    assert sequences[0] <= before[-1].sequence + 1
    assert sorted(set(sequences)) == list(range(sequences[0], sequences[-1] + 1))
    last = next(each for each in reversed(after) if isinstance(each.event, JobSubmitted))
    assert last.run_time is not None
    assert last.run_time.observations >= 60  # of the window: what ended before the log was gone is known


def shadowtime(*arguments: str, environment: dict[str, str]) -> str:
    command = [sys.executable, "-m", "shadowtime", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True).stdout


def test_topics_that_are_there_are_kept_for_as_long_as_is_said(kafka: Kafka) -> None:
    async def kept() -> str:
        admin = AIOKafkaAdminClient(bootstrap_servers=kafka.address)
        await admin.start()
        (answer,) = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, JOBS)])
        await admin.close()
        ((_, _, _, _, entries),) = answer.resources
        return str(next(value for name, value, *_ in entries if name == "retention.ms"))

    environment = {**os.environ, "SHADOWTIME_KAFKA_BOOTSTRAP": kafka.address}
    for hours, wanted in (("720", "2592000000"), ("-1", "-1")):
        shadowtime("topics", f"--retention-hours={hours}", environment=environment)
        assert asyncio.run(kept()) == wanted


def letters(settings: Settings) -> list[Any]:
    async def read() -> list[Any]:
        found: list[Any] = []
        for partition in range(await topic_admin.partitions_of(settings, DEAD_LETTERS)):
            found += [record async for record in read_log(settings, DEAD_LETTERS, partition)]
        return found

    return asyncio.run(read())
