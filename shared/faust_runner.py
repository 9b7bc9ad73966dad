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
from contextlib import suppress
from pathlib import Path
from typing import Any

import faust
import uvloop
from faust.web import Request, Response, View
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from shared import bus
from shared.kafka_stream import KafkaStream
from shared.redis_store import RedisStore, connect
from shared.settings import Settings
from shared.stage import Stage
from shared.stage_worker import StageWorker
from shared.worker_metrics import WorkerMetrics

log = logging.getLogger("shadowtime.runner")

STALLED = 75
"""Exit status of a worker that the watchdog ended (EX_TEMPFAIL): start it again."""

UNASSIGNED_SECONDS = 20
"""How long a worker goes without a partition; so there should not be more workers of a stage than partitions."""

GATHER_SECONDS = 0.02
"""How long a batch waits for events that Kafka has and faust has not handed over yet."""

QUEUED = 4
"""Batches that may wait between faust and the stage."""


def run_stage(stage: Stage, settings: Settings) -> None:
    """Run a worker of one stage until it is told to stop; it stops cleanly on SIGTERM and SIGINT."""
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    app = build_app(stage, settings)
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


def build_app(stage: Stage, settings: Settings) -> faust.App:
    """Return the faust application of one stage."""
    app = faust.App(
        f"shadowtime-{stage.name}",
        broker=[f"kafka://{address}" for address in settings.kafka_bootstrap.split(",")],
        broker_credentials=_credentials(settings),
        value_serializer="raw",
        key_serializer="raw",
        store="memory://",
        datadir=Path(tempfile.gettempdir()) / f"shadowtime-{stage.name}",  # faust wants one; nothing is kept there
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
        web_enabled=settings.web_port > 0,
        web_host=settings.web_host,
        web_bind=settings.web_host,
        web_port=settings.web_port or 6066,
    )
    metrics = WorkerMetrics(stage.name)
    metrics.started.set(time.time())
    topic = app.topic(stage.reads, value_serializer="raw", key_serializer="raw", allow_empty=True)
    runner = _Runner(app, stage, settings, metrics)

    @app.agent(topic, concurrency=1, name=stage.name)
    async def consume(stream: Any) -> None:
        async for event in stream.noack().events():
            await runner.queue.put(event)

    @app.task
    async def process() -> None:
        await runner.process()

    @app.task
    async def watch_progress() -> None:
        await runner.watch_progress()

    @app.on_partitions_assigned.connect  # type: ignore[arg-type]
    async def assigned(sender: Any, partitions: Any, **_: Any) -> None:
        runner.assigned(partitions)

    @app.page("/health")
    async def health(self: View, request: Request) -> Response:
        return self.json(runner.health(), status=200 if runner.healthy() else 503)

    @app.page("/metrics")
    async def scrape(self: View, request: Request) -> Response:
        return self.bytes(generate_latest(metrics.registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

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


class _Runner:
    """The loop between faust and the stage worker."""

    def __init__(self, app: faust.App, stage: Stage, settings: Settings, metrics: WorkerMetrics) -> None:
        self.queue: asyncio.Queue[Any] = asyncio.Queue(QUEUED * settings.batch_size)
        self._app = app
        self._stage = stage
        self._settings = settings
        self._metrics = metrics
        self._new_partitions: set[int] = set()
        self._wake = asyncio.Event()
        self._progress = time.monotonic()
        self._busy = False

    def assigned(self, partitions: Any) -> None:
        """Note partitions that this worker now owns."""
        self._new_partitions |= {each.partition for each in partitions if each.topic == self._stage.reads}
        self.queue.put_nowait(None) if not self.queue.full() else None

    async def process(self) -> None:
        """Take what has come in, batch by batch, until the worker stops."""
        producer = bus.producer(self._settings)
        await producer.start()
        client = connect(self._settings)
        store = RedisStore(client, self._stage.name)
        stream = KafkaStream(self._stage, producer, self._settings)
        worker = StageWorker(self._stage, store, stream, self._settings, self._metrics)
        try:
            while True:
                events = await self._next_batch()
                self._busy = True
                began = time.perf_counter()
                while self._new_partitions:
                    await worker.take(self._new_partitions.pop())
                by_partition: dict[int, list[Any]] = {}
                for event in events:
                    if event is not None:
                        by_partition.setdefault(event.message.partition, []).append(event)
                for batch in by_partition.values():
                    await worker.handle([event.message for event in batch])
                    now = time.time()
                    for event in batch:
                        self._metrics.latency.observe(now - event.message.timestamp)
                        event.ack()
                self._metrics.batch_seconds.observe(time.perf_counter() - began)
                self._progress = time.monotonic()
                self._busy = False
        except Exception:
            log.exception("%s cannot go on", self._stage.name)
            os._exit(1)
        finally:
            await producer.stop()
            await client.aclose()

    async def _next_batch(self) -> list[Any]:
        """Wait for an event, and for those behind it that are known to lie in Kafka.

        Faust hands over one event at a time. Whoever begins with the first splits what was published as one batch, and
        the next stage splits it again: each part costs a transaction and a delivery in every stage from there on.
        """
        events = [await self.queue.get()]
        with suppress(TimeoutError):
            async with asyncio.timeout(GATHER_SECONDS):
                while len(events) < self._settings.batch_size and (self.queue.qsize() or self._has_more(events[-1])):
                    events.append(await self.queue.get())
        return events

    def _has_more(self, event: Any) -> bool:
        """Return whether more is known to lie behind an event."""
        if event is None:  # a wake-up
            return False
        high: int | None = self._app.consumer.highwater(event.message.tp)
        return high is not None and event.message.offset + 1 < high

    async def watch_progress(self) -> None:
        """End the process when there is work and nothing moves: the supervisor starts it again.

        Right after the loss of a broker the group's leader may not know the topic, and then gives nobody a partition;
        only a new member makes it think again. So a worker without any partition ends itself too.
        """
        owned = time.monotonic()
        while True:
            await asyncio.sleep(1.0)
            if self._owned():
                owned = time.monotonic()
            elif time.monotonic() - owned > UNASSIGNED_SECONDS:
                log.critical("%s: no partition for %d s; starting anew", self._stage.name, UNASSIGNED_SECONDS)
                os._exit(STALLED)
            behind = self._lag()
            self._metrics.lag.set(behind)
            idle = time.monotonic() - self._progress
            if not behind and not self._busy:
                self._progress = time.monotonic()
            elif idle > self._settings.watchdog_seconds:
                log.critical("%s: %d messages wait and nothing moved for %.0f s", self._stage.name, behind, idle)
                os._exit(STALLED)

    def _owned(self) -> list[Any]:
        """Return the partitions of the stage's topic that this worker owns."""
        consumer = self._app.consumer
        return [place for place in (consumer.assignment() if consumer else ()) if place.topic == self._stage.reads]

    def _lag(self) -> int:
        waiting = self.queue.qsize()
        for place in self._owned():
            high, read = self._app.consumer.highwater(place), self._app.monitor.tp_read_offsets.get(place)
            if high and read is not None:
                waiting += max(0, high - 1 - read)
        return waiting

    def healthy(self) -> bool:
        """Return whether the worker moves, or has nothing to do."""
        return time.monotonic() - self._progress < self._settings.watchdog_seconds / 2

    def health(self) -> dict[str, Any]:
        """Return what /health tells."""
        return {
            "stage": self._stage.name,
            "healthy": self.healthy(),
            "seconds_since_progress": round(time.monotonic() - self._progress, 1),
            "waiting": self.queue.qsize(),
        }
