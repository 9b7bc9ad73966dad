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
from collections import OrderedDict, defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import faust
import uvloop
from faust.transport.drivers import aiokafka as driver

from shadowtime.shared.errors import SettingsError
from shadowtime.shared.stages import Stage
from shadowtime.shared.streaming.kafka import clients as bus
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.web import listening, split_names
from shadowtime.shared.streaming.worker.context import WorkerMetrics
from shadowtime.shared.streaming.worker.health import STALLED, WorkerHealth, worker_pages
from shadowtime.shared.streaming.worker.loop import WorkerLoop

# A consumer of faust that hands over all records of a fetch directly.
#
# Faust takes records out of a fetch one at a time. For each of them it makes tasks, waits for the first one to be done,
# and passes the record through a queue. This costs several times the work of a stage on the record. Membership of the
# group, fetching, flow control and commits stay faust's.


class Receiver(Protocol):
    """A receiver of records, in order of each partition."""

    async def ready(self) -> None:
        """Return when there is room for a record."""
        ...

    def receive(self, message: Any) -> None:
        """Take a record."""
        ...

    def went_back(self, partition: int, read: int) -> None:
        """Note that a record before offset `read` comes again, although nobody asked for it."""
        ...

    def first_left(self, partition: int) -> int | None:
        """Return the lowest offset of the records that were left in the log of a partition; None if none was."""
        ...


class BatchConsumer(driver.Consumer):
    """A consumer that hands all records of a fetch to a receiver, and none to faust's streams.

    The offset that it commits is that of the first record that is not handled yet. Faust's own rule would ignore an
    unhandled record directly after the committed offset, and all unhandled records before the first commit.
    """

    receiver: Receiver

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._unhandled: defaultdict[Any, OrderedDict[int, None]] = defaultdict(OrderedDict)
        """The offsets of the records that were handed over and are not handled yet, in order, by partition."""
        self._next: dict[Any, int] = {}
        """The offset behind the last record that was handed over, by partition."""

    async def getmany(self, timeout: float) -> AsyncIterator[Any]:
        """Fetch records and hand them over. Records that arrive during a rebalance are fetched again."""
        records, active = await self._wait_next_records(timeout)
        generation = self.app.consumer_generation_id
        if not records or self.should_stop:
            return
        if not self.flow_active:
            await self.perform_seek()
            return
        for tp, batch in records.items():
            if active is None or tp in active or tp in self._buffered_partitions:
                # a rebalance must not wait until there is room
                await self.wait_first(self._hand_over(tp, batch, generation), self.suspend_flow.wait())

        nothing: list[Any] = []
        for record in nothing:  # faust iterates over what is left
            yield record

    async def _hand_over(self, tp: Any, batch: Sequence[Any], generation: int) -> None:
        """Hand over the records of one partition that were not handed over before."""
        if self._commit_every is not None and self._n_acked >= self._commit_every:
            self._n_acked = 0
            await self.commit()
        await self.app.flow_control.acquire()
        self.app.monitor.stream_inbound_time[tp] = time.monotonic()
        for record in batch:
            await self.receiver.ready()
            if not self.flow_active or self.app.consumer_generation_id != generation:
                return
            read, offset = self._read_offset[tp], record.offset
            if read is not None and offset < read:
                self.receiver.went_back(tp.partition, read)
                continue
            self.await_handling(tp, offset)
            self._next[tp] = offset + 1
            self.receiver.receive(self._to_message(tp, record))
            self._read_offset[tp] = offset

    def await_handling(self, tp: Any, offset: int) -> None:
        """Note that a record is to be handled: no offset behind it may be committed before `handled`."""
        self._unhandled[tp][offset] = None

    def handled(self, tp: Any, offset: int) -> None:
        """Note that a record was handled, or that its receiver has left it in the log."""
        self._unhandled[tp].pop(offset, None)
        self._n_acked += 1

    def _filter_tps_with_pending_acks(self, topics: Any = None) -> Iterator[Any]:
        return (tp for tp in self._next if topics is None or tp in topics or tp.topic in topics)

    def _filter_committable_offsets(self, tps: Iterable[Any]) -> dict[Any, int]:
        first = {tp: self._first_unhandled(tp) for tp in tps}
        return {tp: offset for tp, offset in first.items() if offset > (self._committed_offset[tp] or 0)}

    def _first_unhandled(self, tp: Any) -> int:
        unhandled, left = self._unhandled[tp], self.receiver.first_left(tp.partition)
        first = next(iter(unhandled)) if unhandled else self._next[tp]
        return first if left is None else min(first, left)

    async def on_partitions_revoked(self, revoked: Any) -> None:
        """Forget the records of partitions that this worker no longer owns."""
        self._forget(revoked)
        await super().on_partitions_revoked(revoked)

    def _forget(self, tps: Iterable[Any]) -> None:
        for tp in tps:
            self._unhandled.pop(tp, None)
            self._next.pop(tp, None)

    async def begin_again(self, tp: Any) -> None:
        """Read a partition from its beginning, and forget all positions in it: another log has taken its place."""
        self._forget([tp])
        self._committed_offset.pop(tp, None)
        await self._commit({tp: 0})
        await self.seek(tp, 0)


def deliver_batches(app: faust.App, receiver: Receiver) -> None:
    """Let the records that an application reads go to `receiver`. Call this before the application starts."""
    consumer = type("Consumer", (BatchConsumer,), {"receiver": receiver})
    transport = type("Transport", (driver.Transport,), {"Consumer": consumer})
    app.transport = transport(app.conf.broker_consumer, app)


log = logging.getLogger("shadowtime.runner")


def run_stage(stage: Stage, settings: Settings) -> None:
    """Run a worker of one stage until it is told to stop; it stops cleanly on SIGTERM and SIGINT."""
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    with tempfile.TemporaryDirectory(prefix=f"shadowtime-{stage.name}-") as folder:  # faust wants one; nothing is kept
        _run(build_app(stage, settings, Path(folder)))


STOP_SECONDS = 40.0
"""Seconds within which a stopping worker ends. It is less than `stop_grace_period` of docker-compose.yml."""


class BoundedWorker(faust.Worker):
    """A worker that ends within `STOP_SECONDS` of its stop. faust waits without a limit for a Kafka that is gone."""

    async def stop(self) -> None:
        """Stop everything, and end the process if that takes too long: its watchdog is one of the stopped tasks."""
        timer = threading.Timer(STOP_SECONDS, _end_process)
        timer.daemon = True
        timer.start()
        await super().stop()


def _end_process() -> None:
    log.critical("this worker did not stop within %.0f s: it ends without saying goodbye to Kafka", STOP_SECONDS)
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
