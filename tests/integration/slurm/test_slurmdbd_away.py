"""A follower while slurmdbd is away for longer than slurmctld remembers a job that has ended."""

import os
import random
import signal
import time
from pathlib import Path

import pytest

from shadowtime.shared.accounting.slurm.head import FIELDS
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.support.follower_process import following
from tests.support.lives import lives_accounted, lives_told
from tests.support.real_servers import require_reason
from tests.support.rejections import rejected
from tests.support.slurm_cluster import CONF, DAEMONS, USERS, SlurmCluster, unavailable

SECONDS = float(os.environ.get("SHADOWTIME_AWAY", "180"))
REMEMBERED = 30
"""Seconds for which slurmctld shows a job that has ended: most ends of these minutes are in accounting alone."""


class Forgetful(SlurmCluster):
    conf = CONF.replace(DAEMONS, DAEMONS.replace("MinJobAge=300", f"MinJobAge={REMEMBERED}"))


@pytest.mark.nightly
def test_nothing_is_lost_while_slurmdbd_is_away(kafka: Kafka, redis_server: Redis, tmp_path: Path) -> None:
    require_reason(unavailable())
    rng = random.Random(13)
    with Forgetful() as cluster, following(cluster, kafka, redis_server, tmp_path / "log") as follower:
        follower.wait_until_told(int(time.time()))
        cluster.kill("slurmdbd", signal.SIGTERM)
        began, kills = time.monotonic(), [0.3, 0.7]
        while (passed := (time.monotonic() - began) / SECONDS) < 1:
            size, seconds = rng.choice((1, 2, 4, 8)), rng.randint(1, 40)
            cluster.submit(rng.choice(USERS), "away", "-n", str(size), "-t", "5", wrap=f"sleep {seconds}")
            if kills and passed > kills[0]:
                kills.pop(0)
                follower.kill()
                time.sleep(2)
                follower.start()
            time.sleep(max(2.0, SECONDS / 400))
        cluster.start_slurmdbd()
        cluster.wait_until_idle(600)
        time.sleep(30)  # slurmctld sends what it has kept
        log = follower.wait_until_told(int(time.time()) + 90)
        text = cluster.run(
            *("env", "SLURM_TIME_FORMAT=%s", "sacct", "-aPXD", "--noconvert", "-S", "now-1days"), "-o", ",".join(FIELDS)
        )
    accounted, told = lives_accounted(text), lives_told([envelope.event for envelope in log])
    print(f"{len(accounted)} jobs in {SECONDS:.0f} s without slurmdbd")
    assert len(accounted) >= min(50, SECONDS / 5)
    assert {number: told.get(number) for number in accounted} == accounted
    assert rejected(log) == []
