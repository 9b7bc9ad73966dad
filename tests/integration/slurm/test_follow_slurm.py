"""A follower beside a real Slurm: what its log tells is what Slurm accounts, whoever dies meanwhile."""

import asyncio
import json
import math
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from shadowtime.services.follower.io.follower import STORE
from shadowtime.shared.accounting.slurm.head import FIELDS
from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.messages.envelope import ClusterOpened, Envelope, JobChanged, JobSuspended
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.state.redis_client import connect
from shadowtime.shared.streaming.state.redis_store import RedisStore
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.integration.slurm.happenings import happen
from tests.support.lives import late, lives_accounted, lives_told, log_of, predictions, replayed
from tests.support.patience import PATIENCE
from tests.support.real_servers import require_reason
from tests.support.rejections import rejected
from tests.support.slurm_cluster import SlurmCluster, unavailable

RUN = "shadow/live"


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmCluster]:
    require_reason(unavailable())
    with SlurmCluster() as made:
        yield made


class FollowerProcess:
    """A follower that is killed and started again."""

    def __init__(self, cluster: SlurmCluster, kafka: Kafka, redis: Redis, log: Path) -> None:
        self.settings = Settings(kafka_bootstrap=kafka.address, redis_url=redis.url)
        self._command = [
            *(sys.executable, "-m", "shadowtime", "follow", "slurm", "--cluster", "shadow", "--history", "1day"),
            *("--every", "5", "--policy", "easy", "--kafka-bootstrap", kafka.address, "--redis-url", redis.url),
            *("--web-port", "0", "--patience", "90"),  # slurmdbd may have lost what happened while it was away
        ]
        self._environment = cluster.environment
        self._log = log
        self.start()

    def start(self) -> None:
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                self._command, cwd=ROOT, env=self._environment, stdout=log, stderr=subprocess.STDOUT
            )

    def kill(self) -> None:
        assert self.process.poll() is None, self._log.read_text()
        self.process.kill()
        self.process.wait()

    def wait_until_told(self, second: int) -> list[Envelope]:
        """Return the log once it has come to a second of Unix."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            assert self.process.poll() is None, self._log.read_text()
            log = log_of(self.settings, RUN)
            if log and log[0].event.unix_start + log[-1].event.time > second:  # type: ignore[union-attr]
                return log
            time.sleep(2)
        raise AssertionError(f"not told within {PATIENCE} s: {self._log.read_text()}")


@contextmanager
def following(cluster: SlurmCluster, kafka: Kafka, redis: Redis, log: Path) -> Iterator[FollowerProcess]:
    process = FollowerProcess(cluster, kafka, redis, log)
    try:
        yield process
    finally:
        process.process.kill()
        process.process.wait()


@pytest.mark.nightly
def test_the_log_tells_what_slurm_accounts(
    cluster: SlurmCluster, kafka: Kafka, redis_server: Redis, tmp_path: Path
) -> None:
    for number in range(4):  # a past
        cluster.submit("games", "past", "-n", str(1 + number), "-t", "2", wrap="sleep 2")
    cluster.wait_until_idle(60)
    with following(cluster, kafka, redis_server, tmp_path / "log") as follower:

        def trouble(step: int) -> None:
            if step in (2, 3):
                follower.wait_until_told(int(time.time()))
            if step == 4:
                cluster.kill("slurmdbd", signal.SIGTERM)
            if step == 5:
                cluster.kill("slurmctld", signal.SIGTERM)
                time.sleep(5)
                cluster.start_slurmctld()
            follower.kill()
            time.sleep(1)
            follower.start()
            if step == 5:
                cluster.start_slurmdbd()

        follower.wait_until_told(int(time.time()))
        happen(cluster, trouble)
        log = follower.wait_until_told(int(time.time()))
    events = [envelope.event for envelope in log]
    text = cluster.run(
        "env", "SLURM_TIME_FORMAT=%s", "sacct", "-aPXD", "--noconvert", "-S", "now-1days", "-o", ",".join(FIELDS)
    )
    accounted, told = lives_accounted(text), lives_told(events)
    assert {number: told.get(number) for number in accounted} == accounted
    assert len(accounted) >= 45
    assert {"completed", "failed", "cancelled", "limit", "killed"} <= {life.state for life in accounted.values()}
    assert any(life.resized for life in accounted.values())
    assert any(isinstance(event, JobSuspended) for event in events)
    assert any(isinstance(event, JobChanged) and event.requested_time for event in events)
    assert rejected(log) == []
    assert_recorded_alike(cluster, follower.settings, log, text, tmp_path)
    assert late(events) <= 12  # what ended while slurmctld was away is stamped when it learns of that


def assert_recorded_alike(
    cluster: SlurmCluster, settings: Settings, log: list[Envelope], sacct: str, folder: Path
) -> None:
    """What accounting tells, replayed, has the predictions of the live run, but for what it knows nothing of.

    That is what was told a second late, if anything was, tasks that an array holds back for a while, and what a job
    asked for before it was changed, from which others are predicted too.
    """
    opened = log[0].event
    assert isinstance(opened, ClusterOpened)
    (folder / "sacct").write_text(sacct)
    (folder / "nodes").write_text(
        cluster.run("scontrol", "show", "node") + cluster.run("scontrol", "show", "partition")
    )
    (folder / "names").write_text(json.dumps({"key": None, **asyncio.run(names_of(settings))}))
    again = replayed(opened, folder / "sacct", folder / "nodes", folder / "names")
    events = [envelope.event for envelope in log]
    unknown = (each.time for each in events if late([each], by=0) or getattr(each, "reason", None) == "held")
    until = next(unknown, math.inf)
    live, recorded = predictions(each for each in log if each.event.time < until), predictions(again)
    alike = {number for number, (asked, _) in live.items() if number in recorded and recorded[number][0] == asked}
    assert len(alike) >= 5
    different = {number: (live[number], recorded[number]) for number in alike if live[number] != recorded[number]}
    assert len(different) <= len(alike) / 5, json.dumps(different, indent=1)[:6000]


async def names_of(settings: Settings) -> dict[str, dict[str, int]]:
    """Return the names that a follower has stored, as a replay takes them."""
    client = connect(settings)
    stored = await RedisStore(client, STORE).read_model(RUN)
    await client.aclose()
    found: dict[str, dict[str, int]] = {}
    for name, number in sorted(stored.items(), key=lambda each: int(each[1])):
        kind, _, shown = name.partition(":")
        found.setdefault(kind, {})[shown] = int(number)
    return found
