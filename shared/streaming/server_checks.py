"""Checks that the servers of the settings answer, with their addresses, for `shadowtime doctor`."""

import asyncio
import urllib.request
from collections.abc import Callable, Mapping
from http.client import HTTPException

from shadowtime.shared.errors import StoreError
from shadowtime.shared.stages import topics
from shadowtime.shared.streaming.kafka import partitions_of
from shadowtime.shared.streaming.settings import Settings, read_settings
from shadowtime.shared.streaming.state import RedisStore, connect


def kafka(seconds: float) -> str | None:
    """Return the address of Kafka. Raise `BusError` if it does not answer within `seconds`."""
    settings = _settings("subscriber", seconds)
    asyncio.run(partitions_of(settings, topics.JOBS))
    return settings.kafka_bootstrap


def redis(seconds: float) -> str | None:
    """Return the address of Redis. Raise `StoreError` if it does not answer within `seconds`."""
    settings = _settings("ask", seconds)

    async def ask() -> None:
        client = connect(settings)
        try:
            await RedisStore(client, "doctor").wait_for(seconds)
        finally:
            await client.aclose()

    asyncio.run(ask())
    return settings.redis_url


def victoria_metrics(seconds: float) -> str | None:
    """Return the address of VictoriaMetrics. Raise `StoreError` if it does not answer within `seconds`."""
    return _http(_settings("metrics", seconds).victoria_metrics_url, "/health", seconds)


def grafana(seconds: float) -> str | None:
    """Return the address of Grafana; None if none is set. Raise `StoreError` if it does not answer within `seconds`."""
    return _http(_settings("metrics", seconds).grafana_url, "/api/health", seconds)


CHECKS: Mapping[str, Callable[[float], str | None]] = {
    "kafka": kafka,
    "redis": redis,
    "victoria-metrics": victoria_metrics,
    "grafana": grafana,
}


def _settings(role: str, seconds: float) -> Settings:
    return read_settings([f"--connect-seconds={seconds}"], role)


def _http(url: str | None, page: str, seconds: float) -> str | None:
    if url is not None:
        try:
            urllib.request.urlopen(url + page, timeout=seconds).close()  # noqa: S310 - the settings take HTTP alone
        except (OSError, HTTPException) as error:
            raise StoreError(f"{url} does not answer: {getattr(error, 'reason', error)}") from None
    return url
