"""Real servers for tests; `pytest_plugins = ["tests.support.real_servers"]` makes the fixtures known.

Where a server cannot be had, a test that needs it skips with the reason, and fails when CI is set.
"""

import os
from collections.abc import Iterator

import pytest
import redis

from shadowtime.stack.servers.servers import Kafka, Redis, Server, VictoriaMetrics


def require(server: type[Server]) -> None:
    """Skip the test where this server cannot be had; in CI fail it."""
    require_reason(server.available())


def require_reason(reason: str | None) -> None:
    """Skip the test if there is a reason why a server cannot be had; in CI fail it."""
    if reason is None:
        return
    if os.environ.get("CI"):
        pytest.fail(f"CI needs every server: {reason}", pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """One broker for the session; a test that hurts it starts another."""
    require(Kafka)
    with Kafka(tmp_path_factory.mktemp("kafka")) as server:
        yield server


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    """One Redis for the session; a test that hurts it starts another."""
    require(Redis)
    with Redis(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def empty_redis(redis_server: Redis) -> Iterator[Redis]:
    """That Redis for a test that reads and writes it directly: empty before, and after, whatever was left in it."""
    with redis.Redis.from_url(redis_server.url) as client:
        client.flushall()
        yield redis_server
        client.flushall()


@pytest.fixture(scope="session")
def victoria_metrics(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VictoriaMetrics]:
    """One VictoriaMetrics for the session; a test that hurts it starts another."""
    require(VictoriaMetrics)
    with VictoriaMetrics(tmp_path_factory.mktemp("victoria-metrics")) as server:
        yield server
