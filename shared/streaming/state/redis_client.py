"""The client of Redis: of one server, or of a cluster."""

from typing import Any

from redis.asyncio import Redis, RedisCluster
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.connection import HiredisRespSerializer
from redis.exceptions import ConnectionError as Disconnected

from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.urls import cluster_nodes


class _Packing:
    """A connection that serialises commands with hiredis. redis-py's own does it in Python, in four times the time."""

    _serializer: Any = HiredisRespSerializer()

    def pack_command(self, *args: Any) -> list[bytes]:
        """Return the serialised command."""
        return self._serializer.pack(*args)  # type: ignore[no-any-return]


Client = Redis | RedisCluster


def connect(settings: Settings, retries: int = 0) -> Client:
    """Return a client of a Redis server or a Redis Cluster. It connects at its first command.

    With `retries`, the client repeats a command after its connection broke, as at a restart of Redis. A client that
    writes must not repeat commands.
    """
    password, nodes = settings.redis_password, cluster_nodes(settings.redis_url)
    common: dict[str, Any] = {
        "username": settings.redis_username,
        "password": None if password is None else password.get_secret_value(),
        "socket_timeout": 5,
        "socket_connect_timeout": 5,
        "retry": Retry(NoBackoff(), retries, (Disconnected,)),
    }
    if settings.redis_ca_file is not None:
        common["ssl_ca_certs"] = str(settings.redis_ca_file)
    if not nodes:
        client = Redis.from_url(settings.redis_url, **common)
        pool = client.connection_pool
        pool.connection_class = type("Connection", (_Packing, pool.connection_class), {})
        return client

    tls = settings.redis_url.startswith("rediss")
    return RedisCluster(startup_nodes=[ClusterNode(*node) for node in nodes], ssl=tls, **common)
