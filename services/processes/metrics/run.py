"""The process beside the pipeline that feeds VictoriaMetrics and, if it is configured, Grafana Live."""

import asyncio
import logging
import ssl
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
from pydantic import SecretStr

from shadowtime.services.processes.metrics.grafana_live import GrafanaLive
from shadowtime.services.processes.metrics.writer import MetricsWriter
from shadowtime.services.processes.metrics.writer_health import MetricsHealth
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.stages import DECISIONS, SCORES
from shadowtime.shared.streaming import (
    GroupFollower,
    Settings,
    TopicFollower,
    bearer_token,
    listening,
    prepare_topics,
    shutdown_event,
    split_names,
    worker_pages,
)

log = logging.getLogger("shadowtime.metrics")

WRITE_SECONDS, PUSH_SECONDS = 30.0, 3.0
"""Timeouts of one request to VictoriaMetrics, and of one to Grafana."""


async def run_metrics(settings: Settings) -> None:
    """Feed both servers until SIGTERM or Ctrl-C. An outage of Grafana does not delay VictoriaMetrics."""
    health = MetricsHealth()
    await prepare_topics(settings)
    async with AsyncExitStack() as stack:
        scores = await stack.enter_async_context(GroupFollower(settings, SCORES, "metrics"))
        store = await stack.enter_async_context(
            session(
                settings.victoria_metrics_url,
                settings.victoria_metrics_username,
                settings.victoria_metrics_password,
                WRITE_SECONDS,
                settings.victoria_metrics_ca_file,
            )
        )
        feeding = [MetricsWriter(scores, store, health).run]
        if settings.grafana_url is not None:
            decisions = await stack.enter_async_context(TopicFollower(settings, DECISIONS))
            grafana = await stack.enter_async_context(
                session(settings.grafana_url, settings.grafana_username, settings.grafana_password, PUSH_SECONDS)
            )
            feeding.append(GrafanaLive(decisions, grafana, health).run)

        ended = shutdown_event()
        work = [asyncio.create_task(feed()) for feed in feeding]
        if settings.web_port:
            pages = worker_pages(lambda: health.report(scores.silence), health.registry)
            await stack.enter_async_context(
                listening(pages, settings.web_host, settings.web_port, split_names(settings.web_names))
            )

        waiting = asyncio.create_task(ended.wait())
        done, _ = await asyncio.wait([waiting, *work], return_when=asyncio.FIRST_COMPLETED)
        for task in (waiting, *work):
            task.cancel()
        await asyncio.gather(waiting, *work, return_exceptions=True)
        for task in done:
            task.result()


def session(
    url: str, username: str | None, password: SecretStr | None, patience: float, ca_file: Path | None = None
) -> aiohttp.ClientSession:
    """Return an HTTP client of one server: with user and password, with a token, or without credentials.

    A password without a user is a bearer token. `patience` is the timeout of a request in seconds.

    Raise `SettingsError` if the token is malformed, or `ca_file` is not a certificate authority (PEM).
    """
    secret = None if password is None else password.get_secret_value()
    if username is None and secret is not None:
        try:
            secret = bearer_token(secret)
        except ValueError as error:
            raise SettingsError(f"the password for {url} is used as a token, as no user is set; {error}") from None

    auth = aiohttp.BasicAuth(username, secret or "", "utf-8") if username is not None else None
    headers = {"Authorization": f"Bearer {secret}"} if username is None and secret is not None else {}
    try:
        authority = ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise SettingsError(f"{ca_file} is not a certificate authority (PEM) for {url}: {error}") from None

    return aiohttp.ClientSession(
        url.rstrip("/") + "/",
        auth=auth,
        headers=headers,
        timeout=aiohttp.ClientTimeout(total=patience),
        connector=aiohttp.TCPConnector(ssl=authority),
    )
