"""The start of a worker: it checks that its servers answer, then runs a stage or the writer of metrics."""

import asyncio

from shadowtime.services.pipeline import STAGES
from shadowtime.services.processes.metrics import run_metrics
from shadowtime.shared.cli import start_logging
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.kernels import get_ready
from shadowtime.shared.stages import Stage
from shadowtime.shared.streaming import (
    RedisStore,
    Settings,
    connect,
    prepare_topics,
    read_settings,
    require_port,
    run_stage,
)


def serve_stage(name: str, flags: list[str]) -> None:
    """Run a worker of a stage until it is ended."""
    settings = read_settings(flags, name)
    start_logging(settings.log_format, name)
    asyncio.run(require_all(settings))
    get_ready()
    run_stage(stage_of(name), settings)


def stage_of(name: str) -> Stage:
    """Return a stage by its name."""
    return next(stage for stage in STAGES if stage.name == name)


def serve_metrics(flags: list[str]) -> None:
    """Run the writer of metrics until it is ended."""
    settings = read_settings(flags, "metrics")
    start_logging(settings.log_format, "metrics")
    asyncio.run(run_metrics(settings))


async def require_servers(settings: Settings) -> None:
    """Raise `BusError` or `StoreError` unless Kafka and Redis answer within `connect_seconds`."""
    await prepare_topics(settings)
    client = connect(settings)
    try:
        await RedisStore(client, "preflight").wait_for(settings.connect_seconds)
    finally:
        await client.aclose()


async def require_all(settings: Settings) -> None:
    """Raise a `ShadowtimeError` if a server does not answer soon, or the port of the web pages is taken."""
    if settings.web_port:
        try:
            await require_port(settings.web_host, settings.web_port)
        except SettingsError as error:
            raise SettingsError(
                f"{error}; is another worker running? Choose another --web-port, or 0 for no pages"
            ) from None
    await require_servers(settings)
