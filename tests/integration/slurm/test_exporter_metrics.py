"""Metrics under the names of common exporters: equal to what `squeue` of a real Slurm says."""

import asyncio
import os
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from shadowtime.services.follower.io.process import FollowerCollector
from shadowtime.services.follower.io.slurm import SlurmSource
from shadowtime.services.follower.options import FollowOptions
from tests.support.real_servers import require_reason
from tests.support.slurm_cluster import USERS, SlurmCluster, unavailable

pytestmark = pytest.mark.nightly

LABELS = {"user": 1, "account": 2, "partition": 3}


def by_squeue(cluster: SlurmCluster) -> dict[tuple[str, str], int]:
    """Return the count for each metric and label value, from rows of squeue."""
    counts: Counter[tuple[str, str]] = Counter()
    for line in cluster.run("squeue", "-a", "-r", "-h", "-o", "%T|%u|%a|%P|%C").splitlines():
        row = line.split("|")
        state = row[0].lower()
        counts[f"slurm_queue_{state}", ""] += 1
        for label, place in LABELS.items():
            counts[f"slurm_{label}_jobs_{state}", row[place]] += 1
            if label != "partition" and state == "running":
                counts[f"slurm_{label}_cpus_running", row[place]] += int(row[4])
    return dict(counts)


def test_every_count_is_that_of_squeue(monkeypatch: pytest.MonkeyPatch) -> None:
    require_reason(unavailable())
    with SlurmCluster(3) as cluster:
        for name, value in cluster.environment.items():
            if os.environ.get(name) != value:
                monkeypatch.setenv(name, value)
        options = ["-n2", "-t60"]
        jobs = [cluster.submit(user, "long", *options, wrap="sleep 600") for user in USERS for _ in range(3)]
        cluster.submit(USERS[0], "array", "--array=1-7", *options, wrap="sleep 600")
        cluster.submit(USERS[1], "held", "--hold", "-p", "low", *options, wrap="true")
        cluster.submit(USERS[1], "after", f"--dependency=afterok:{jobs[0]}", *options, wrap="true")
        cluster.wait_for(jobs[0], "RUNNING")
        cluster.control("suspend", str(jobs[0]))
        source = SlurmSource(FollowOptions(every=5.0, history=0))

        async def look() -> None:
            await source.meet()
            await source.listen()
            await source.close()

        before = by_squeue(cluster)
        asyncio.run(look())
        after = by_squeue(cluster)
    follower: Any = SimpleNamespace(source=source, opened=SimpleNamespace(cluster="mine"), sequence=0, behind=0.0)
    shown: dict[tuple[str, str], float] = {}
    for family in FollowerCollector(follower).collect():
        if family.name.startswith("slurm_"):
            for sample in family.samples:
                assert sample.labels.pop("cluster") == "mine"
                shown[sample.name, next(iter(sample.labels.values()), "")] = sample.value
    assert before == after, "the cluster changed while it was looked at"
    assert shown == {key: count for key, count in after.items() if key[0] != "slurm_partition_jobs_suspended"}
