"""The same decisions, byte for byte, with the state in a Redis Cluster, one of whose primaries dies."""

import signal
import time
from pathlib import Path

import pytest

from shadowtime.stack.servers.servers import Kafka, Redis
from tests.support.embedded import assert_complete, embedded
from tests.support.real_servers import require
from tests.support.redis_cluster import RedisCluster
from tests.support.workers import Workers


@pytest.mark.archive
def test_a_replica_takes_over_in_mid_run(tmp_path: Path) -> None:
    """The primary that keeps the state of the scheduler is killed for good, and a worker of each stage is, too."""
    require(Kafka)
    require(Redis)
    arguments = ["--jobs", "400"]
    expected = embedded(*arguments)
    with (
        Kafka(tmp_path / "kafka") as kafka,
        RedisCluster(tmp_path / "redis", replicas=1) as cluster,
        Workers(kafka, cluster, tmp_path) as workers,
    ):
        path = tmp_path / "kafka.jsonl"
        replay = workers.replay("failover", path, *arguments, "--speed", "10000")
        workers.wait_for_decisions("failover")
        gone = cluster.primary_of("shadowtime:{scheduler}:state:failover")
        gone.kill()
        for name in workers.names:
            time.sleep(0.5)
            workers.signal(name, signal.SIGKILL)
            workers.tend()
        assert replay.poll() is None, "the replay ended too early to show anything"
        workers.finish(replay)
        assert path.read_bytes() == expected, workers.logs()
        assert_complete(workers.kafka_settings, "failover")
        assert cluster.primary_of("shadowtime:{scheduler}:state:failover") is not gone
