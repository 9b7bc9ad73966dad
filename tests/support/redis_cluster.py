"""A Redis Cluster of three primaries, and as many replicas where asked for."""

import subprocess
import time
from pathlib import Path
from types import TracebackType

import redis
from redis.crc import key_slot

from shadowtime.stack.servers.ports import free_port
from shadowtime.stack.servers.servers import Redis
from tests.support.patience import PATIENCE

PRIMARIES = 3


class RedisCluster:
    """Nodes that share the keys among them; a replica takes over from a primary that is killed."""

    def __init__(self, folder: Path, replicas: int = 0) -> None:
        count = PRIMARIES * (1 + replicas)
        ports = [free_port() for _ in range(2 * count)]
        self._replicas = replicas
        self.nodes = [
            Redis(
                folder / f"node-{number}",
                ports[number],
                settings={
                    "cluster-enabled": "yes",
                    "cluster-port": ports[count + number],
                    "cluster-node-timeout": 2_000,
                    "cluster-config-file": str(folder / f"nodes-{number}.conf"),
                },
            )
            for number in range(count)
        ]

    @property
    def url(self) -> str:
        """All nodes, as a setting names them."""
        return "redis+cluster://" + ",".join(node.address for node in self.nodes)

    def __enter__(self) -> "RedisCluster":
        for node in self.nodes:
            node.start()
        addresses = [node.address for node in self.nodes]
        command = ["redis-cli", "--cluster", "create", *addresses, "--cluster-replicas", str(self._replicas)]
        subprocess.run([*command, "--cluster-yes"], check=True, capture_output=True)
        self.wait_until_ready()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for node in self.nodes:
            node.stop()

    def wait_until_ready(self) -> None:
        """Wait until every node that runs knows of a primary for every key."""
        until = time.monotonic() + PATIENCE
        while not all(map(is_ready, self.nodes)):
            assert time.monotonic() < until, "the cluster does not get ready"
            time.sleep(0.1)

    def primary_of(self, key: str) -> Redis:
        """Return the node that has a key now."""
        slot = key_slot(key.encode())
        for node in self.nodes:
            if not node.answers():
                continue
            with redis.Redis.from_url(node.url) as client:
                for first, last, primary, *_ in client.execute_command("CLUSTER SLOTS"):
                    if first <= slot <= last:
                        return next(each for each in self.nodes if each.port == primary[1])
        raise AssertionError(f"no node has {key}")


def is_ready(node: Redis) -> bool:
    if not node.answers():
        return True
    with redis.Redis.from_url(node.url) as client:
        return bool(client.execute_command("CLUSTER INFO")["cluster_state"] == "ok")
