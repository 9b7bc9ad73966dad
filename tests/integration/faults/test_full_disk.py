"""The disk of Kafka is full: the broker ends; with space and a new start the run goes on, and nothing is lost."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from shadowtime.shared.streaming.settings import Settings
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.support.embedded import assert_complete, embedded
from tests.support.patience import PATIENCE
from tests.support.real_servers import require
from tests.support.workers import Workers

MEGABYTES = 64


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, where Kafka will keep its data."""
    disk = tmp_path / "kafka" / "data"
    disk.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={MEGABYTES}m", "tmpfs", str(disk)]
    if os.geteuid() != 0 or (done := subprocess.run(mount, capture_output=True, text=True, check=False)).returncode:
        pytest.skip("a file system can be mounted by root only" if os.geteuid() else done.stderr.strip())
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def fill(disk: Path) -> Path:
    """Leave no byte free."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1 << 16))
        except OSError:
            return filler


@pytest.mark.nightly
def test_a_full_disk_ends_the_broker_and_loses_nothing(small_disk: Path, tmp_path: Path) -> None:
    require(Kafka)
    require(Redis)
    arguments = ["--jobs", "250"]
    expected = embedded(*arguments)
    with (
        Kafka(tmp_path / "kafka") as kafka,
        Redis(tmp_path / "redis") as redis,
        Workers(kafka, redis, tmp_path) as workers,
    ):
        replay = workers.replay("disk", tmp_path / "decisions.jsonl", *arguments)
        workers.wait_for_decisions("disk")
        filler = fill(small_disk)
        until = time.monotonic() + PATIENCE
        while kafka.running:
            assert time.monotonic() < until, "the broker goes on without a disk"
            time.sleep(0.1)
        assert "No space left on device" in kafka.log.read_text(errors="replace")
        assert replay.poll() is None
        filler.unlink()
        kafka.start()
        workers.finish(replay)
        assert (tmp_path / "decisions.jsonl").read_bytes() == expected, workers.logs()
        assert_complete(Settings(kafka_bootstrap=kafka.address), "disk")
