"""Checks that the servers of the settings answer, with their addresses, for `shadowtime doctor`."""

import asyncio
import ssl
import urllib.request
from collections.abc import Callable, Mapping
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError

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
    settings = _settings("metrics", seconds)
    return _http(settings.victoria_metrics_url, "health", seconds, settings.victoria_metrics_ca_file)


def grafana(seconds: float) -> str | None:
    """Return the address of Grafana; None if none is set. Raise `StoreError` if it does not answer within `seconds`."""
    return _http(_settings("metrics", seconds).grafana_url, "api/health", seconds)


CHECKS: Mapping[str, Callable[[float], str | None]] = {
    "kafka": kafka,
    "redis": redis,
    "victoria-metrics": victoria_metrics,
    "grafana": grafana,
}


def _settings(role: str, seconds: float) -> Settings:
    return read_settings([f"--connect-seconds={seconds}"], role)


def _http(url: str | None, page: str, seconds: float, ca_file: Path | None = None) -> str | None:
    if url is None:
        return None
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise StoreError(f"{ca_file} is not a certificate authority (PEM) for {url}: {error}") from None
    whole = f"{url.rstrip('/')}/{page}"
    try:
        urllib.request.urlopen(whole, timeout=seconds, context=context).close()  # noqa: S310 - the settings take HTTP
    except HTTPError as error:
        raise StoreError(f"{url} answers /{page} with {error.code} {error.reason}; expected 200") from None
    except (OSError, HTTPException) as error:
        raise StoreError(f"{url} does not answer: {getattr(error, 'reason', error)}") from None
    return url
