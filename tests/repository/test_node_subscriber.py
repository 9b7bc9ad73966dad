"""The subscriber in Node reads the edges in asyncapi.json, and says what the distributions say in Python."""

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.distributions.histogram import mass_before
from shadowtime.shared.messages.envelope import Envelope, JobSubmitted
from shadowtime.shared.messages.predictions import RunTimePrediction
from shadowtime.shared.stages.topics import RUNTIME_DISTRIBUTIONS
from shadowtime.shared.streaming.kafka import clients as bus
from shadowtime.shared.streaming.kafka.log_reader import read_log
from shadowtime.shared.streaming.settings import Settings
from shadowtime.stack.roles import SUBSCRIBER
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.support.guarded import guarded
from tests.support.patience import PATIENCE
from tests.support.real_servers import require
from tests.support.workers import Workers

SOURCE = ROOT / "docs" / "node-subscriber"
ARGUMENTS = ("--jobs", "40", "--runtime", "empirical")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the subscriber and what it needs."""
    for name in ("node", "npm"):
        if shutil.which(name) is None:
            (pytest.fail if os.environ.get("CI") else pytest.skip)(f"{name} is not on PATH")
    folder = Path(shutil.copytree(SOURCE, tmp_path_factory.mktemp("node") / "subscriber"))
    subprocess.run(["npm", "ci", "--prefer-offline", "--ignore-scripts"], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture
def own_kafka(tmp_path: Path) -> Iterator[Kafka]:
    require(Kafka)
    with Kafka(tmp_path / "kafka") as server:  # other tests leave rubbish on the topics of theirs
        yield server


def told(node: Path, settings: Mapping[str, str], count: int, group: str = "example") -> list[dict[str, Any]]:
    """Return the first lines that it prints, by the settings in its environment."""
    command = ["timeout", str(PATIENCE), "node", "subscribe.js", str(ROOT / "asyncapi.json"), group]
    environment = os.environ | settings
    with subprocess.Popen(command, cwd=node, stdout=subprocess.PIPE, text=True, env=environment) as subscriber:
        assert subscriber.stdout is not None
        lines = list(islice(subscriber.stdout, count))
        subscriber.terminate()
    return [json.loads(line) for line in lines]


async def published(settings: Settings) -> list[Envelope]:
    records = read_log(settings, RUNTIME_DISTRIBUTIONS, bus.partition_of("node", settings.partitions))
    return [Envelope.from_bytes(each.value) async for each in records]


@pytest.mark.nightly
def test_its_quantiles_are_those_of_the_distributions(
    node: Path, own_kafka: Kafka, empty_redis: Redis, tmp_path: Path
) -> None:
    with Workers(own_kafka, empty_redis, tmp_path) as workers:
        workers.finish(workers.replay("node", tmp_path / "decisions.jsonl", *ARGUMENTS))
    envelopes = asyncio.run(published(Settings(kafka_bootstrap=own_kafka.address)))
    said = {
        each.event.job_number: (each.event.requested_time, np.array(each.run_time.histogram))
        for each in envelopes
        if isinstance(each.event, JobSubmitted) and each.event.requested_time is not None
        if each.run_time is not None and any(each.run_time.histogram)
    }
    assert len(said) > 10
    jobs = told(node, {"SHADOWTIME_KAFKA_BOOTSTRAP": own_kafka.address}, len(said))
    assert {job["job"] for job in jobs} == set(said)
    for job in jobs:
        request, masses = said[job["job"]]
        assert mass_before(masses, job["median"]) / masses.sum() == pytest.approx(0.5)
        assert mass_before(masses, job["q90"]) / masses.sum() == pytest.approx(0.9)
        assert job["within_request"] == pytest.approx(mass_before(masses, request) / masses.sum())


@pytest.mark.nightly
def test_with_the_password_of_its_role_it_is_let_in_and_passes_over_what_is_no_envelope(
    node: Path, tmp_path: Path
) -> None:
    job = JobSubmitted(time=0, job_number=7, requested_processors=1)
    envelope = Envelope(
        run="mine", sequence=1, event=job, run_time=RunTimePrediction(point=1.0, observations=1, histogram=(1.0,))
    )

    async def publish(settings: Settings) -> None:
        async with bus.producer(settings) as producer:
            for value in (b"\xff", b"[]", b"{}", None, envelope.to_bytes(), envelope.to_bytes()):
                await producer.send_and_wait(RUNTIME_DISTRIBUTIONS, value, b"mine", 0)

    with guarded(tmp_path) as servers:
        asyncio.run(publish(servers.settings("runtime_distribution")))
        lines = (servers.folder / f"{SUBSCRIBER}.env").read_text().splitlines()
        settings = dict(line.split("=", 1) for line in lines if not line.startswith("#"))
        expected = [{"run": "mine", "job": 7, "median": 1, "q90": 1, "within_request": None}]
        assert told(node, settings, 1) == expected
        password = Path(settings.pop("SHADOWTIME_KAFKA_PASSWORD_FILE")).read_text().strip()
        settings["SHADOWTIME_KAFKA_PASSWORD"] = password  # as compose has it
        assert told(node, settings, 1, "other") == expected


def test_the_page_shows_the_subscriber() -> None:
    assert (SOURCE / "subscribe.js").read_text() in (ROOT / "docs" / "subscribing.md").read_text()
