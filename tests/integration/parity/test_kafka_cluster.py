"""The same decisions, byte for byte, over three brokers, of which one after the other dies."""

from pathlib import Path

import pytest

from shadowtime.shared.stages.topics import JOBS
from shadowtime.shared.streaming.kafka.clients import partition_of
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.support.embedded import assert_complete, embedded
from tests.support.kafka_cluster import KafkaCluster
from tests.support.processes import wait_until
from tests.support.real_servers import require
from tests.support.workers import Workers

RUN = "brokers"


@pytest.mark.archive
def test_brokers_die_in_mid_run_one_after_the_other(tmp_path: Path, redis_server: Redis) -> None:
    """That which leads the partition of the run dies, and comes back; then that which took over dies for good."""
    require(Kafka)
    arguments = ["--jobs", "400"]
    expected = embedded(*arguments)
    with KafkaCluster(tmp_path / "kafka") as cluster, Workers(cluster, redis_server, tmp_path) as workers:
        path = tmp_path / "kafka.jsonl"
        replay = workers.replay(RUN, path, *arguments, "--speed", "10000")
        workers.wait_for_decisions(RUN)
        partition = partition_of(RUN, workers.kafka_settings.partitions)
        first, *_ = cluster.in_step(JOBS, partition)
        first.kill()
        wait_until(lambda: first not in (cluster.in_step(JOBS, partition) or [first]), "nobody takes over")
        workers.tend()
        first.start()
        wait_until(lambda: first in cluster.in_step(JOBS, partition)[1:], "it does not come back")
        second, *_ = cluster.in_step(JOBS, partition)
        second.kill()
        workers.tend()
        assert replay.poll() is None, "the replay ended too early to show anything"
        workers.finish(replay)
        assert path.read_bytes() == expected, workers.logs()
        assert_complete(workers.kafka_settings, RUN)
