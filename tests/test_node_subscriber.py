"""The subscriber in Node reads the edges in asyncapi.json, and says what the distributions say in Python."""

import asyncio
import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from shadowtime.services.scoreboard.run_time_distribution import mass_before
from shadowtime.shared.events import Envelope, JobSubmitted
from shadowtime.shared.paths import ROOT
from shadowtime.shared.streaming.bus import partition_of
from shadowtime.shared.streaming.log_reader import read_log
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.topics import RUNTIME_DISTRIBUTIONS
from shadowtime.stack.servers import Kafka, Redis
from tests.parity.workers import Workers

ARGUMENTS = ("--jobs", "40", "--runtime", "empirical")


async def published(settings: Settings) -> list[Envelope]:
    records = read_log(settings, RUNTIME_DISTRIBUTIONS, partition_of("node", settings.partitions))
    return [Envelope.from_bytes(each.value) async for each in records if each.key == b"node"]


def test_its_quantiles_are_those_of_the_distributions(kafka: Kafka, redis_server: Redis, tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("npm is not on PATH")
    folder = Path(shutil.copytree(ROOT / "docs" / "node-subscriber", tmp_path / "node"))
    subprocess.run(["npm", "ci", "--prefer-offline", "--ignore-scripts"], cwd=folder, check=True, capture_output=True)
    with Workers(kafka, redis_server, tmp_path) as workers:
        workers.finish(workers.replay("node", tmp_path / "decisions.jsonl", *ARGUMENTS))
    envelopes = asyncio.run(published(Settings(kafka_bootstrap=kafka.address)))
    said = {
        each.event.job_number: (each.event.requested_time, np.array(each.run_time.histogram))
        for each in envelopes
        if isinstance(each.event, JobSubmitted) and each.run_time is not None and any(each.run_time.histogram)
    }
    command = ["node", "subscribe.js", str(ROOT / "asyncapi.json"), kafka.address]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as subscriber:
        assert subscriber.stdout is not None
        told = []
        for line in subscriber.stdout:
            if (job := json.loads(line))["run"] == "node":
                told.append(job)
                if len(told) == len(said):
                    break
        subscriber.kill()
    assert len(said) > 10
    for job in told:
        request, masses = said[job["job"]]
        assert mass_before(masses, job["median"]) / masses.sum() == pytest.approx(0.5)
        assert mass_before(masses, job["q90"]) / masses.sum() == pytest.approx(0.9)
        assert job["within_request"] == pytest.approx(mass_before(masses, request) / masses.sum())
