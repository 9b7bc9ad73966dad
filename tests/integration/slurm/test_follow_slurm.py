"""A follower beside a real Slurm: what its log tells is what Slurm accounts, whoever dies meanwhile."""

import asyncio
import json
import math
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from shadowtime.services.follower.io.follower import STORE
from shadowtime.shared.accounting.names import KINDS
from shadowtime.shared.accounting.slurm.head import FIELDS
from shadowtime.shared.messages.envelope import ClusterOpened, Envelope, JobChanged, JobSuspended
from shadowtime.shared.streaming.state.redis_client import connect
from shadowtime.shared.streaming.state.redis_store import RedisStore
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.integration.slurm.happenings import happen
from tests.support.follower_process import FollowerProcess, following
from tests.support.lives import late, lives_accounted, lives_told, predictions, replayed
from tests.support.real_servers import require_reason
from tests.support.rejections import rejected
from tests.support.slurm_cluster import SlurmCluster, unavailable


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmCluster]:
    require_reason(unavailable())
    with SlurmCluster() as made:
        yield made


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
    assert_recorded_alike(cluster, follower, log, text, tmp_path)
    assert late(events) <= 12  # what ended while slurmctld was away is stamped when it learns of that


def assert_recorded_alike(
    cluster: SlurmCluster, follower: FollowerProcess, log: list[Envelope], sacct: str, folder: Path
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
    (folder / "names").write_text(json.dumps({"key": None, **asyncio.run(names_of(follower))}))
    again = replayed(opened, folder / "sacct", folder / "nodes", folder / "names")
    events = [envelope.event for envelope in log]
    unknown = (each.time for each in events if late([each], by=0) or getattr(each, "reason", None) == "held")
    until = next(unknown, math.inf)
    live, recorded = predictions(each for each in log if each.event.time < until), predictions(again)
    alike = {number for number, (asked, _) in live.items() if number in recorded and recorded[number][0] == asked}
    assert len(alike) >= 5
    different = {number: (live[number], recorded[number]) for number in alike if live[number] != recorded[number]}
    assert len(different) <= len(alike) / 5, json.dumps(different, indent=1)[:6000]


async def names_of(follower: FollowerProcess) -> dict[str, dict[str, int]]:
    """Return the names that a follower has stored, as a replay takes them."""
    client = connect(follower.settings)
    stored = await RedisStore(client, STORE).read_model(follower.run)
    await client.aclose()
    found: dict[str, dict[str, int]] = {}
    for name, number in sorted(stored.items(), key=lambda each: int(each[1])):
        kind, _, shown = name.partition(":")
        if kind in KINDS:
            found.setdefault(kind, {})[shown] = int(number)
    return found
