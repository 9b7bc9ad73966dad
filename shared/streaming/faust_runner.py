"""Run one stage as a faust worker: records in, batches to the stage worker, acknowledgements in order.

Faust reads the topic and keeps the membership of the group. Values are taken raw, so that a message which cannot be
parsed never raises outside our own code; outputs go through a producer of our own, idempotent and with acks=all; state
is in Redis, not in faust's tables. The offset that faust commits is only a hint.
"""

import asyncio
import logging
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import faust
import uvloop

from shadowtime.shared.errors import SettingsError
from shadowtime.shared.stage import Stage
from shadowtime.shared.streaming import bus
from shadowtime.shared.streaming.batch_consumer import deliver_batches
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.web import listening
from shadowtime.shared.streaming.web_names import split_names
from shadowtime.shared.streaming.worker_loop import WorkerLoop
from shadowtime.shared.streaming.worker_metrics import WorkerMetrics
from shadowtime.shared.streaming.worker_pages import worker_pages

log = logging.getLogger("shadowtime.runner")


def run_stage(stage: Stage, settings: Settings) -> None:
    """Run a worker of one stage until it is told to stop; it stops cleanly on SIGTERM and SIGINT."""
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    with tempfile.TemporaryDirectory(prefix=f"shadowtime-{stage.name}-") as folder:  # faust wants one; nothing is kept
        _run(build_app(stage, settings, Path(folder)))


def _run(app: faust.App) -> None:
    worker = faust.Worker(
        app,
        loglevel=None,
        logging_config={"version": 1, "disable_existing_loggers": False},
        redirect_stdouts=False,
        console_port=0,
        override_logging=False,
        quiet=True,
    )
    worker.execute_from_commandline()


def build_app(stage: Stage, settings: Settings, folder: Path) -> faust.App:
    """Return the faust application of one stage; `folder` is private to it."""
    app = faust.App(
        f"shadowtime-{stage.name}",
        broker=[f"kafka://{address}" for address in settings.kafka_bootstrap.split(",")],
        broker_credentials=_credentials(settings),
        value_serializer="raw",
        key_serializer="raw",
        store="memory://",
        datadir=folder,
        topic_disable_leader=True,
        stream_wait_empty=False,
        consumer_auto_offset_reset="earliest",
        consumer_max_fetch_size=4 * settings.max_message_bytes,
        broker_commit_interval=1.0,
        broker_session_timeout=6.0,
        broker_heartbeat_interval=1.0,
        broker_request_timeout=10.0,
        broker_max_poll_interval=300.0,
        worker_redirect_stdouts=False,
        web_enabled=False,
    )
    metrics = WorkerMetrics(stage.name)
    metrics.started.set(time.time())
    topic = app.topic(stage.reads, value_serializer="raw", key_serializer="raw", allow_empty=True)
    runner = WorkerLoop(app, stage, settings, metrics)

    deliver_batches(app, runner)

    @app.agent(topic, concurrency=1, name=stage.name)
    async def consume(stream: Any) -> None:  # for faust, which reads the topics of agents; the runner is handed all
        async for _ in stream.noack().events():
            log.error("a record came one at a time")

    @app.task
    async def process() -> None:
        await runner.process()

    @app.task
    async def watch_progress() -> None:
        await runner.watch_progress()

    @app.on_partitions_assigned.connect  # type: ignore[arg-type]
    async def assigned(sender: Any, partitions: Any, **_: Any) -> None:
        runner.assigned(partitions)

    @app.task
    async def serve_pages() -> None:
        if settings.web_port:
            pages = worker_pages(runner.health, metrics.registry)
            try:
                async with listening(pages, settings.web_host, settings.web_port, split_names(settings.web_names)):
                    await asyncio.Event().wait()
            except SettingsError as error:
                log.critical("%s", error)
                os._exit(2)

    return app


def _credentials(settings: Settings) -> Any:
    protocol = settings.kafka_security_protocol
    if protocol == "PLAINTEXT":
        return None
    context = bus.ssl_context(settings) if "SSL" in protocol else None
    if protocol == "SSL":
        return faust.SSLCredentials(context)
    password = settings.kafka_password
    return faust.SASLCredentials(
        username=settings.kafka_username,
        password=None if password is None else password.get_secret_value(),
        mechanism=settings.kafka_sasl_mechanism,
        ssl_context=context,
    )
