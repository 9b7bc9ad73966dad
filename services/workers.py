"""Workers, one command each: `shadowtime serve`."""

import asyncio
import os

import typer

from shadowtime.services.metrics.run import run_metrics
from shadowtime.services.pipeline import STAGES
from shadowtime.shared.command_line import run_app
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.logs import start_logging
from shadowtime.shared.stage import Stage
from shadowtime.shared.streaming.bus import prepare_topics
from shadowtime.shared.streaming.faust_runner import run_stage
from shadowtime.shared.streaming.redis_store import RedisStore, connect
from shadowtime.shared.streaming.settings import Settings, read_settings
from shadowtime.shared.streaming.web import require_port

workers = typer.Typer(
    add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True, help="Run a worker, until SIGTERM."
)

TAKES_SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True}
"""Whatever a command does not know itself goes to the settings, which know what they take."""

SEE_SETTINGS = "Takes every setting as a flag, too: see `shadowtime settings`."


async def require_servers(settings: Settings) -> None:
    """Raise `BusError` or `StoreError` unless Kafka and Redis answer soon."""
    await prepare_topics(settings)
    client = connect(settings)
    try:
        await RedisStore(client, "preflight").wait_for(settings.connect_seconds)
    finally:
        await client.aclose()


async def require_all(settings: Settings) -> None:
    """Raise an error of ours if a server does not answer soon, or another process has the port of the web pages."""
    if settings.web_port:
        try:
            await require_port(settings.web_host, settings.web_port)
        except SettingsError as error:
            raise SettingsError(f"{error}; another worker's pages? --web-port names another port, 0 none") from None
    await require_servers(settings)


def add_worker(stage: Stage) -> None:
    """Add the command that runs one stage as a worker."""

    @workers.command(
        stage.name,
        context_settings=TAKES_SETTINGS,
        help=f"Run one worker: {stage.reads} to {stage.writes}.",
        epilog=SEE_SETTINGS,
    )
    def work(context: typer.Context) -> None:
        settings = read_settings(context.args, stage.name)
        start_logging(settings.log_format, stage.name)
        asyncio.run(require_all(settings))
        run_stage(stage, settings)


for each in STAGES:
    add_worker(each)


@workers.command(context_settings=TAKES_SETTINGS, epilog=SEE_SETTINGS)
def metrics(context: typer.Context) -> None:
    """Write the scoreboard's samples to VictoriaMetrics and, where Grafana is named, show decisions in Grafana Live."""
    settings = read_settings(context.args, "metrics")
    start_logging(settings.log_format, "metrics")
    asyncio.run(run_metrics(settings))


def main() -> None:
    """Run the command line; what it writes is its user's alone."""
    os.umask(0o077)
    run_app(workers)
