"""A Kafka of three brokers, of which one may die."""

import asyncio
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from shadowtime.shared.streaming.kafka.topic_admin import prepare_topics
from shadowtime.shared.streaming.settings import Settings
from shadowtime.stack.servers.ports import HOST
from shadowtime.stack.servers.servers import Kafka
from tests.support.patience import PATIENCE

BROKERS = 3
ON_ALL = {
    f"{topic}.{factor}": count
    for topic in ("transaction.state.log", "share.coordinator.state.topic")
    for factor, count in {"replication.factor": BROKERS, "min.isr": BROKERS - 1}.items()
}


class Broker(Kafka):
    """One broker of a cluster, and one of its controllers."""

    def __init__(self, folder: Path, number: int) -> None:
        super().__init__(folder, settings={"node.id": number, "offsets.topic.replication.factor": BROKERS, **ON_ALL})

    def join(self, first: "Broker", voters: str) -> None:
        """Belong to the cluster of the first broker, with these controllers."""
        self.cluster_id = first.cluster_id
        self.settings = {**self.settings, "controller.quorum.voters": voters}

    @property
    def voter(self) -> str:
        """How the controllers find this one."""
        return f"{self.settings['node.id']}@{HOST}:{self.controller_port}"


class KafkaCluster:
    """Brokers that keep all topics on all of them."""

    def __init__(self, folder: Path) -> None:
        self.brokers = [Broker(folder / f"broker-{number}", number) for number in range(1, BROKERS + 1)]
        voters = ",".join(each.voter for each in self.brokers)
        for each in self.brokers:
            each.join(self.brokers[0], voters)

    @property
    def address(self) -> str:
        """All brokers, as a setting names them."""
        return ",".join(each.address for each in self.brokers)

    def __enter__(self) -> "KafkaCluster":
        for each in self.brokers:
            each.start(wait=False)
        until = time.monotonic() + PATIENCE
        while not all(each.answers() for each in self.brokers):
            assert time.monotonic() < until, "the brokers do not come up"
            time.sleep(0.2)
        asyncio.run(prepare_topics(Settings(kafka_bootstrap=self.address, replication_factor=BROKERS)))
        return self

    def in_step(self, topic: str, partition: int) -> list["Broker"]:
        """Return the brokers that have all of a partition, the one that leads it first; none while nobody does."""

        async def asked() -> Any:
            admin = AIOKafkaAdminClient(bootstrap_servers=self.address)
            await admin.start()
            try:
                (described,) = await admin.describe_topics([topic])
            finally:
                await admin.close()
            return next(each for each in described["partitions"] if each["partition"] == partition)

        try:
            found = asyncio.run(asked())
        except KafkaError:  # the one that was asked is dead
            return []
        known = {each.settings["node.id"]: each for each in self.brokers}
        if found["leader"] not in known:
            return []
        return [known[found["leader"]], *(known[each] for each in found["isr"] if each != found["leader"])]

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for each in self.brokers:
            if each.running:
                each.kill()
