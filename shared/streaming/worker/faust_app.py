"""A stage as a faust worker: it hands batches of records to the stage worker, and acknowledges them in order.

Faust reads the topic and keeps the membership of the group. Values are raw, so that a message which cannot be parsed
never raises outside our own code. Outputs go through a producer of our own, idempotent and with acks=all. State is in
Redis, not in faust's tables. The offset that faust commits is only a hint.
"""

import asyncio
import logging
import os
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import faust
import uvloop

from shadowtime.shared.errors import SettingsError
from shadowtime.shared.stages import Stage
from shadowtime.shared.streaming.kafka import clients as bus
from shadowtime.shared.streaming.kafka import deliver_batches
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.web import listening, split_names
from shadowtime.shared.streaming.worker.context import WorkerMetrics
from shadowtime.shared.streaming.worker.health import STALLED, WorkerHealth, worker_pages
from shadowtime.shared.streaming.worker.loop import WorkerLoop

log = logging.getLogger("shadowtime.runner")


def run_stage(stage: Stage, settings: Settings) -> None:
    """Run a worker of one stage until SIGTERM or SIGINT; then stop it cleanly."""
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    with tempfile.TemporaryDirectory(prefix=f"shadowtime-{stage.name}-") as folder:  # faust needs it; nothing is kept
        _run(build_app(stage, settings, Path(folder)))


STOP_SECONDS = 40.0
"""Maximum seconds that a worker takes to stop. It is less than `stop_grace_period` of docker-compose.yml."""


class BoundedWorker(faust.Worker):
    """A worker that ends within `STOP_SECONDS` of its stop. faust waits without a limit for a Kafka that is down."""

    async def stop(self) -> None:
        """Stop everything, and end the process if that takes too long: its watchdog is one of the stopped tasks."""
        timer = threading.Timer(STOP_SECONDS, _end_process)
        timer.daemon = True
        timer.start()
        await super().stop()


def _end_process() -> None:
    log.critical("this worker did not stop within %.0f s: it ends without leaving its Kafka group", STOP_SECONDS)
    os._exit(STALLED)


def _run(app: faust.App) -> None:
    worker = BoundedWorker(
        app,
        loglevel=None,
        logging_config={"version": 1, "disable_existing_loggers": False},
        redirect_stdouts=False,
        console_port=0,
        override_logging=False,
        quiet=True,
    )
    worker.spinner = None  # it writes control sequences for terminals, also into files
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
    health = WorkerHealth(runner)

    deliver_batches(app, runner)

    @app.agent(topic, concurrency=1, name=stage.name)
    async def consume(stream: Any) -> None:  # faust reads only topics of agents; the runner gets all records
        async for _ in stream.noack().events():
            log.error("a record arrived outside a batch")

    @app.task
    async def process() -> None:
        await runner.process()

    @app.task
    async def watch_progress() -> None:
        await health.watch_progress()

    @app.on_partitions_assigned.connect  # type: ignore[arg-type]
    async def assigned(sender: Any, partitions: Any, **_: Any) -> None:
        runner.assigned(partitions)

    @app.task
    async def serve_pages() -> None:
        if settings.web_port:
            pages = worker_pages(health.report, metrics.registry)
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
