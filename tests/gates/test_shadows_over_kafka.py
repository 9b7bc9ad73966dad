"""Exact shadows beside a replay of KTH over Kafka are closed replays, byte for byte, while everything is killed.

All of KTH, in one process and restored on the way: tests/gates/test_shadows.py.
"""

from pathlib import Path

import pytest

from shadowtime.stack.servers.servers import Kafka, Redis
from tests.gates.archive import FILES, needs_archive, path_of
from tests.support.embedded import embedded
from tests.support.shadows_over_kafka import assert_played, killed
from tests.support.workers import Workers

pytestmark = [pytest.mark.archive, needs_archive]

CLUSTER = FILES["KTH"]
REAL = f"{CLUSTER}/easy"
HOUR = 3_600.0
JOBS = "6000"


def test_exact_shadows_of_the_first_jobs_of_kth(kafka: Kafka, redis_server: Redis, tmp_path: Path) -> None:
    log = [str(path_of("KTH")), "--processors", "100", "--jobs", JOBS]
    with Workers(kafka, redis_server, tmp_path) as workers:
        replay = workers.replay(REAL, tmp_path / "real.jsonl", *log, "--policy", "easy")
        workers.wait_for_decisions(REAL)
        killed(workers, REAL, "easy", "best", kills=10, pause=35.0, seconds=HOUR)
        workers.finish(replay)
        for policy in ("easy", "best"):
            assert_played(workers, f"{CLUSTER}/shadow/{policy}", embedded(*log, "--policy", policy))
